//go:build linux

package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// differ turns what two walks saw into a list. It is the work of one goroutine.
type differ struct {
	t     *tree
	l     *endWalk
	rows  map[string]*Difference // by path from the root
	files map[string]*changedFile
	ends  map[string]*changedDir
	gone  map[uint64][]string // paths that are no more, by inode
	modes map[*listing]map[string]uint16
}

// differ lists what changed.
func (v *settle) differ(t *tree, l *endWalk, deps []string) {
	d := &differ{
		t: t, l: l, rows: map[string]*Difference{}, files: map[string]*changedFile{}, ends: map[string]*changedDir{},
		gone: map[uint64][]string{}, modes: map[*listing]map[string]uint16{},
	}
	whole := l.start != nil && l.left.Load() >= 0
	for i := range l.files {
		f := &l.files[i]
		d.files[joinPath(f.dir, f.name)] = f
	}
	if whole {
		d.match()
		d.compare()
		d.renames()
	}
	for at, f := range d.files {
		if d.rows[at] == nil && nanos(f.st.Ctime) >= l.began {
			d.recordChange(at, f, whole)
		}
	}
	switch {
	case l.left.Load() < 0:
		v.report.Unsure = fmt.Sprintf("more than %d names changed or are in directories that changed: the rest is not listed, nor what was removed or renamed", maxNames)
	case l.many:
		v.report.Unsure = fmt.Sprintf("there were more than %d files: what was removed or renamed is not listed", maxNames)
	case !whole:
		v.report.Unsure = "the names at the start were lost with the supervisor: what was removed or renamed is not listed"
	}
	v.report.Differences = d.list(v, deps)
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// match finds the earlier state of each directory: the same directory, at its path or
// where it was moved from; otherwise the one whose place it took.
func (d *differ) match() {
	start := d.l.start
	slices.SortFunc(d.l.dirs, func(a, b *changedDir) int { return strings.Compare(a.path, b.path) })
	take := func(e *changedDir, was *listing) {
		if e.from == nil && was != nil && !was.seen.Load() {
			e.from = was
			was.seen.Store(true)
		}
	}
	for _, e := range d.l.dirs {
		d.ends[e.path] = e
		if was := start.listingFor(e.path, e.ino); was != nil && was.path == e.path {
			take(e, was)
		}
	}
	for _, e := range d.l.dirs {
		// A number of an inode is used again: what came into being meanwhile was
		// not moved here.
		if e.datable && !e.born {
			for _, was := range start.byIno[e.ino] {
				take(e, was)
			}
		}
	}
	for _, e := range d.l.dirs {
		take(e, start.byPath[e.path])
	}
}

// compare lists names that are new, gone, or name something else.
func (d *differ) compare() {
	for _, e := range d.l.dirs {
		was := map[string]named{}
		if e.from != nil {
			eachName(e.from.list, func(n named) { was[n.name] = n })
			if e.from.path != e.path && !d.movedAbove(e) {
				d.rows[e.path] = &Difference{Kind: KindRenamed, From: d.t.full(e.from.path), Type: "dir"}
			}
		} else if d.rows[e.path] == nil {
			d.rows[e.path] = &Difference{Kind: KindAdded, Type: "dir"}
		}
		eachName(e.list, func(n named) {
			o, is := was[n.name]
			delete(was, n.name)
			d.name(joinPath(e.path, n.name), n, o, is)
		})
		for name, o := range was {
			d.recordLost(joinPath(e.from.path, name), o)
		}
	}
	for _, l := range d.l.start.dirs {
		if l.seen.Load() {
			continue
		}
		if d.rows[l.path] == nil {
			d.rows[l.path] = &Difference{Kind: KindDeleted, Type: "dir"}
		}
		eachName(l.list, func(n named) { d.recordLost(joinPath(l.path, n.name), n) })
	}
}

// movedAbove reports whether a directory is where it is because one above it was
// moved.
func (d *differ) movedAbove(e *changedDir) bool {
	above := d.ends[parent(e.path)]
	return above != nil && above.from != nil && above.from.path == parent(e.from.path) && path.Base(e.path) == path.Base(e.from.path)
}

// name lists an entry n of a directory that had the entry o, or had it not.
func (d *differ) name(at string, n, o named, is bool) {
	switch {
	case is && n.typ != o.typ:
		d.rows[at] = d.row(at, KindType, o, n)
	case n.typ == unix.DT_DIR:
		// A directory with something to report has a row of its own.
	case !is:
		d.rows[at] = d.row(at, KindAdded, named{}, n)
	case n.ino != o.ino:
		d.rows[at] = d.row(at, KindModified, o, n)
	}
}

// row describes a file as it is now.
func (d *differ) row(at string, kind Kind, o, n named) *Difference {
	r := &Difference{Kind: kind, Type: typeOf(n.typ), Mode: uint32(n.mode) & 0o7777}
	if f := d.files[at]; f != nil {
		r.Mode, r.Size = uint32(f.st.Mode)&0o7777, int64(f.st.Size)
	}
	if old := uint32(o.mode) & 0o7777; o.mode != 0 && old != r.Mode && n.typ == o.typ {
		r.OldMode = old
	}
	return r
}

func (d *differ) recordLost(at string, o named) {
	if o.typ == unix.DT_DIR && d.l.start.byPath[at] != nil {
		return // it has a row of its own
	}
	if d.rows[at] != nil {
		return // something else is there
	}
	d.rows[at] = &Difference{Kind: KindDeleted, Type: typeOf(o.typ), OldMode: uint32(o.mode) & 0o7777}
	d.gone[o.ino] = append(d.gone[o.ino], at)
}

// renames makes one row of a name that is gone and a new one of the same file.
func (d *differ) renames() {
	for _, e := range d.l.dirs {
		eachName(e.list, func(n named) {
			at := joinPath(e.path, n.name)
			r, f := d.rows[at], d.files[at]
			from := d.gone[n.ino]
			if r == nil || r.Kind != KindAdded || f == nil || len(from) == 0 || d.rows[from[0]].Type != r.Type {
				return
			}
			if born, known := birthOf(&f.st); !known || born >= d.l.began {
				return
			}
			if old := d.rows[from[0]].OldMode; old != r.Mode && old != 0 {
				r.OldMode = old
			}
			r.Kind, r.From = KindRenamed, d.t.full(from[0])
			delete(d.rows, from[0])
			d.gone[n.ino] = from[1:]
		})
	}
}

// recordChange lists a file whose name is the same.
func (d *differ) recordChange(at string, f *changedFile, whole bool) {
	r := &Difference{Kind: KindModified, Type: typeOf(byte(f.st.Mode & unix.S_IFMT >> 12)), Mode: uint32(f.st.Mode) & 0o7777, Size: int64(f.st.Size)}
	if born, known := birthOf(&f.st); !whole && known && born >= d.l.began {
		r.Kind = KindAdded
	}
	in := f.in
	if e := d.ends[f.dir]; e != nil {
		in = e.from
	}
	if old := uint32(d.mode(in, f.name)); old != 0 && old&0o7777 != r.Mode {
		r.OldMode = old & 0o7777
	}
	d.rows[at] = r
}

// mode is the mode of an entry at the start; 0 where it is not known.
func (d *differ) mode(in *listing, name string) uint16 {
	if in == nil {
		return 0
	}
	if d.modes[in] == nil {
		d.modes[in] = map[string]uint16{}
		eachName(in.list, func(n named) { d.modes[in][n.name] = n.mode })
	}
	return d.modes[in][name]
}

func typeOf(typ byte) string {
	switch typ {
	case unix.DT_REG:
		return "file"
	case unix.DT_DIR:
		return "dir"
	case unix.DT_LNK:
		return "link"
	case unix.DT_FIFO:
		return "fifo"
	case unix.DT_SOCK:
		return "socket"
	default:
		return "device"
	}
}

// list is what will be shown: with flags, internals of repositories and installed
// dependencies as one row each, what is flagged first.
func (d *differ) list(v *settle, deps []string) []Difference {
	for _, m := range d.t.Marks {
		if m.Dir {
			deps = append(deps, string(m.Path))
		}
	}
	taken := d.flags(v)
	as := map[string]*Difference{}
	var out []Difference
	for at, r := range d.rows {
		if taken(at) && r.Held == "" {
			continue
		}
		top, is := d.group(at, deps)
		if !is || r.Held != "" || r.Flag != nil && at != top {
			r.Path = d.t.full(at)
			out = append(out, *r)
			continue
		}
		g := as[string(d.t.full(top))]
		if g == nil {
			g = &Difference{Path: d.t.full(top), Kind: d.kind(top), Type: "dir"}
			as[string(g.Path)] = g
		}
		if at == top {
			g.Flag = r.Flag
			continue
		}
		if r.Type != "dir" {
			g.Files++
		}
	}
	out = slices.DeleteFunc(out, func(r Difference) bool { return r.Flag == nil && as[string(r.Path)] != nil })
	for _, g := range as {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Difference) int {
		if c := btoi(b.Flag != nil || b.Held != "") - btoi(a.Flag != nil || a.Held != ""); c != 0 {
			return c
		}
		return strings.Compare(string(a.Path), string(b.Path))
	})
	return out
}

