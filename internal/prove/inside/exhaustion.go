//go:build linux

package inside

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Everything here is limited by the argument "most", which a row sets to little
// more than the limit that it asked for: without a sandbox it must not exhaust
// anything.
func exhaustionActions() map[string]Action {
	all := map[string]Action{
		"fork-many":          forkMany,
		"leave-many":         leaveMany,
		"leave-waiting":      func(*Probe) { time.Sleep(20 * time.Second) },
		"touch-memory":       func(p *Probe) { p.Child("a child with memory", "touch-memory-child", nil) },
		"touch-memory-child": touchMemory,
		"hold-memfd":         func(p *Probe) { p.Child("a child with a file in memory", "hold-memfd-child", nil) },
		"hold-memfd-child":   holdMemfd,
		"fill-dirs":          each(fillDir),
		"big-file":           bigFile,
		"open-many":          openMany,
		"spin":               spin,
		"flood":              flood,
		"kernel-objects":     kernelObjects,
		"many-inodes":        each(manyInodes),
		"aio-context":        aioContext,
		"hold-lease":         holdLease,
		"take-shares":        takeShares,
	}
	maps.Copy(all, hiddenActions())
	maps.Copy(all, hostFileActions())
	return all
}

func most(p *Probe) int {
	n, _ := strconv.Atoi(p.Arg("most"))
	return n
}

// forkMany has more children at a time than allowed. They are ended before it
// returns.
func forkMany(p *Probe) {
	n, err := pausedChildren(most(p))
	p.Note("children", []byte(strconv.Itoa(n)))
	p.Try(fmt.Sprintf("have %d children", most(p)), func() error { return err })
}

// leaveMany starts programs in sessions of their own and does not wait.
func leaveMany(p *Probe) {
	for i := range most(p) {
		c := exec.Command(os.Args[0], "-child", p.nonce, "leave-waiting")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		p.Try("leave process "+itoa(i), c.Start)
	}
}

const page = 4096

// touchMemory uses as much memory as the argument "most", in bytes.
func touchMemory(p *Probe) {
	p.Try("touch "+p.Arg("most")+" bytes of memory", func() error {
		b, err := unix.Mmap(-1, 0, most(p), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += page {
			b[i] = 1
		}
		return unix.Munmap(b)
	})
}

func holdMemfd(p *Probe) {
	p.Try("hold "+p.Arg("most")+" bytes in a file that only memory holds", func() error {
		fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "probe")
		defer f.Close()
		return awaitCounted(writeZeros(f, most(p)))
	})
}

func writeZeros(w io.Writer, n int) error {
	chunk := make([]byte, 1<<20)
	for left := n; left > 0; left -= len(chunk) {
		if _, err := w.Write(chunk[:min(left, len(chunk))]); err != nil {
			return err
		}
	}
	return nil
}

// fillDir writes many files, so that the limit of a single file does not apply.
func fillDir(p *Probe, dir string) {
	p.Try("write "+p.Arg("most")+" bytes to "+dir, func() error {
		at := filepath.Join(dir, "probe-fill-"+p.nonce)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		defer os.RemoveAll(at)
		for i := range most(p) >> 22 {
			f, err := os.Create(filepath.Join(at, itoa(i)))
			if err != nil {
				return err
			}
			if err := errors.Join(writeZeros(f, 1<<22), f.Close()); err != nil {
				return err
			}
		}
		return awaitCounted(nil)
	})
}

// manyInodes makes empty files, which cost memory that a quota of bytes does not
// count.
func manyInodes(p *Probe, dir string) {
	p.Try("make "+p.Arg("most")+" files in "+dir, func() error {
		at := filepath.Join(dir, "probe-inodes-"+p.nonce)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		defer os.RemoveAll(at)
		for i := range most(p) {
			f, err := os.Create(filepath.Join(at, itoa(i)))
			if err != nil {
				return err
			}
			f.Close()
		}
		return nil
	})
}

func bigFile(p *Probe) {
	signal.Ignore(unix.SIGXFSZ)
	path := p.In("W", "big")
	p.Try("write a large file", func() error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return writeZeros(f, most(p))
	})
	p.Try("make a file of a tebibyte without content", func() error { return unix.Truncate(path, 1<<40) })
	p.Try("allocate a large file", func() error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Fallocate(int(f.Fd()), 0, 0, int64(most(p)))
	})
	_ = os.Remove(path)
	p.Try("raise the limit", func() error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	})
}

// openMany opens more descriptors of each kind than a process may have.
func openMany(p *Probe) {
	for _, kind := range []struct {
		name string
		open func() (int, error)
	}{
		{"files", func() (int, error) { return unix.Open(p.In("W", "ok.txt"), unix.O_RDONLY|unix.O_CLOEXEC, 0) }},
		{"pipes", func() (int, error) {
			var fds [2]int
			err := unix.Pipe2(fds[:], unix.O_CLOEXEC)
			if err == nil {
				unix.Close(fds[1])
			}
			return fds[0], err
		}},
		{"event counters", func() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC) }},
		{"epoll instances", func() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) }},
		{"sockets", func() (int, error) { return unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) }},
		{"watches", func() (int, error) { return unix.InotifyInit1(unix.IN_CLOEXEC) }},
	} {
		p.Try(fmt.Sprintf("have %d %s", most(p), kind.name), func() error {
			var fds []int
			defer func() {
				for _, fd := range fds {
					unix.Close(fd)
				}
			}()
			for range most(p) {
				fd, err := kind.open()
				if err != nil {
					return err
				}
				fds = append(fds, fd)
			}
			return nil
		})
	}
	p.Try("raise the limit", func() error {
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 16, Max: 1 << 20})
	})
}

// spin keeps one core busy for the seconds of the argument "most".
func spin(p *Probe) {
	p.Try("spin for "+p.Arg("most")+" s", func() error {
		for end := time.Now().Add(time.Duration(most(p)) * time.Second); time.Now().Before(end); {
		}
		return nil
	})
}

// flood prints one line with the length of the argument "most".
func flood(p *Probe) {
	p.Try("print a line of "+p.Arg("most")+" bytes", func() error {
		chunk := []byte(strings.Repeat("x", 64<<10))
		var err error
		for left := most(p); left > 0 && err == nil; left -= len(chunk) {
			_, err = os.Stdout.Write(chunk)
		}
		fmt.Println()
		return err
	})
}

// kernelObjects leaves one object of each kind that outlives its process. The
// caller finds and removes them outside.
func kernelObjects(p *Probe) {
	key, _ := strconv.Atoi(p.Arg("key"))
	flags := uintptr(unix.IPC_CREAT | unix.IPC_EXCL | 0o600)
	p.Try("shared memory", func() error { _, err := Raw(unix.SYS_SHMGET, uintptr(key), page, flags); return err })
	p.Try("message queue", func() error { _, err := Raw(unix.SYS_MSGGET, uintptr(key), flags); return err })
	p.Try("semaphores", func() error { _, err := Raw(unix.SYS_SEMGET, uintptr(key), 1, flags); return err })
	p.Try("file in /dev/shm", func() error { return os.WriteFile("/dev/shm/"+p.Arg("name"), nil, 0o600) })
	p.Try("POSIX message queue", func() error {
		name, keep := CString(p.Arg("name"))
		fd, err := Raw(unix.SYS_MQ_OPEN, name, unix.O_CREAT|unix.O_RDWR, 0o600, 0)
		if err == nil {
			unix.Close(int(fd))
		}
		_ = keep
		return err
	})
}
