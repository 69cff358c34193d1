//go:build linux

package probe

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// removeQueue deletes what a row may have left outside under its name.
func removeQueue(name string) error {
	if err := os.Remove(filepath.Join("/dev/shm", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(b)), 0, 0); errno != 0 && errno != unix.ENOENT && errno != unix.ENOSYS {
		return errno
	}
	return nil
}