// kind is what became of a directory.
func (d *differ) kind(top string) Kind {
	if e := d.ends[top]; e != nil && e.from == nil {
		return KindAdded
	}
	if l := d.l.start; l != nil && l.byPath[top] != nil && !l.byPath[top].seen.Load() {
		return KindDeleted
	}
	return KindModified
}

// flags copies the findings of Settle into the rows; taken reports what Settle removed.
func (d *differ) flags(v *settle) (taken func(string) bool) {
	held := map[string]bool{}
	root := string(d.t.Root) + "/"
	for i := range v.report.Quarantined {
		q := &v.report.Quarantined[i]
		at, in := strings.CutPrefix(string(q.Path), root)
		if !in {
			continue
		}
		held[at] = true
		d.rows[at] = &Difference{Kind: KindAdded, Type: heldType(q.Type), Mode: q.Mode, Held: q.Held,
			Flag: &Flagged{Path: q.Path, Change: Added, Rule: q.Rule, Reason: q.Reason, After: q.Sum}}
	}
	for i := range v.report.Flagged {
		f := &v.report.Flagged[i]
		at, in := strings.CutPrefix(string(f.Path), root)
		if !in {
			continue
		}
		if d.rows[at] == nil {
			d.rows[at] = &Difference{Kind: kindOf(f.Change), Type: "file"}
			if f.Files > 0 || d.ends[at] != nil {
				d.rows[at].Type = "dir"
			}
		}
		d.rows[at].Flag = f
	}
	return func(at string) bool {
		for p := at; p != ""; p = parent(p) {
			if held[p] {
				return true
			}
		}
		return false
	}
}

