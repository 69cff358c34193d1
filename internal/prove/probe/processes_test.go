//go:build linux

package probe

import (
	"os"
	"os/exec"
	"testing"
)

// A scan finds what started at that time or later, also what an earlier scan has
// seen, and nothing that has ended.
func TestProcessesSince(t *testing.T) {
	sleep := exec.Command("sleep", "300")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	pid := sleep.Process.Pid
	begun, ok := processOf(pid)
	if !ok || begun.parent != os.Getpid() {
		t.Fatalf("%+v", begun)
	}
	// Since Linux 6.2 the count of a small process may be 0: only what one
	// processor has collected is added (mm/memory.c, percpu_counter).
	if own, ok := processOf(os.Getpid()); !ok || own.resident == 0 {
		t.Fatalf("%+v", own)
	}
	var table processTable
	for range 2 {
		if got := table.since(begun.started)[pid]; got.started != begun.started || got.parent != begun.parent {
			t.Errorf("what has just started: %+v", got)
		}
		if got, ok := table.since(begun.started + 1)[pid]; ok {
			t.Errorf("what started before: %+v", got)
		}
	}
	_ = sleep.Process.Kill()
	_ = sleep.Wait()
	if got, ok := table.since(0)[pid]; ok {
		t.Errorf("what has ended: %+v", got)
	}
}
