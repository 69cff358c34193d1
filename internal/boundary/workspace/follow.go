//go:build linux

package workspace

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// located is where a path leads when the host resolves it.
type located struct {
	path    string // absolute, without links; of a path that leads nowhere the part that is there
	real    string // where that is kept: in the tree laid over the workspace, or path itself
	st      unix.Statx_t
	link    string // text of a symbolic link
	there   bool
	missing []string // components after path that are not there
}

// follow resolves the absolute path target as the host would. It calls met for every
// link on the way and for the end. A path through more than 40 links leads nowhere.
func (s *scan) follow(target string, met func(located)) located {
	todo := strings.Split(target, "/")[1:]
	var done []string
	at := located{path: "/", real: "/", there: true, st: unix.Statx_t{Mode: typeDir}}
	for hops := 0; len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			done = done[:max(len(done)-1, 0)]
			at.path = "/" + strings.Join(done, "/")
			continue
		}
		full := "/" + strings.Join(append(slices.Clone(done), c), "/")
		next, err := s.lookup(full)
		if err != nil {
			return located{path: "/" + strings.Join(done, "/"), missing: append([]string{c}, todo...)}
		}
		if next.st.Mode&typeMask != typeLink {
			done, at = append(done, c), next
			continue
		}
		met(next)
		if hops++; hops > 40 {
			return located{path: full}
		}
		todo = append(strings.Split(next.link, "/"), todo...)
		if path.IsAbs(next.link) {
			done = nil
		}
	}
	if end, err := s.lookup(at.path); err == nil {
		at = end
	}
	met(at)
	return at
}

// lookup finds what is at a path none of whose directories is a link: in the
// tree that is laid over the workspace, or else on the host.
func (s *scan) lookup(full string) (located, error) {
	if rel, ok := s.relativeToRoot(full); ok && s.over != "" {
		at, err := statWithoutLinks(s.over+"/"+rel, full)
		if err == nil && at.st.Mode&typeMask == unix.S_IFCHR && at.st.Rdev_major == 0 && at.st.Rdev_minor == 0 {
			return at, unix.ENOENT // the mark of an overlay for a deleted name
		}
		if err == nil {
			return at, nil
		}
	}
	return statWithoutLinks(full, full)
}

// statWithoutLinks looks at real; no directory above it may be a link.
func statWithoutLinks(real, full string) (located, error) {
	at := located{path: full, real: real, there: true}
	dir, name := path.Split(real)
	if name == "" {
		name = "."
	}
	fd, err := openResolved(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return at, err
	}
	defer unix.Close(fd)
	h, err := openHandle(fd, name)
	if err != nil {
		return at, err
	}
	defer h.close()
	if h.is(typeLink) {
		if at.link, err = h.link(); err != nil {
			return at, err
		}
	}
	return at, unix.Statx(h.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &at.st)
}

// read returns the bytes of the regular file at p as a host program would read them,
// through links; nil if there is none. Nothing else is ever opened.
func (s *scan) read(p string) []byte {
	if !path.IsAbs(p) {
		return nil
	}
	at := s.follow(p, func(located) {})
	if !at.there || at.st.Mode&typeMask != typeReg {
		return nil
	}
	fd, err := openResolved(at.real, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), at.real)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxConfig+1))
	if err != nil {
		return nil
	}
	return b
}
