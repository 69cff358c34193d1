//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// consentEnds try to get more out of an approval than was shown.
func consentEnds() map[string]Action {
	return map[string]Action{"stretch-write": stretchWrite, "talk-on": talkOn, "lend-socket": lendSocket, "dial-lent": dialLent}
}

// stretchWrite opens a file for writing, which needs approval, and tries what
// else the descriptor can do: at once, or after the approval has ended.
func stretchWrite(p *Probe) {
	path := p.Arg("path")
	fd := -1
	p.Control("open what is approved", func() (err error) {
		fd, err = openApproved(path)
		return err
	})
	if fd < 0 {
		return
	}
	defer unix.Close(fd)
	p.Control("write to it", func() error { _, err := unix.Write(fd, []byte("early")); return err })
	if p.Arg("how") == "late" {
		_ = os.WriteFile(p.In("W", "used"), nil, 0o644)
		p.Control("wait for the end of the approval", func() error { return p.await("over") })
		// A process that keeps writing must not be killed for it.
		p.Try("write after it", func() error { return lateWrites(func(b []byte) error { _, err := unix.Write(fd, b); return err }) })
		return
	}
	p.Read("read it", func() ([]byte, error) { return readFirst(fd) })
	p.Read("map it", func() ([]byte, error) { return unix.Mmap(fd, 0, 128, unix.PROT_READ, unix.MAP_SHARED) })
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	p.Read("open it again", func() ([]byte, error) {
		again, err := unix.Open(link, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer unix.Close(again)
		return readFirst(again)
	})
	p.Try("change its mode", func() error { return unix.Fchmod(fd, 0o666) })
	p.Try("change its mode by its link", func() error { return os.Chmod(link, 0o666) })
	p.Try("give it away", func() error { return unix.Fchown(fd, os.Getuid()+1, -1) })
	p.Try("give it an attribute", func() error { return unix.Fsetxattr(fd, "user.probe", []byte("x"), 0) })
	p.Try("make it longer", func() error { return unix.Ftruncate(fd, 4096) })
	p.Try("allocate", func() error { return unix.Fallocate(fd, 0, 0, 8192) })
	p.Try("empty it", func() error { return unix.Ftruncate(fd, 0) })
	p.Try("empty it by its link", func() error { return os.Truncate(link, 0) })
	p.Try("open it again to empty it", func() error { return closeAfter(os.OpenFile(link, os.O_WRONLY|os.O_TRUNC, 0)) })
}

// openApproved opens for reading and writing, again after each interruption. If
// that cannot be approved it opens for writing only.
func openApproved(path string) (fd int, err error) {
	for _, flags := range []int{unix.O_RDWR, unix.O_WRONLY} {
		for {
			if fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0); err != unix.EINTR {
				break
			}
		}
		if err == nil {
			return fd, nil
		}
	}
	return -1, err
}

func readFirst(fd int) ([]byte, error) {
	buf := make([]byte, 512)
	n, err := unix.Pread(fd, buf, 0)
	return buf[:max(n, 0)], err
}

func closeAfter(f *os.File, err error) error {
	if err == nil {
		err = f.Close()
	}
	return err
}

// talkOn talks to a service of the host, which needs approval, and continues after
// the approval has ended.
func talkOn(p *Probe) {
	var c net.Conn
	p.Control("connect to what is approved", func() (err error) {
		c, err = net.DialTimeout("tcp", "127.0.0.1:"+p.Arg("port"), 15*time.Second)
		if err == nil {
			_, err = c.Write([]byte("early"))
		}
		if err == nil { // the connection is accepted before the decision
			_, err = c.Read(make([]byte, 16))
		}
		return err
	})
	if c == nil {
		return
	}
	defer c.Close()
	_ = os.WriteFile(p.In("W", "used"), nil, 0o644)
	p.Control("wait for the end of the approval", func() error { return p.await("over") })
	p.Try("speak after it", func() error { return lateWrites(func(b []byte) error { _, err := c.Write(b); return err }) })
}

// lateWrites tries for a moment, because what revokes runs concurrently.
func lateWrites(write func([]byte) error) (err error) {
	for range 10 {
		if err = write([]byte("late")); err != nil {
			if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
				return unix.EACCES
			}
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}
