//go:build linux

package supervise

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCalm waits for a pipe: for data that is there, for data that comes, for its end,
// and until it must stop.
func TestCalm(t *testing.T) {
	t.Parallel()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	c, err := newPoller(ends[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	put := func() { unix.Write(ends[1], []byte{1}) }
	take := func() { unix.Read(ends[0], make([]byte, 1)) }
	must := func(what string) {
		t.Helper()
		if err := c.wait(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	put()
	if readable(c.epoll) {
		t.Error("who does not wait was woken")
	}
	must("what is there")
	must("what is still there")
	take()
	for range 3 {
		time.AfterFunc(10*time.Millisecond, put)
		began := time.Now()
		must("what comes")
		if c.noteWait(time.Since(began)); !c.long || time.Since(began) < 10*time.Millisecond {
			t.Errorf("it waited for %v, long: %v", time.Since(began), c.long)
		}
		take()
	}
	put()
	began := time.Now()
	must("what is there")
	if c.noteWait(time.Since(began)); c.long {
		t.Errorf("a wait of %v was long", time.Since(began))
	}
	take()
	time.AfterFunc(10*time.Millisecond, func() { unix.Close(ends[1]) })
	must("the end")

	unix.Close(ends[0])
	if ends[0], err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	idle, err := newPoller(ends[0])
	if err != nil {
		t.Fatal(err)
	}
	defer idle.close()
	time.AfterFunc(10*time.Millisecond, idle.end)
	if err := idle.wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its end: %v", err)
	}
	if err := idle.wait(); err == nil {
		t.Error("it waits on after its end")
	}
}

// readable reports whether a descriptor is, now.
func readable(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}
