// Command holdfast runs AI coding agents, and everything they start, inside a
// boundary that holds when the agent is hostile.
package main

import (
	"os"
	"runtime"

	"holdfast.dev/holdfast/internal/cli"
)

// The first thread only waits. As root, threads that answer for what is inside take
// the ids of the task; taken by the first thread, they are those of the process for
// who looks at it, limits it or signals it (proc(5), prlimit(2), kill(2)).
func init() { runtime.LockOSThread() }

func main() {
	status := make(chan int)
	go func() {
		deepen()
		status <- cli.Main(os.Args[1:])
	}()
	os.Exit(<-status)
}

// deepen makes the stack of a goroutine large while there is nothing on it to copy.
//
//go:noinline
func deepen() (last byte) {
	var room [48 << 10]byte
	return room[len(os.Args)]
}
