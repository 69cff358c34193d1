//go:build linux

package workspace

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// maxNames bounds how many names a walk remembers, at about 40 bytes each: a run can
// make a tree that is larger than memory.
const maxNames = 1 << 19

// maxDirs bounds how many directories are remembered, at about 300 bytes each, where there
// are more names than that: those that may be quiet, with the directories in them.
const maxDirs = 1 << 17

// walkMemory is what a walk remembers of names; the zero value is nothing.
type walkMemory struct {
	names *names   // of a tree at the start
	atEnd *endWalk // of what changed
}

// entries visits the entries of d, and remembers them if that is wanted.
func (w *walker) entries(d *dir, list []byte) (subs []sub, err error) {
	var end *changedDir
	if w.atEnd != nil {
		end = w.atEnd.enter(w, d)
	}
	var kept []byte
	if w.names != nil || end != nil {
		kept = make([]byte, 0, len(list))
	}
	count, plain, below := 1, true, false
	for len(list) > 0 {
		var e entry
		e, list = next(list)
		if e.nameZ == nil {
			continue
		}
		w.st.Mode, w.listed = 0, e.typ == unix.DT_UNKNOWN
		if err := w.entry(d, e, &subs); err != nil {
			return nil, err
		}
		if kept != nil {
			kept, count = appendName(kept, e, w.st.Mode), count+1
			below = below || e.typ == unix.DT_DIR
			// A file with several names, or with another mounted over it, can be changed elsewhere.
			plain = plain && !w.listed && (w.st.Mode&typeMask != typeReg || w.st.Nlink < 2 && w.st.Ino == e.ino)
		}
		if w.atEnd != nil && w.st.Mode != 0 && w.st.Mode&typeMask != typeDir && (end != nil || nanos(w.st.Ctime) >= w.atEnd.began) {
			w.atEnd.file(w, d, e, &w.st)
		}
	}
	switch {
	case end != nil:
		w.atEnd.leave(end, kept, count)
	case w.names != nil:
		w.names.add(w.path, d, &listing{list: kept, subs: below, watched: d.watched && plain && !d.git}, count)
	}
	return subs, nil
}

// names holds the names that the walk at the start found in a tree, to find later what
// was deleted or moved. It costs one copy of what the kernel returned.
type names struct {
	mu     sync.Mutex
	dirs   []*listing
	left   atomic.Int64 // names that still fit
	byIno  map[uint64][]*listing
	byPath map[string]*listing
	watch  watch

	unwatched int64 // names that are read before the first directory is watched
}

// listing is one directory as it was: its entries one after another, see
// appendName.
type listing struct {
	path string // relative to the root
	ino  uint64 // as the directory above has it; 0 of the root
	list []byte
	seen atomic.Bool // at the end: it is there

	watched bool  // it may be quiet: nothing in it but directories has to be looked at then
	ctime   int64 // when it was watched
	subs    bool  // there are directories in it
	dep     bool  // below a tree that is listed as one
	inGit   bool  // see dir
	repo    bool
}

// named is one entry of a listing.
type named struct {
	ino  uint64
	mode uint16 // 0 where no status was asked for
	typ  byte   // DT_*
	name string
}

func newNames() *names {
	n := &names{unwatched: unwatched}
	n.left.Store(maxNames)
	return n
}

// whole reports whether every name is remembered.
func (n *names) whole() bool { return n.left.Load() >= 0 }

func (n *names) add(path []byte, d *dir, l *listing, count int) {
	if n.left.Add(-int64(count)) < 0 {
		if !l.watched {
			return
		}
		l.list = directoriesOf(l.list)
	}
	l.path, l.ino, l.ctime = string(path), d.ino, d.ctime
	l.dep, l.inGit, l.repo = d.dep != nil, d.inGit, d.repo
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.whole() || len(n.dirs) < maxDirs {
		n.dirs = append(n.dirs, l)
	} else {
		n.watch.ended.Store(true)
	}
}

// index prepares look-ups.
func (n *names) index() {
	n.byIno, n.byPath = make(map[uint64][]*listing, len(n.dirs)), make(map[string]*listing, len(n.dirs))
	for _, l := range n.dirs {
		l.seen.Store(false)
		n.byIno[l.ino] = append(n.byIno[l.ino], l)
		n.byPath[l.path] = l
	}
}