func heldType(t string) string {
	if t == "special" {
		return "device"
	}
	return t
}

func kindOf(c Change) Kind {
	switch c {
	case Added:
		return KindAdded
	case Removed:
		return KindDeleted
	}
	return KindModified
}

// group is the tree that a path is listed with. Of repositories that is what git
// alone writes, and only in those that are called .git or were there before:
// else a directory that is given git's shape would hide what is in it.
func (d *differ) group(at string, deps []string) (string, bool) {
	for _, top := range deps {
		if at == top || strings.HasPrefix(at, top+"/") {
			return top, true
		}
	}
	for p := parent(at); ; p = parent(p) {
		if string(fold([]byte(path.Base(p)), nil)) == ".git" || slices.Contains(d.t.Repos, Name(p)) {
			rest := strings.TrimPrefix(at[len(p):], "/")
			first, _, deeper := strings.Cut(rest, "/")
			if isRefDir([]byte(first)) || !deeper && slices.Contains(gitsOwn, rest) {
				return p, true
			}
		}
		if p == "" {
			return "", false
		}
	}
}

// gitsOwn are files of a repository that git writes in the course of work and
// that say nothing which a host would execute.
var gitsOwn = []string{"HEAD", "ORIG_HEAD", "FETCH_HEAD", "index", "packed-refs",
	"COMMIT_EDITMSG", "AUTO_MERGE", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "gc.log", "gc.pid"}
