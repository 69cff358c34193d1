package policy

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readPolicy returns the bytes of a policy file. A file that others than the user or
// root can write does not express what the user wants; a project's file may belong to
// anyone, because it is not obeyed unless its bytes are trusted, but it must be a
// regular file and not a link.
func readPolicy(path string, uid int, project bool) ([]byte, error) {
	at := Origin{File: path}
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	if project {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		if project && err == unix.ELOOP {
			return nil, fault(at, "replace it with a regular file", "is a symbolic link; a project's policy is a regular file")
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fault(at, "", "is not a regular file")
	case !project && st.Uid != 0 && int(st.Uid) != uid:
		return nil, fault(at, "make a copy of your own and read it first", "belongs to user %d, not to you or root", st.Uid)
	case !project && st.Mode&0o022 != 0:
		return nil, fault(at, "chmod go-w "+quote(path), "can be written by others (mode %#o)", st.Mode&0o777)
	case st.Size > MaxFile:
		return nil, fault(at, "", "is %d bytes long; a policy may have at most %d", st.Size, MaxFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}