// listingFor returns the listing of a directory with the inode ino, preferably the one
// that was at path.
func (n *names) listingFor(path string, ino uint64) *listing {
	all := n.byIno[ino]
	for _, l := range all {
		if l.path == path {
			return l
		}
	}
	if len(all) > 0 && ino != 0 {
		return all[0]
	}
	return nil
}

// appendName appends an entry: inode, mode, type, length and bytes of its name.
// That is never more than the kernel took for it.
func appendName(list []byte, e entry, mode uint16) []byte {
	name := e.name()
	typ := e.typ
	if typ == unix.DT_UNKNOWN {
		typ = byte(mode & unix.S_IFMT >> 12)
	}
	list = binary.NativeEndian.AppendUint64(list, e.ino)
	list = binary.NativeEndian.AppendUint16(list, mode)
	list = append(list, typ)
	list = binary.NativeEndian.AppendUint16(list, uint16(len(name)))
	return append(list, name...)
}

// directoriesOf returns the entries of a listing that are directories.
func directoriesOf(list []byte) []byte {
	var out []byte
	for len(list) > 0 {
		size := 13 + int(binary.NativeEndian.Uint16(list[11:]))
		if list[10] == unix.DT_DIR {
			out = append(out, list[:size]...)
		}
		list = list[size:]
	}
	return out
}

// eachName calls f for the entries of a listing.
func eachName(list []byte, f func(named)) {
	for len(list) > 0 {
		size := int(binary.NativeEndian.Uint16(list[11:]))
		f(named{
			ino: binary.NativeEndian.Uint64(list), mode: binary.NativeEndian.Uint16(list[8:]),
			typ: list[10], name: string(list[13 : 13+size]),
		})
		list = list[13+size:]
	}
}

// endWalk is what the walk at the end saw that is not as it was.
type endWalk struct {
	start *names // nil where they are lost, or too many
	known *names // of directories that may be quiet: start, or what was kept of too many; nil where they are lost
	many  bool
	began int64

	happened map[string]bool // directories by handle; nil if unknown, and then none is quiet

	mu    sync.Mutex
	dirs  []*changedDir
	files []changedFile
	left  atomic.Int64 // names and files that still fit
}

// changedDir is a directory whose entries may differ from those at the start.
type changedDir struct {
	path    string
	ino     uint64
	list    []byte
	born    bool // created during the run, as far as the file system records it
	datable bool // the file system records when files were created
	from    *listing
}

// changedFile is a file whose inode changed during the run, or that lies in a
// changedDir.
type changedFile struct {
	dir, name string
	st        unix.Statx_t
	in        *listing // its directory at the start, if that is not a changedDir
}

func newEndWalk(start *names, began int64) *endWalk {
	l := &endWalk{start: start, known: start, began: began}
	l.left.Store(maxNames)
	if start != nil && !start.whole() {
		l.start, l.many = nil, true
	}
	if l.known != nil {
		l.known.index()
	}
	return l
}

// enter looks at a directory before its entries are read. It returns a changedDir if
// the directory is one.
func (l *endWalk) enter(w *walker, d *dir) *changedDir {
	var st unix.Statx_t
	if statAt(d.fd, []byte(".\x00"), &st) != nil {
		return nil
	}
	if l.start == nil {
		d.moved = d.moved || d.depth > 0 && nanos(st.Ctime) >= l.began
		return nil
	}
	was := l.start.listingFor(string(w.path), d.ino)
	if was != nil && was.path == string(w.path) && nanos(st.Ctime) < l.began {
		was.seen.Store(true)
		d.was = was
		return nil
	}
	born, datable := birthOf(&st)
	return &changedDir{path: string(w.path), ino: d.ino, datable: datable, born: datable && born >= l.began}
}

// isMoved reports whether d is new or was at another path: a relative link in it may
// lead elsewhere now although the link itself is unchanged. Where the names are lost it
// may have been, which its change time or that of one above says.
func (w *walker) isMoved(d *dir) bool {
	if w.atEnd == nil || w.atEnd.start == nil {
		return d.moved
	}
	was := w.atEnd.start.byPath[string(w.path)]
	return was == nil || was.ino != d.ino
}

func (l *endWalk) leave(e *changedDir, list []byte, count int) {
	if l.left.Add(-int64(count)) < 0 {
		return
	}
	e.list = list
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append(l.dirs, e)
}

func (l *endWalk) file(w *walker, d *dir, e entry, st *unix.Statx_t) {
	if l.left.Add(-1) < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, changedFile{dir: string(w.path), name: string(e.name()), st: *st, in: d.was})
}
