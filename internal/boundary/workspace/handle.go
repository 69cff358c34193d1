//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// handle is one file of a tree that others may be changing. It refers to the file, not
// to its name: what was learned of it stays true, whatever its name leads to meanwhile.
// It holds no right to the contents (O_PATH), so that opening it never blocks and has
// no side effects.
type handle struct {
	fd int
	st unix.Stat_t // when it was opened
}

// openHandle opens the file with a name; of a link, the link itself and not its target.
func openHandle(dir int, name string) (*handle, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	h := &handle{fd: fd}
	if err := unix.Fstat(fd, &h.st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return h, nil
}

func (h *handle) close() { unix.Close(h.fd) }

// is reports whether the file is of a type, one of S_IFMT.
func (h *handle) is(kind uint32) bool { return h.st.Mode&typeMask == kind }

// sameFile reports whether both refer to one file. While a handle is open, no other file
// gets its number.
func (h *handle) sameFile(o *handle) bool { return h.st.Ino == o.st.Ino && h.st.Dev == o.st.Dev }

// named reports whether the name leads to the file now.
func (h *handle) named(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Ino == h.st.Ino && st.Dev == h.st.Dev
}

// link is the text of a symbolic link.
func (h *handle) link() (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(h.fd, "", buf)
	return string(buf[:max(n, 0)]), err
}

// read opens a regular file for reading, and nothing else: opening another may
// block or act.
func (h *handle) read() (*os.File, error) {
	if !h.is(typeReg) {
		return nil, fmt.Errorf("it is not a regular file: %w", unix.EINVAL)
	}
	fd, err := unix.Open(selfPath(h.fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "file"), nil
}

// openOwned opens a directory for reading, after giving its owner every right to
// it.
func (h *handle) openOwned() (int, error) {
	if err := chmodFD(h.fd, 0o700); err != nil {
		return -1, err
	}
	return openAt(h.fd, []byte(".\x00"))
}

// makeBeneath makes the directories of rel below root and opens the last of them.
// A list of files that was made while names were exchanged has one both as a link
// and as a directory: no link is followed.
func makeBeneath(root int, rel string) (int, error) {
	fd, err := openAt(root, []byte(".\x00"))
	if err != nil || rel == "." {
		return fd, err
	}
	for c := range strings.SplitSeq(rel, "/") {
		err := unix.Mkdirat(fd, c, 0o700)
		next := -1
		if err == nil || errors.Is(err, unix.EEXIST) {
			next, err = openAt(fd, append([]byte(c), 0))
		}
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// openState opens a directory of Holdfast's own state. No run can change what
// leads to it, and the user may keep it behind a link.
func openState(dir string) (int, error) {
	return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// chmodFD adds permission bits to the file or directory of a descriptor.
func chmodFD(fd int, bits uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&bits == bits {
		return nil
	}
	return setMode(fd, st.Mode|bits)
}

// setMode sets the permission bits of the file or directory of a descriptor, even of an
// O_PATH one, which fchmod(2) does not take.
func setMode(fd int, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & typeMask; kind != typeReg && kind != typeDir {
		return unix.EOPNOTSUPP
	}
	return unix.Chmod(selfPath(fd), mode&0o7777)
}

// selfPath is a path by which the kernel finds exactly the file of a descriptor of this
// process (proc_pid_fd(5)).
func selfPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
