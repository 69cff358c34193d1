//go:build linux

package supervise

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// roleFifo opens a fifo for writing, as long before another thread reads from it.
func roleFifo() {
	if err := unix.Mkfifo("fifo", 0o644); err != nil {
		panic(err)
	}
	read := make(chan struct{})
	go func() {
		time.Sleep(300 * time.Millisecond)
		fd, _ := unix.Open("fifo", unix.O_RDONLY, 0)
		<-read
		unix.Close(fd)
	}()
	fd, err := unix.Open("fifo", unix.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	unix.Close(fd)
	close(read)
}

// TestCallsThatWaitAreNotHeldUp has a thread wait in its open for another one: it is
// stopped once, recorded once, and recorded as not compared.
func TestCallsThatWaitAreNotHeldUp(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, []string{"/bin/sh", "-c", exe + "; true"}, in(makeTree(t)), environment(roleVar+"=fifo"))
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	writes := 0
	for _, e := range r.eventsOf(event.FileWrite) {
		if e.Object == "fifo" {
			if writes++; e.Detail["compared"] != "no" || e.Verdict != event.Allowed {
				t.Errorf("%+v", e)
			}
		}
	}
	if writes != 1 {
		t.Errorf("%d events of one open", writes)
	}
}
