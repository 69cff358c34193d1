//go:build linux

package inside

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// hostFileActions change what the kernel keeps with a file besides its content.
func hostFileActions() map[string]Action {
	return map[string]Action{"mark-file": markFile, "hold-lock": holdLock}
}

// markFile sets a flag that every owner may set, with each call that can.
func markFile(p *Probe) {
	const (
		noDump  = 0x40       // FS_NODUMP_FL
		xNoDump = 0x80       // FS_XFLAG_NODUMP
		setX    = 0x401c5820 // FS_IOC_FSSETXATTR
		getX    = 0x801c581f // FS_IOC_FSGETXATTR
		setFile = 469        // file_setattr(2)
	)
	f, err := os.Open(p.Arg("file"))
	if err != nil {
		p.Try("open it", func() error { return err })
		return
	}
	defer f.Close()
	var flags uint64 // the kernel writes 32 bits of it
	p.Control("its flags are read", func() error {
		_, err := Raw(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_GETFLAGS, Pointer(&flags))
		return err
	})
	p.Try("set NODUMP among its flags", func() error {
		flags |= noDump
		_, err := Raw(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_SETFLAGS, Pointer(&flags))
		return err
	})
	p.Try("set NODUMP among its extended flags", func() error {
		x := make([]uint32, 7)
		if _, err := Raw(unix.SYS_IOCTL, f.Fd(), getX, Pointer(&x[0])); err != nil {
			return err
		}
		x[0] |= xNoDump
		_, err := Raw(unix.SYS_IOCTL, f.Fd(), setX, Pointer(&x[0]))
		return err
	})
	p.Try("set NODUMP by its path", func() error {
		path, keep := CString(p.Arg("file"))
		attr := [4]uint64{xNoDump}
		here := unix.AT_FDCWD
		_, err := Raw(setFile, uintptr(here), path, Pointer(&attr[0]), 24, 0)
		runtime.KeepAlive(keep)
		return err
	})
}

// holdLock locks a file that it opened for reading.
func holdLock(p *Probe) {
	f, err := os.Open(p.Arg("file"))
	if err != nil {
		p.Try("open it", func() error { return err })
		return
	}
	defer f.Close()
	p.Try("hold a lock of it by "+p.Arg("kind"), func() error {
		if p.Arg("kind") == "flock" {
			return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	})
}
