package policy

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// located is a file as the kernel found it.
type located struct {
	path  string // absolute; no component is a link
	dir   bool
	file  bool // a regular file
	mode  uint32
	owner int
}

var errMoved = errors.New("it was replaced while it was looked at")

// locate opens path, following links, asks the kernel for its name, and opens
// that name without following any. Both must be the same file: then the name
// is one that cannot lead elsewhere by a link. Whoever uses the name later
// opens it in the same way.
func locate(path string) (located, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return located{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var first, second unix.Stat_t
	if err := unix.Fstat(fd, &first); err != nil {
		return located{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return located{}, fmt.Errorf("asking for the name of %s: %w", path, err)
	}
	if !strings.HasPrefix(real, "/") || strings.ContainsAny(real, "\n\r") {
		return located{}, fmt.Errorf("%s has the name %q, which cannot be used", path, printable(real))
	}
	again, err := unix.Openat2(unix.AT_FDCWD, real, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOSYS) {
		return located{}, fmt.Errorf("%s: openat2 is not there: the kernel is older than 5.6, or holdfast runs inside another boundary, which it cannot", path)
	}
	if err != nil {
		return located{}, fmt.Errorf("%s: %w: %w", path, errMoved, err)
	}
	defer unix.Close(again)
	if err := unix.Fstat(again, &second); err != nil {
		return located{}, fmt.Errorf("looking at %s: %w", real, err)
	}
	if first.Dev != second.Dev || first.Ino != second.Ino {
		return located{}, fmt.Errorf("%s: %w", path, errMoved)
	}
	kind := second.Mode & unix.S_IFMT
	return located{
		path: real, dir: kind == unix.S_IFDIR, file: kind == unix.S_IFREG,
		mode: second.Mode, owner: int(second.Uid),
	}, nil
}
