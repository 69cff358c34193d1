package trial

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// TestTicksAgo starts processes at moments all over a tick. None may have started
// before the time that was read before it: otherwise a hanging command would not
// be ended with its step.
func TestTicksAgo(t *testing.T) {
	for i := range 40 {
		time.Sleep(time.Duration(i%10) * time.Millisecond)
		before := time.Now()
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i*7%10) * time.Millisecond)
		since := ticksAgo(time.Since(before))
		all := processes()
		at := slices.IndexFunc(all, func(p process) bool { return p.pid == cmd.Process.Pid })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if at < 0 {
			t.Fatal("the process is not among all")
		}
		if got := all[at].since; got < since || got > since+100 {
			t.Fatalf("a process started at %d, which is not just after %d", got, since)
		}
	}
}
