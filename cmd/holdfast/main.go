// Command holdfast runs AI coding agents, and everything they start, inside a
// boundary that holds even if the agent is hostile.
package main

import (
	"os"
	"runtime"

	"holdfast.dev/holdfast/internal/cli"
)

// The first thread only waits. As root, threads that act for the inside take the
// task's IDs. In the first thread those would become the IDs of the process for
// anyone who inspects, limits or signals it (proc(5), prlimit(2), kill(2)).
func init() { runtime.LockOSThread() }

func main() {
	status := make(chan int)
	go func() {
		growStack()
		status <- cli.Main(os.Args[1:])
	}()
	os.Exit(<-status)
}

// growStack grows the stack of a goroutine while there is nothing on it to copy.
//
//go:noinline
func growStack() (last byte) {
	var room [48 << 10]byte
	return room[len(os.Args)]
}
