package sys

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Fixed reports whether rename(2) cannot replace a file, whoever asks: something is
// mounted on it, it is immutable or append-only, or its directory is (statx(2)).
func Fixed(path string) (bool, error) {
	for p, bad := range map[string]uint64{
		path:               unix.STATX_ATTR_MOUNT_ROOT | unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND,
		filepath.Dir(path): unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND,
	} {
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, p, unix.AT_SYMLINK_NOFOLLOW, 0, &st); err != nil {
			return false, &os.PathError{Op: "statx", Path: p, Err: err}
		}
		if st.Attributes&bad != 0 {
			return true, nil
		}
	}
	return false, nil
}
