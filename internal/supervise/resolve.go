//go:build linux

package supervise

import (
	"bytes"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/policy"
)

const (
	pathMax  = unix.PathMax // with the zero byte
	maxLinks = 40           // as the kernel's MAXSYMLINKS
	maxDirs  = 256          // directories that are remembered
	dirTTL   = 200 * time.Millisecond
)

// directory is a directory of the view that paths were found in. It is
// remembered by the text that led there, for a moment: a link in that text may
// be changed in ways that are not seen.
type directory struct {
	fd    int
	real  string // absolute, without links and dots
	stat  unix.Stat_t
	tree  *policy.Tree            // that decides about what is in it
	below map[string]*policy.Tree // names in it that are trees themselves
	above bool                    // it is there only because a tree is below
	fixed bool                    // its file system is mounted for reading alone
	gates []unix.Stat_t           // directories above that not everybody may search; of a supervisor that may search all
	until int64
}

// resolver finds out where paths lead. It is for the receiver alone.
type resolver struct {
	places *places
	root   int    // descriptor of the view's root
	self   []byte // /proc/self/fd/, with room for a number
	dirs   map[string]*directory
	full   []byte
	other  []byte
	name   []byte
	link   [pathMax]byte
	taken  int  // descriptor of a process that r.name leads to; -1 for none
	strong bool // we may search directories that a caller may not
	asIs   bool // the last name is meant literally, also with a slash after it
}

func newResolver(p *places) *resolver {
	return &resolver{places: p, root: -1, taken: -1, dirs: map[string]*directory{}}
}

// location is where a path leads.
type location struct {
	asked    []byte
	dir      *directory   // nil when it is not there
	near     *directory   // then the nearest above it that is
	name     []byte       // in dir; empty for dir itself
	place    string       // absolute, where dir is nil; for what is no path its text
	tree     *policy.Tree // that decides; nil for outside the view
	above    bool         // a directory that leads to a tree
	exists   bool
	stuck    bool // its directory may still be there: a link of another process's is on the way
	slashed  bool // it is asked for as a directory, by a slash after its name
	followed bool // it is where a link leads that is the last name
	magic    bool // a descriptor of the process: dir and tree may still be nil
	stat     unix.Stat_t
	errno    syscall.Errno // of finding it
	unknown  string        // what could not be found out
	blind    bool          // because the kernel hides the process
}

// resolved is where s leads as text, "" where that is what was asked.
func (s *location) resolved() string {
	if s.dir == nil {
		if s.place == string(s.asked) {
			return ""
		}
		return s.place
	}
	r := s.dir.real
	if len(s.name) == 0 {
		if r == string(s.asked) {
			return ""
		}
		return r
	}
	sep := 1
	if r == "/" {
		sep = 0
	}
	if n := len(r) + sep; len(s.asked) == n+len(s.name) && string(s.asked[:len(r)]) == r && s.asked[n-1] == '/' && bytes.Equal(s.asked[n:], s.name) {
		return ""
	}
	return join(r, s.name)
}

func join(dir string, name []byte) string {
	if dir == "/" {
		return "/" + string(name)
	}
	return dir + "/" + string(name)
}

// locate finds what asked is for thread tid of p, when it is relative to the
// directory dirfd. out.name is good until the next call.
func (r *resolver) locate(p *proc, tid, dirfd int, asked []byte, follow bool, now int64, out *location) {
	*out = location{asked: asked}
	if len(asked) == 0 {
		out.errno = unix.ENOENT
		return
	}
	full := r.full[:0]
	if asked[0] != '/' {
		base, errno := r.base(p, tid, dirfd)
		from := asked
		if errno == unix.ENOENT && len(base) > 0 {
			if base, from = upFrom(base, asked); from == nil {
				out.errno = errno
				return
			}
			errno = 0
		}
		if errno != 0 {
			out.baseFailed(dirfd, errno)
			return
		}
		full = append(append(full, base...), '/')
		if base[0] != '/' {
			out.errno, out.place = unix.ENOTDIR, string(base)+"/"+string(asked)
			return
		}
		full = append(full, from...)
	} else {
		full = append(full, asked...)
	}
	r.full = full
	follow = follow || !r.asIs && full[len(full)-1] == '/' // what it leads to is meant, and a directory
	for n := range maxLinks {
		if at, done := r.magic(p, tid, full, follow, out); done {
			return
		} else if at != nil {
			full = at
		}
		target := r.step(full, follow, now, out)
		if target == nil && out.stuck {
			target = r.fallbackPath(full, n, out)
		}
		if target == nil {
			return
		}
		full = target
	}
	out.dir, out.errno, out.place = nil, unix.ELOOP, ""
}

