//go:build linux

package supervise

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// carry does ch in the directories that are open.
func (ch *change) carry(dir, to int) done {
	c, name := &ch.call, ch.at.name
	d := done{fd: -1}
	switch ch.op {
	case "write":
		return ch.openFile(dir)
	case "truncate":
		return ch.truncate(dir)
	case "chmod":
		return ch.chmod(dir)
	case "mkdir":
		d.errno = asErrno(unix.Mkdirat(dir, name, ch.mode()))
		if d.errno == 0 {
			ch.setMode(dir)
		}
	case "unlink":
		flags := 0
		if c.removesDirectory() {
			flags = unix.AT_REMOVEDIR
		}
		if ch.at.exists && ch.at.kind != unix.S_IFREG && ch.at.kind != unix.S_IFLNK && ch.at.kind != unix.S_IFDIR {
			d.why = notRegular
			return d
		}
		d.errno = asErrno(unix.Unlinkat(dir, name, flags))
	case "rename":
		if ch.at.exists && ch.at.kind != unix.S_IFREG || ch.dest.exists && ch.dest.kind != unix.S_IFREG {
			d.why = notRegular
			return d
		}
		d.errno = asErrno(unix.Renameat2(dir, name, to, ch.dest.name, uint(c.flag())))
	}
	return d
}

const notRegular = "it is not a regular file, and nothing else is changed outside"

// mode is what the mode of something that is made comes to.
func (ch *change) mode() uint32 { return uint32(ch.call.arg(ch.call.info.arg)) &^ ch.umask & 0o777 }

// handle opens what ch is about without opening it: a regular file with one name,
// or a directory where that will do.
func (ch *change) handle(dir int, directory bool) (fd int, st unix.Stat_t, d done) {
	d.fd = -1
	fd, err := openHost(dir, ch.at.name, unix.O_PATH|unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	d.errno = asErrno(err)
	kind := st.Mode & unix.S_IFMT
	switch {
	case d.errno != 0:
	case kind == unix.S_IFDIR && directory:
	case kind != unix.S_IFREG:
		d.why = notRegular
	case st.Nlink != 1:
		d.why = "the file has " + strconv.FormatUint(uint64(st.Nlink), 10) + " names"
	case !identityOf(&st).file(ch.at.is):
		d.why = "it changed while it waited"
	}
	if (d.why != "" || d.errno != 0) && fd >= 0 {
		unix.Close(fd)
	}
	return fd, st, d
}

// fdPath returns the path of a descriptor of ours.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// openFile opens a regular file for writing, or makes it. It is only written to,
// however the call would open it: that is what the human was shown.
func (ch *change) openFile(dir int) done {
	flags := ch.call.flags
	const kept = unix.O_APPEND | unix.O_SYNC | unix.O_DSYNC
	use := int(flags&kept) | unix.O_WRONLY | unix.O_CLOEXEC | unix.O_NOCTTY
	if !ch.at.exists {
		if flags&unix.O_CREAT == 0 {
			return done{fd: -1, errno: unix.ENOENT}
		}
		fd, err := unix.Openat(dir, ch.at.name, use|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, ch.mode())
		if err != nil {
			return done{fd: -1, errno: asErrno(err)}
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&0o777 != ch.mode() { // of our own umask
			_ = unix.Fchmod(fd, ch.mode())
		}
		return done{fd: fd}
	}
	if flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL {
		return done{fd: -1, errno: unix.EEXIST}
	}
	path, _, d := ch.handle(dir, false)
	if d.why != "" || d.errno != 0 {
		return d
	}
	defer unix.Close(path)
	fd, err := unix.Open(fdPath(path), use|int(flags&unix.O_TRUNC), 0)
	if err != nil {
		return done{fd: -1, errno: asErrno(err)}
	}
	return done{fd: fd}
}

func (ch *change) truncate(dir int) done {
	path, _, d := ch.handle(dir, false)
	if d.why != "" || d.errno != 0 {
		return d
	}
	defer unix.Close(path)
	d.errno = asErrno(unix.Truncate(fdPath(path), int64(ch.call.args[1])))
	return d
}

// chmod changes the nine bits of a file or directory; the others would change
// what the host does with it.
func (ch *change) chmod(dir int) done {
	mode := uint32(ch.call.arg(ch.call.info.arg)) & 0o7777
	if mode&^0o777 != 0 {
		return done{fd: -1, why: "bits besides read, write and execute are not set outside"}
	}
	path, st, d := ch.handle(dir, true)
	if d.why != "" || d.errno != 0 {
		return d
	}
	defer unix.Close(path)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= st.Mode & 0o7000
	}
	d.errno = asErrno(unix.Chmod(fdPath(path), mode))
	return d
}

// setMode undoes our own umask for a directory that was just made.
func (ch *change) setMode(dir int) {
	fd, err := openHost(dir, ch.at.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&0o777 != ch.mode() {
		_ = unix.Chmod(fdPath(fd), ch.mode()|st.Mode&0o7000)
	}
}
