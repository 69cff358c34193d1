package main

// memory is the memory of the processes around an idle command, in KiB, one value
// per run.
type memory struct {
	contestant string
	what       string    // the workspace, for the report
	rest       []float64 // resident set of the started process, while the command sleeps
	peak       []float64 // its largest (VmHWM)
	pss        []float64 // of all between it and the command, shared pages divided by their users
	private    []float64 // private pages of the same processes
	processes  int       // number of these processes
	unreadable error     // why there is no pss; nil if there is
}
