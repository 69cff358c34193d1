//go:build linux

package supervise

import (
	"os/exec"
	"testing"
	"time"
)

// TestNoDescriptorsForProcesses has a supervisor that may open no descriptor for a
// process: it gets no notice of their ends, and live ones must not be mistaken for
// others.
func TestNoDescriptorsForProcesses(t *testing.T) {
	w, err := newWatch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.limit = 0
	table, err := newProcTable(0, w)
	if err != nil {
		t.Fatal(err)
	}
	var ended []int
	table.gone = func(p *proc) {
		ended = append(ended, p.pid)
		table.drop(p)
	}
	start := func() *exec.Cmd {
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *exec.Cmd) {
		c.Process.Kill()
		c.Wait()
	}
	lasting := start()
	defer end(lasting)
	pid, now := lasting.Process.Pid, int64(0)
	first := table.find(pid, now)
	if first == nil || first.pidfd >= 0 {
		t.Fatalf("found %+v", first)
	}
	for range 5 {
		now += int64(time.Second)
		if table.find(pid, now) != first {
			t.Fatal("a process that lives is taken for another")
		}
	}
	table.sweep, table.least = 8, 8
	for range 20 {
		c := start()
		table.find(c.Process.Pid, now)
		end(c)
		now += int64(time.Second)
	}
	if len(table.procs) > 10 {
		t.Errorf("%d processes are in the table", len(table.procs))
	}
	if len(ended) < 10 || table.procs[pid] != first {
		t.Errorf("%d of 20 ended", len(ended))
	}
}
