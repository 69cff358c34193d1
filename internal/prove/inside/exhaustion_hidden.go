//go:build linux

package inside

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hiddenActions use resources that a count of processes, files and descriptors
// does not show. Each has a child take them, and keeps them for longer than a
// watch needs.
func hiddenActions() map[string]Action {
	return map[string]Action{
		"hide-memory": func(p *Probe) {
			p.Child("a child with "+p.Arg("kind"), "hide-memory-child", nil, "kind="+p.Arg("kind"), "most="+p.Arg("most"), "keys="+p.Arg("keys"))
		},
		"hide-memory-child": func(p *Probe) {
			p.Try("hold "+p.Arg("most")+" bytes of "+p.Arg("kind"), func() error { return awaitCounted(hiddenMemory[p.Arg("kind")](most(p), keys(p))) })
		},
		"hide-disk": hideDisk,
		"many-dirs": func(p *Probe) { manyNames(p, "directories", func(at string) error { return os.Mkdir(at, 0o700) }) },
		"many-links": func(p *Probe) {
			manyNames(p, "links", func(at string) error { return os.Symlink(strings.Repeat("x", 4000), at) })
		},
		"hide-inodes": each(manyKept),
	}
}

// awaitCounted waits until a watch has counted what was taken.
func awaitCounted(err error) error {
	if err == nil {
		time.Sleep(2 * time.Second)
	}
	return err
}

// keys returns the keys of objects that the caller removes, one by one.
func keys(p *Probe) func() uintptr {
	key, _ := strconv.Atoi(p.Arg("keys"))
	return func() uintptr { key++; return uintptr(key) }
}

// hiddenMemory has a function for each kind.
var hiddenMemory = map[string]func(most int, key func() uintptr) error{
	"segments that are not mapped": func(most int, key func() uintptr) error {
		const size = 16 << 20
		for range most / size {
			id, err := Raw(unix.SYS_SHMGET, key(), size, 0o1600)
			if err != nil {
				return err
			}
			at, err := unix.SysvShmAttach(int(id), 0, 0)
			if err != nil {
				return err
			}
			touch(at)
			if err := unix.SysvShmDetach(at); err != nil {
				return err
			}
		}
		return nil
	},
	"message queues": func(most int, key func() uintptr) error {
		text := make([]byte, 8+8192)
		text[0] = 1
		for range most / (2 * 8192) {
			id, err := Raw(unix.SYS_MSGGET, key(), 0o1600)
			for i := 0; i < 2 && err == nil; i++ {
				_, err = Raw(unix.SYS_MSGSND, id, Pointer(&text[0]), 8192, unix.IPC_NOWAIT)
			}
			if err != nil {
				return err
			}
		}
		return nil
	},
	"semaphores": func(most int, key func() uintptr) error {
		const each = 32000
		for range most / (each * 64) {
			if _, err := Raw(unix.SYS_SEMGET, key(), each, 0o1600); err != nil {
				return err
			}
		}
		return nil
	},
	"a file of a process that cannot be looked into": func(most int, _ func() uintptr) error {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		return writeZeros(os.NewFile(uintptr(fd), "probe"), most)
	},
	"shared pages that are no longer mapped": func(most int, _ func() uintptr) error {
		b, err := unix.Mmap(-1, 0, most, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		for at := 0; at < most && err == nil; at += 1 << 20 {
			touch(b[at : at+1<<20])
			err = unix.Madvise(b[at:at+1<<20], unix.MADV_DONTNEED)
		}
		return err
	},
	"socket buffers": func(most int, _ func() uintptr) error {
		chunk := make([]byte, 64<<10)
		for sum := 0; sum < most; {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			for err == nil {
				var n int
				n, err = unix.Write(pair[0], chunk)
				sum += max(n, 0)
			}
		}
		return nil
	},
	"watches of epoll": func(most int, _ func() uintptr) error {
		var watched [256]int
		for i := range watched {
			fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
			if err != nil {
				return err
			}
			watched[i] = fd
		}
		for range most / (len(watched) * 192) {
			set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
			for i := 0; i < len(watched) && err == nil; i++ {
				err = unix.EpollCtl(set, unix.EPOLL_CTL_ADD, watched[i], &unix.EpollEvent{Events: unix.EPOLLIN})
			}
			if err != nil {
				return err
			}
		}
		return nil
	},
	"tables of pages that are only read": func(most int, _ func() uintptr) error {
		const covers = 2 << 20 // what one table of 4 KiB covers
		size := most / page * covers
		b, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return err
		}
		if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil {
			return err
		}
		for at := 0; at < size; at += covers {
			if b[at] != 0 {
				return unix.EIO
			}
		}
		return nil
	},
}

func touch(b []byte) {
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
}

// manyNames makes as many names as would use the bytes of the argument "most" if
// each uses a block.
func manyNames(p *Probe, what string, add func(at string) error) {
	at := p.In("W", "probe-names")
	p.Try(fmt.Sprintf("make %s that take %s bytes", what, p.Arg("most")), func() error {
		err := os.Mkdir(at, 0o700)
		for i := 0; i < most(p)/page && err == nil; i++ {
			err = add(filepath.Join(at, itoa(i)))
		}
		return awaitCounted(err)
	})
}

// manyKept makes empty files and leaves them there for a while.
func manyKept(p *Probe, dir string) {
	p.Try("make "+p.Arg("most")+" files in "+dir, func() error {
		at := filepath.Join(dir, "probe-inodes")
		err := os.Mkdir(at, 0o700)
		for i := 0; i < most(p) && err == nil; i++ {
			err = unix.Mknod(filepath.Join(at, itoa(i)), unix.S_IFREG|0o600, 0)
		}
		return awaitCounted(err)
	})
}

// hideDisk fills the workspace with data that is in no readable tree.
func hideDisk(p *Probe) {
	at := p.In("W", "probe-hidden")
	p.Control("make a directory", func() error { return os.Mkdir(at, 0o700) })
	p.Try("write "+p.Arg("most")+" bytes to "+p.Arg("kind"), func() error {
		inside := filepath.Join(at, "x")
		var open []*os.File // a finalizer would close unreachable files
		defer func() { runtime.KeepAlive(open) }()
		switch p.Arg("kind") {
		case "a directory that cannot be read":
			if err := os.Chmod(at, 0o300); err != nil {
				return err
			}
			defer os.Chmod(at, 0o700)
		case "files of a process that cannot be looked into":
			if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
				return err
			}
		}
		for i := range most(p) >> 22 {
			f, err := os.Create(inside + itoa(i))
			if err != nil {
				return err
			}
			if err := writeZeros(f, 1<<22); err != nil {
				return err
			}
			if p.Arg("kind") != "a directory that cannot be read" {
				open = append(open, f)
				if err := holdUnlinked(f, inside+itoa(i), p.Arg("kind")); err != nil {
					return err
				}
			}
			time.Sleep(20 * time.Millisecond) // not all of it between two looks
		}
		return awaitCounted(nil)
	})
}

// holdUnlinked removes the name of a file and keeps it in the way of kind.
func holdUnlinked(f *os.File, path, kind string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	switch kind {
	case "files that are only mapped":
		if _, err := unix.Mmap(int(f.Fd()), 0, page, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		return f.Close()
	case "files that are on their way through a socket":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(int(f.Fd())), nil, 0); err != nil {
			return err
		}
		return f.Close()
	}
	return nil
}
