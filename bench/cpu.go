package main

// cpuMeter says how processor time is counted. What wait4 reports holds only
// children that were waited for, all the way down, and an init process may let
// the kernel reap; a control group misses nothing. Hence the latter where we
// may make one, and a trial by a known load in any case.
type cpuMeter struct {
	parent string          // directory of control groups; "" when we may make none
	trust  map[string]bool // contestants of whose tree the trial found all the time
	found  string          // what the trial found, for the report
}
