package main

// cpuMeter says how processor time is counted. wait4 only reports children that
// were waited for, at every level, and an init process may let the kernel reap; a
// control group misses nothing. So a control group is used if we may make one,
// and a calibration with a known load in any case.
type cpuMeter struct {
	parent string          // directory of control groups; "" if we may make none
	trust  map[string]bool // contestants for whose tree the calibration found all the time
	found  string          // result of the calibration, for the report
}
