//go:build linux

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	maxHeld  = 256   // directories of one branch that are held open; deeper ones are left and found again through ".."
	maxDepth = 16384 // components; a deeper tree is not read
	maxPath  = 3500  // bytes; what lies deeper could not be named to mount(2) with the root before it
)

// dir is a directory that is being walked.
type dir struct {
	fd     int
	depth  int
	states []*node // partial matches that continue in this directory
	git    bool    // git takes it for a repository, or its name is .git
	inGit  bool    // below one: only names of repositories count
	repo   bool    // among what git writes to by name: refs, logs, objects
	dep    *dep    // below a tree that is listed as one
	ino    uint64  // as the directory above has it; 0 of the root
	was    *listing
	still  *listing // at the end, if it was quiet
	moved  bool     // at the end, where names are lost: this or one above may have been moved

	watched bool // from the start, and ctime is when that began
	ctime   int64
}

// gits reports whether the entries of d are what git writes to by name.
func (d *dir) gits() bool { return d.git || d.inGit || d.repo }

// dep is a tree that is listed as one.
type dep struct {
	path    string
	rule    *Rule
	changed atomic.Int64 // files that Settle found new or changed in it
}

// entry is one name of a directory.
type entry struct {
	nameZ  []byte // with the NUL
	folded []byte // the name as rules have it; see fold
	typ    byte   // DT_*
	ino    uint64
	rule   *Rule // nil for an ordinary name
}

func (e entry) name() []byte { return e.nameZ[:len(e.nameZ)-1] }

// walker is one goroutine's state of a walk.
type walker struct {
	*walk
	path []byte // of the current directory, relative to the root, "" at the root
	buf  []byte // getdents64
	fold []byte
	full []byte       // a path that is looked up
	st   unix.Statx_t // of the entry at hand

	listed bool // the entry at hand is no directory, and a rule is about it
}

type walk struct {
	ctx   context.Context
	rules *Rules
	v     visitor
	limit int // bytes of a path; 0 for none
	walkMemory
	busy chan struct{} // one for each goroutine that walks
	wg   sync.WaitGroup
	mu   sync.Mutex
	err  error
}

var errTooDeep = errors.New("nested too deeply to be read")

// run walks the tree below root, which it does not close.
func run(ctx context.Context, root int, rules *Rules, limit int, inGit bool, v visitor, m walkMemory) error {
	fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	n := min(runtime.NumCPU(), 8)
	wk := &walk{ctx: ctx, rules: rules, v: v, limit: limit, walkMemory: m, busy: make(chan struct{}, n)}
	wk.busy <- struct{}{}
	w := newWalker(wk)
	err = w.dir(&dir{fd: fd, inGit: inGit, states: []*node{rules.root}})
	unix.Close(fd)
	<-wk.busy // another may take what is left of a directory
	wk.wg.Wait()
	w.free()
	if err != nil {
		return err
	}
	return wk.err
}

var walkers = sync.Pool{New: func() any {
	return &walker{buf: make([]byte, 64<<10), fold: make([]byte, 0, 256)}
}}

func newWalker(wk *walk) *walker {
	w := walkers.Get().(*walker)
	w.walk, w.path = wk, w.path[:0]
	return w
}

// free gives the buffers back. A buffer that a huge directory made is dropped.
func (w *walker) free() {
	if w.walk = nil; len(w.buf) <= 1<<20 {
		walkers.Put(w)
	}
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// dir visits the entries of d and then its directories.
func (w *walker) dir(d *dir) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if d.still != nil {
		subs, err := w.directories(d)
		if err != nil {
			return err
		}
		return w.descend(d, subs)
	}
	if w.names != nil && maxNames-w.names.left.Load() >= w.names.unwatched {
		d.ctime, d.watched = w.names.watch.add(d)
	}
	var n int
	var err error
	if w.buf, n, err = readDirents(d.fd, w.buf); err != nil {
		return fmt.Errorf("reading directory %q: %w", w.path, err)
	}
	list := w.buf[:n]
	d.git = d.git || isRepository(list, w)
	if d.git {
		if err := w.v.repository(w, d); err != nil {
			return err
		}
	}
	subs, err := w.entries(d, list)
	if err != nil {
		return err
	}
	return w.descend(d, subs)
}

// sub is a directory that remains to be entered.
type sub struct {
	nameZ  []byte
	ino    uint64
	states []*node
	git    bool
	inGit  bool
	repo   bool
	dep    *dep
}

// entry looks at one name, and appends it to subs if it will be entered.
func (w *walker) entry(d *dir, e entry, subs *[]sub) error {
	st := &w.st
	if e.typ == unix.DT_UNKNOWN {
		if err := statAt(d.fd, e.nameZ, st); err != nil {
			return ignoreGone(err)
		}
		e.typ = byte(st.Mode & unix.S_IFMT >> 12)
	}
	e.folded = fold(e.name(), w.fold)
	if done, err := w.v.beforeRules(w, d, e); done || err != nil {
		return err
	}
	s := sub{inGit: d.inGit, dep: d.dep}
	if string(e.folded) == ".git" {
		if w.listed = e.typ != unix.DT_DIR; w.listed {
			return w.v.dotGit(w, d, e)
		}
		s.git, s.inGit = true, true
	}
	e.rule = w.match(d, e, &s)
	enter := e.typ == unix.DT_DIR
	switch {
	case e.rule != nil && e.rule.Tier == Deny:
		ok, err := w.v.deny(w, d, e)
		if err != nil {
			return err
		}
		enter = enter && ok
	case enter && e.rule != nil && d.dep == nil:
		if err := statAt(d.fd, e.nameZ, st); err != nil {
			return ignoreGone(err)
		}
		if err := w.v.flag(w, d, e, st); err != nil {
			return err
		}
		s.dep = &dep{path: w.pathTo(e), rule: e.rule}
		w.v.tree(s.dep)
	case !enter:
		return w.other(d, e, st)
	}
	if enter {
		if d.git && !s.inGit && isRefDir(e.folded) && w.v.knownRepository(w.path) {
			s.inGit = true
		}
		s.repo = d.repo || d.git && isRefDir(e.folded)
		s.nameZ, s.ino = bytes.Clone(e.nameZ), e.ino
		*subs = append(*subs, s)
	}
	return nil
}