// baseFailed sets the error if the directory of a relative path is not known.
func (s *location) baseFailed(dirfd int, errno syscall.Errno) {
	switch {
	case errno == unix.ENOENT && dirfd != unix.AT_FDCWD:
		s.errno = unix.EBADF // no such descriptor
	case errno == unix.ENOENT:
		s.errno = unix.ENOENT // the working directory was removed
	default:
		s.unknown, s.blind = "directory: "+unix.ErrnoName(errno), forbids(errno)
	}
}

// base reads the directory that a relative path starts from. One that was
// removed is ENOENT, with the text where it was.
func (r *resolver) base(p *proc, tid, dirfd int) ([]byte, syscall.Errno) {
	n := p.entry(r.name[:0], tid)
	if dirfd == unix.AT_FDCWD {
		n = append(n, "cwd\x00"...)
	} else {
		if dirfd < 0 {
			return nil, unix.ENOENT
		}
		n = append(strconv.AppendInt(append(n, "fd/"...), int64(dirfd), 10), 0)
	}
	r.name = n
	base, errno := r.read(p, tid)
	if errno == 0 && len(base) == 0 {
		errno = unix.ENOENT
	}
	if errno == 0 && bytes.HasSuffix(base, deleted) && r.isDeleted(p, r.name) {
		return base, unix.ENOENT
	}
	return base, errno
}

var deleted = []byte(" (deleted)")

// isDeleted reports whether a link whose text ends in (deleted) leads to what has no name.
func (r *resolver) isDeleted(p *proc, name []byte) bool {
	var st unix.Stat_t
	return fstatat(p.base(), name, &st, 0) == 0 && st.Nlink == 0
}

// step looks up the last name of full. It returns the path to go on with when
// that is a link to follow.
func (r *resolver) step(full []byte, follow bool, now int64, out *location) []byte {
	at := bytes.TrimRight(full, "/")
	i := bytes.LastIndexByte(at, '/')
	dir, name := at[:max(i, 0)], at[i+1:]
	if s := string(name); s == "" || s == "." || s == ".." {
		dir, name = at, nil
	}
	d, errno := r.directory(dir, now)
	if errno != 0 {
		r.missing(at, dir, errno, now, out)
		return nil
	}
	out.dir, out.name, out.tree, out.exists = d, name, d.tree, false
	out.slashed = out.slashed || len(name) > 0 && len(at) < len(full)
	if len(name) == 0 {
		out.stat, out.exists, out.above = d.stat, true, d.above
		if t := r.places.trees[d.real]; t != nil {
			out.tree = t
		}
		return nil
	}
	if d.below != nil {
		if t := d.below[string(name)]; t != nil {
			out.tree = t
		}
	}
	r.name = append(append(r.name[:0], name...), 0)
	switch errno := fstatat(d.fd, r.name, &out.stat, unix.AT_SYMLINK_NOFOLLOW); errno {
	case 0:
		out.exists = true
	case unix.ENOENT:
	default:
		out.errno = errno
	}
	if out.tree == nil && d.above {
		out.above = out.exists
	}
	if !out.exists || !follow || out.stat.Mode&unix.S_IFMT != unix.S_IFLNK {
		return nil
	}
	out.followed = true
	return r.target(d, out)
}

// target reads the link that out is, as an absolute path.
func (r *resolver) target(d *directory, out *location) []byte {
	text, errno := readlinkat(d.fd, r.name, r.link[:])
	if errno != 0 || len(text) == 0 {
		out.errno = errno
		return nil
	}
	if strings.HasPrefix(d.real, "/proc/") && (text[0] != '/' || bytes.HasSuffix(text, deleted)) {
		*out = location{asked: out.asked}
		out.setUnnamed(d.fd, r.name, text, false)
		return nil
	}
	to := r.other[:0]
	if text[0] != '/' {
		to = append(append(to, d.real...), '/')
	}
	to = append(to, text...)
	r.other, r.full = r.full, to // the next link is read into the other one
	return to
}

