//go:build linux

package inside

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// aioContext asks for one context: a process that may have one may have all.
func aioContext(p *Probe) {
	p.Try("have a context for asynchronous input and output", func() error {
		var context uintptr
		if _, err := Raw(unix.SYS_IO_SETUP, 1, Pointer(&context)); err != nil {
			return err
		}
		_, err := Raw(unix.SYS_IO_DESTROY, context)
		return err
	})
}

func holdLease(p *Probe) {
	f, err := os.Create(p.In("W", "leased"))
	p.Control("make a file", func() error { return err })
	if err != nil {
		return
	}
	defer f.Close()
	for _, kind := range []struct {
		name  string
		lease int
	}{{"every other opening", unix.F_WRLCK}, {"every opening for writing", unix.F_RDLCK}} {
		p.Try("be asked before "+kind.name, func() error {
			_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind.lease)
			return err
		})
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	p.Try("the same, with bits that the kernel cuts off", func() error {
		_, err := Raw(unix.SYS_FCNTL, f.Fd(), unix.F_SETLEASE|1<<32, unix.F_WRLCK)
		return err
	})
}

// takeShares holds as many of each kind as the argument of its name says, and
// releases them.
func takeShares(p *Probe) {
	descriptors(p, "watchers", func() (int, error) { return unix.InotifyInit1(unix.IN_CLOEXEC) })
	descriptors(p, "terminals", func() (int, error) {
		return unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	pendingSignals(p)
	queueBytes(p)
}

func descriptors(p *Probe, kind string, open func() (int, error)) {
	p.Try("have "+p.Arg(kind)+" "+kind, func() error {
		var fds []int
		defer func() {
			for _, fd := range fds {
				unix.Close(fd)
			}
		}()
		for range count(p, kind) {
			fd, err := open()
			if err != nil {
				return err
			}
			fds = append(fds, fd)
		}
		return nil
	})
}

func count(p *Probe, name string) int {
	n, _ := strconv.Atoi(p.Arg(name))
	return n
}

// pendingSignals makes timers: each reserves a signal (timer_create(2)).
func pendingSignals(p *Probe) {
	p.Try("have "+p.Arg("signals")+" timers", func() error {
		var ids []int32
		defer func() {
			for _, id := range ids {
				_, _ = Raw(unix.SYS_TIMER_DELETE, uintptr(id))
			}
		}()
		for range count(p, "signals") {
			var id int32
			if _, err := Raw(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, Pointer(&id)); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
}

// queueBytes makes message queues of the default size, which counts in full from
// the start (mq_overview(7)).
func queueBytes(p *Probe) {
	const each = 10 * 8192
	p.Try("have message queues of "+p.Arg("queues")+" bytes", func() error {
		made := 0
		name := func(i int) string { return fmt.Sprintf("share-%s-%d", p.nonce, i) }
		defer func() {
			for i := range made {
				at, keep := CString(name(i))
				_, _ = Raw(unix.SYS_MQ_UNLINK, at)
				_ = keep
			}
		}()
		for ; made < count(p, "queues")/each; made++ {
			at, keep := CString(name(made))
			fd, err := Raw(unix.SYS_MQ_OPEN, at, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600, 0)
			_ = keep
			if err != nil {
				return err
			}
			unix.Close(int(fd))
		}
		return nil
	})
}
