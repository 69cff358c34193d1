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
	if _, _, no := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(b)), 0, 0); no != 0 && no != unix.ENOENT && no != unix.ENOSYS {
		return no
	}
	return nil
}