// directory finds a directory by the text that leads to it.
func (r *resolver) directory(at []byte, now int64) (*directory, syscall.Errno) {
	if len(at) == 0 {
		at = slash
	}
	d := r.dirs[string(at)]
	if d != nil && now < d.until {
		return d, 0
	}
	if len(at) >= pathMax {
		if at = compact(at); len(at) >= pathMax {
			return nil, errTooDeep
		}
	}
	r.name = append(append(r.name[:0], at...), 0)
	fd, errno := openIn(r.root, r.name, unix.O_PATH|unix.O_DIRECTORY)
	if errno != 0 {
		r.forget(at)
		return nil, errno
	}
	var st unix.Stat_t
	if errno := fstatat(fd, empty, &st, unix.AT_EMPTY_PATH); errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	if d != nil && d.stat.Dev == st.Dev && d.stat.Ino == st.Ino {
		// It may have been renamed, which the text of the descriptor says.
		unix.Close(d.fd)
	} else if d != nil {
		r.forget(at)
	}
	real, errno := r.pathOf(fd)
	if errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	if len(r.dirs) >= maxDirs {
		r.flush()
	}
	d = &directory{fd: fd, real: real, stat: st, until: now + int64(dirTTL)}
	d.tree, d.below, d.above = r.unhidden(r.places.treeFor(real)), r.places.below[real], r.places.above[real]
	var fs unix.Statfs_t
	d.fixed = unix.Fstatfs(fd, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
	if r.strong {
		d.gates = r.gates(real)
	}
	r.dirs[string(at)] = d
	return d, 0
}

// errTooDeep is for a path that is longer as a whole than the kernel takes at
// once, though the part of it that was asked for is not.
const errTooDeep = unix.EXFULL

var (
	slash = []byte("/")
	empty = []byte{0}
)

// pathOf says where a descriptor of ours leads. The kernel gives the path from
// the root of the mount namespace that it is of, and so as it is inside.
func (r *resolver) pathOf(fd int) (string, syscall.Errno) {
	text, errno := readlinkat(unix.AT_FDCWD, append(r.ownPath(fd), 0), r.link[:])
	if errno != 0 {
		return "", errno
	}
	return string(text), 0
}

// ownPath is the path of a descriptor of ours, until the next one.
func (r *resolver) ownPath(fd int) []byte {
	r.self = strconv.AppendInt(append(r.self[:0], "/proc/self/fd/"...), int64(fd), 10)
	return r.self
}

// forget drops what is remembered of one text.
func (r *resolver) forget(at []byte) {
	if d := r.dirs[string(at)]; d != nil {
		unix.Close(d.fd)
		delete(r.dirs, string(at))
	}
}

// flush drops everything.
func (r *resolver) flush() {
	r.closeTaken()
	for _, d := range r.dirs {
		unix.Close(d.fd)
	}
	clear(r.dirs)
}

// maxMissing bounds how far up a path is looked for something that exists.
const maxMissing = 16

// missing places a path whose directory cannot be reached: where would it be?
func (r *resolver) missing(at, dir []byte, errno syscall.Errno, now int64, out *location) {
	out.errno = errno
	out.dir, out.exists = nil, false // a link to it was there
	switch errno {
	case errTooDeep:
		out.errno, out.unknown = 0, "resolved: the path is too long"
		return
	case unix.EAGAIN:
		out.errno, out.unknown = 0, "resolved: directories of the path keep being moved"
		return
	}
	found := ""
	rest := at
	out.stuck = true // what lies deeper is looked for name by name
	for range maxMissing {
		i := bytes.LastIndexByte(dir, '/')
		if i < 0 {
			break
		}
		dir = dir[:i]
		if d, e := r.directory(dir, now); e == 0 {
			found, rest, out.near = d.real, at[len(dir):], d
			out.stuck = r.stuckAt(d, rest)
			break
		}
	}
	out.place = path.Clean("/" + found + "/" + string(rest))
	out.tree = r.places.treeFor(out.place)
	out.above = r.places.above[out.place]
}
