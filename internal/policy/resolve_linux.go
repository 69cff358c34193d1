package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var errMoved = errors.New("it was replaced while it was being checked")

const noLinks = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// locate opens path, one link after the other, asks the kernel for the name of what was
// opened, and opens that name without following any. Both must be the same file: then
// the name is one that cannot lead elsewhere by a link. Later users of the name open it
// in the same way. If a path cannot be opened, the links on the way are still returned.
func locate(path string) (located, error) {
	var links []link
	fd, err := openPlain(path)
	if errors.Is(err, unix.ENOSYS) {
		return located{}, fmt.Errorf("%s: openat2 is not available: the kernel is older than 5.6, or holdfast runs inside another sandbox, which is not supported", path)
	}
	if errors.Is(err, unix.ELOOP) {
		fd, links, _, err = follow(path)
	}
	if err != nil {
		return located{links: links}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	at, err := identify(fd, path)
	at.links = links
	return at, err
}

// identify names the file that was opened as path.
func identify(fd int, path string) (located, error) {
	var first, second unix.Stat_t
	if err := unix.Fstat(fd, &first); err != nil {
		return located{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	real, err := nameOf(fd)
	if err != nil {
		return located{}, fmt.Errorf("reading the real name of %s: %w", path, err)
	}
	if !strings.HasPrefix(real, "/") || strings.ContainsAny(real, "\n\r") {
		return located{}, fmt.Errorf("%s has the name %q, which cannot be used", path, printable(real))
	}
	again, err := openPlain(real)
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
		mode: second.Mode, owner: int(second.Uid), id: FileID{second.Dev, second.Ino},
	}, nil
}

// openPlain opens a path that contains no link; ELOOP means that there is one.
func openPlain(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: noLinks})
}

func nameOf(fd int) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// follow walks an absolute path as the kernel does, by descriptors. It returns
// what it ends at, the links on the way, and the name of that end. Where the walk
// fails, the descriptor is -1, and what is left of the path is taken for what it
// says: real is the name that it would have.
func follow(path string) (fd int, links []link, real string, err error) {
	rest := strings.Split(path, "/")
	if fd, err = openPlain("/"); err != nil {
		return -1, nil, filepath.Clean(path), err
	}
	for real = "/"; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next, target, err := step(fd, name)
		if err == nil && target != nil {
			target.at = filepath.Join(real, name)
			links = append(links, *target)
			if len(links) > maxFollowed {
				err = unix.ELOOP
			}
		}
		if err != nil {
			unix.Close(fd)
			return -1, links, filepath.Join(real, name, filepath.Join(rest...)), err
		}
		switch {
		case target == nil:
			unix.Close(fd)
			fd = next
		case filepath.IsAbs(target.target):
			unix.Close(fd)
			if fd, err = openPlain("/"); err != nil {
				return -1, links, filepath.Clean(path), err
			}
			fallthrough
		default:
			rest = append(strings.Split(target.target, "/"), rest...)
		}
		if real, err = nameOf(fd); err != nil {
			unix.Close(fd)
			return -1, links, filepath.Clean(path), err
		}
	}
	return fd, links, real, nil
}

// steps returns the links on the way of an absolute path, each by a name without
// links before it, and the name that is left at the end. What does not exist is
// taken for what it will be: no link.
func steps(path string) (links []string, real string) {
	fd, found, real, _ := follow(path)
	if fd >= 0 {
		unix.Close(fd)
	}
	for _, l := range found {
		links = append(links, l.at)
	}
	return links, real
}

// step opens one component of a path: what it is, or the link that it is.
func step(dir int, name string) (fd int, to *link, err error) {
	fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return fd, nil, nil
	}
	defer unix.Close(fd)
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return -1, nil, err
	}
	return -1, &link{target: string(buf[:n]), owner: int(st.Uid)}, nil
}
