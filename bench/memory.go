package main

// memory is what the processes around an idle command occupy, in KiB, one value
// a run.
type memory struct {
	contestant string
	what       string    // the workspace, for the report
	supervisor []float64 // peak resident set of the process that was started (VmHWM)
	pss        []float64 // of all between it and the command, shared pages divided by their users
	private    []float64 // of the same, pages that nobody shares
	processes  int       // how many these are
	unreadable error     // why there is no pss; nil when there is
}
