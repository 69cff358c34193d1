//go:build unix

package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// readOwned reads a regular file that belongs to the user or root and that no
// other user can write. It returns the path of the open file, with every link
// resolved. follow is whether the last component may be a link.
func readOwned(path string, follow bool, most int64) (data []byte, real string, err error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY // neither a pipe nor a terminal blocks us
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular():
		return nil, "", fmt.Errorf("%s is not a regular file", path)
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return nil, "", fmt.Errorf("%s belongs to user %d, not to you or root", path, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return nil, "", &fetchError{text: fmt.Sprintf("%s can be written by others (mode %#o)", path, info.Mode().Perm()), hint: "chmod go-w " + path}
	case info.Size() > most:
		return nil, "", fmt.Errorf("%s has %d bytes; %d are allowed", path, info.Size(), most)
	}
	if real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil {
		if real, err = filepath.EvalSymlinks(path); err != nil { // a system without /proc
			return nil, "", err
		}
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s grew while it was read", path)
	}
	return data, real, err
}

// lockTime is how long another process may hold a lock: it writes one small file.
const lockTime = 10 * time.Second

// lockFile waits for the lock of a directory and takes it. It gives up after a
// while, because the holder may have been stopped.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if err := sys.WaitLock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// lockInode waits for the lock of a file that others replace while they have it, and
// takes it.
func lockInode(ctx context.Context, path string) (unlock func(), err error) {
	const flags = syscall.O_NONBLOCK | syscall.O_NOCTTY
	for {
		f, err := os.OpenFile(path, os.O_RDWR|flags, 0) // NFS locks no file that is open for reading
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			f, err = os.OpenFile(path, os.O_RDONLY|flags, 0)
		}
		if err != nil {
			return nil, err
		}
		err = sys.WaitLock(ctx, f)
		mine, bad := f.Stat()
		now, gone := os.Stat(path)
		if err = errors.Join(err, bad, gone); err == nil && os.SameFile(mine, now) {
			return func() { f.Close() }, nil
		}
		if f.Close(); err != nil {
			return nil, err
		}
	}
}

// newLoginFile makes a file that can take the place of one that belongs to the user,
// with the same owner and mode, and if that can be, the same group.
func newLoginFile(path string) (*sys.Replacement, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s is not a file of yours", path)
	}
	if fixed, err := sys.Fixed(path); err != nil || fixed {
		return nil, cmp.Or(err, fmt.Errorf("%s cannot be replaced: something is mounted on it, or it or its directory is immutable (lsattr)", path))
	}
	r, err := sys.NewReplacement(path, info.Mode().Perm())
	if err != nil {
		return nil, err
	}
	r.SetGroup(int(st.Gid))
	if err := r.Reserve(int(info.Size()) + answerMost); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// isolate puts a command into a process group of its own, which is killed as a
// whole when the command's context ends, and by the returned function.
func isolate(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error {
		if cmd.Process == nil {
			return nil
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	cmd.Cancel = kill
	// The leader was waited for, but while a process of the group lives its
	// number is not reused; without any, there is nothing to kill.
	return func() { kill() }
}