func (w *walker) other(d *dir, e entry, st *unix.Statx_t) error {
	if e.typ == unix.DT_REG || e.rule != nil {
		if err := statAt(d.fd, e.nameZ, st); err != nil {
			return ignoreGone(err)
		}
	} else {
		st = nil
	}
	if e.rule != nil && d.dep == nil {
		return w.v.flag(w, d, e, st)
	}
	return w.v.file(w, d, e, st)
}

// isRefDir names the directories of a repository whose entries are made of names
// of branches and tags, which may be any name of the list.
func isRefDir(name []byte) bool {
	return string(name) == "refs" || string(name) == "logs" || string(name) == "objects"
}

// descend enters the directories of d, and hands half of those that are left to
// another goroutine where one is free.
func (w *walker) descend(d *dir, subs []sub) error {
	for len(subs) > 0 {
		if half := len(subs) / 2; half > 0 && w.handOver(d, subs[len(subs)-half:]) {
			subs = subs[:len(subs)-half]
		}
		if err := w.enter(d, subs[0]); err != nil {
			return err
		}
		subs = subs[1:]
	}
	return nil
}

// enter walks the directory s of d.
func (w *walker) enter(d *dir, s sub) error {
	was := w.atEnd.candidate(w, &s)
	if was != nil && !was.subs && w.atEnd.quiet(was, d.fd, s.nameZ) {
		return nil
	}
	base := len(w.path)
	fd, err := openAt(d.fd, s.nameZ)
	if err == nil && (d.depth >= maxDepth || w.limit > 0 && base+len(s.nameZ) > w.limit) {
		unix.Close(fd)
		err = errTooDeep
	}
	if err != nil {
		if ignoreGone(err) == nil {
			return nil
		}
		if fd, err = w.v.closed(w, d, entry{nameZ: s.nameZ, typ: unix.DT_DIR}, err); err != nil || fd < 0 {
			return err
		}
	}
	child := &dir{fd: fd, depth: d.depth + 1, states: s.states, git: s.git, inGit: s.inGit, repo: s.repo, dep: s.dep, ino: s.ino, moved: d.moved}
	if was != nil && was.subs && w.atEnd.quiet(was, fd, []byte(".\x00")) {
		child.still = was
	}
	w.path = w.join(w.path, s.nameZ[:len(s.nameZ)-1])
	err = w.child(d, child)
	w.path = w.path[:base]
	return err
}

// child walks one directory in this goroutine. Deep in a tree the parent's
// descriptor is given up meanwhile and taken again through "..", which must
// then be the same directory.
func (w *walker) child(d, child *dir) error {
	if child.depth <= maxHeld {
		err := w.dir(child)
		unix.Close(child.fd)
		return err
	}
	var before, after unix.Stat_t
	if err := unix.Fstat(d.fd, &before); err != nil {
		return err
	}
	unix.Close(d.fd)
	d.fd = -1
	err := w.dir(child)
	if child.fd < 0 {
		return err
	}
	if err == nil {
		d.fd, err = openAt(child.fd, []byte("..\x00"))
	}
	unix.Close(child.fd)
	if err != nil {
		return err
	}
	if err := unix.Fstat(d.fd, &after); err != nil {
		return err
	}
	if before.Ino != after.Ino || before.Dev != after.Dev {
		return fmt.Errorf("directory %q was moved while it was read", w.path)
	}
	return nil
}

// handOver starts a goroutine for directories of d if one is free.
func (w *walker) handOver(d *dir, subs []sub) bool {
	if d.depth >= maxHeld {
		return false
	}
	select {
	case w.busy <- struct{}{}:
	default:
		return false
	}
	of := *d
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		<-w.busy
		return false
	}
	of.fd = fd
	other := newWalker(w.walk)
	other.path = append(other.path, w.path...)
	wk := w.walk
	wk.wg.Go(func() {
		if err := other.descend(&of, subs); err != nil {
			wk.fail(err)
		}
		unix.Close(of.fd)
		other.free()
		<-wk.busy
	})
	return true
}

// join appends name to path. With a nil path it is joined to a copy of the
// walker's.
func (w *walker) join(path, name []byte) []byte {
	if path == nil && len(w.path) > 0 {
		path = append(make([]byte, 0, len(w.path)+len(name)+1), w.path...)
	}
	if len(path) > 0 {
		path = append(path, '/')
	}
	return append(path, name...)
}

// pathTo is the path of e in the current directory.
func (w *walker) pathTo(e entry) string { return string(w.join(nil, e.name())) }
