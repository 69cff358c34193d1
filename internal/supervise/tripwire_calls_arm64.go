//go:build linux

package supervise

import "sync"

// pathCalls are the system calls of this machine that take a path, by number.
var pathCalls = sync.OnceValue(commonPathCalls)
