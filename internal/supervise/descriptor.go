//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// read reads the link of /proc/PID that r.name names. The descriptors of a
// process that made itself not dumpable (PR_SET_DUMPABLE) are closed to an
// ordinary user there, but not to the owner of its user namespace
// (pidfd_getfd(2)): r.name leads to a copy of ours then, until the next reading.
func (r *resolver) read(p *proc, tid int) ([]byte, syscall.Errno) {
	text, errno := readlinkat(p.base(), r.name, r.link[:])
	if !forbids(errno) {
		return text, errno
	}
	name := r.name[:len(r.name)-1]
	fd, err := strconv.Atoi(string(name[bytes.LastIndexByte(name, '/')+1:]))
	if err != nil { // a link that is no descriptor
		return text, errno
	}
	if errno := r.copyDescriptor(p, tid, fd); errno != 0 {
		return nil, errno
	}
	r.name = append(strconv.AppendInt(append(r.name[:0], "/proc/self/fd/"...), int64(r.taken), 10), 0)
	return readlinkat(unix.AT_FDCWD, r.name, r.link[:])
}

// copyDescriptor copies a descriptor of a thread.
func (r *resolver) copyDescriptor(p *proc, tid, fd int) syscall.Errno {
	r.closeTaken()
	flags := 0
	if tid != p.pid { // it may have descriptors of its own
		flags = unix.PIDFD_THREAD
	}
	pidfd, err := unix.PidfdOpen(tid, flags)
	if err != nil {
		return unix.EPERM
	}
	defer unix.Close(pidfd)
	taken, err := unix.PidfdGetfd(pidfd, fd, 0)
	switch err {
	case nil:
		r.taken = taken
		return 0
	case unix.EBADF, unix.ESRCH: // as /proc says it
		return unix.ENOENT
	}
	return unix.EPERM
}

// closeTaken closes what was taken.
func (r *resolver) closeTaken() {
	if r.taken >= 0 {
		unix.Close(r.taken)
		r.taken = -1
	}
}

// statDescriptor looks at what a descriptor of a thread is open on.
func (r *resolver) statDescriptor(p *proc, tid, fd int, st *unix.Stat_t) bool {
	r.name = append(strconv.AppendInt(append(p.entry(r.name[:0], tid), "fd/"...), int64(fd), 10), 0)
	_, errno := r.read(p, tid)
	return errno == 0 && fstatat(p.base(), r.name, st, 0) == 0
}

// isHandle reports whether the descriptor that r.name leads to was opened with O_PATH, and
// so is good for no call on what it is open on: its link has no mode bits (proc(5)).
func (r *resolver) isHandle(p *proc) bool {
	var st unix.Stat_t
	return fstatat(p.base(), r.name, &st, unix.AT_SYMLINK_NOFOLLOW) == 0 && st.Mode&0o600 == 0
}
