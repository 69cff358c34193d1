package main

// memory is what the processes around an idle command occupy, in KiB, one value
// a run.
type memory struct {
	contestant string
	what       string    // the workspace, for the report
	rest       []float64 // resident set of the process that was started, while the command sleeps
	peak       []float64 // its largest (VmHWM)
	pss        []float64 // of all between it and the command, shared pages divided by their users
	private    []float64 // of the same, pages that nobody shares
	processes  int       // how many these are
	unreadable error     // why there is no pss; nil when there is
}
