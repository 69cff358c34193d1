//go:build linux

package supervise

// pathCalls are the system calls of this machine that take a path, by number.
var pathCalls = commonPathCalls()
