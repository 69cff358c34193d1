//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Settle looks at the tree again after everything inside has ended. What appeared under
// a name of the deny tier is moved to stateDir/quarantine, which must be outside every
// view. The error is about what could not be done; the report still holds what was
// done.
func (s *Snapshot) Settle(ctx context.Context, stateDir string) (Report, error) {
	if s.Budget == nil {
		s.Budget = NewBudget()
	}
	v := &settle{snap: s, budget: s.Budget, quarantine: &quarantine{state: stateDir, budget: s.Budget}, whole: map[Name]bool{}}
	var errs []error
	for i, t := range s.trees {
		if err := v.settleTree(ctx, t, i > 0); err != nil {
			errs = append(errs, fmt.Errorf("settling %s: %w", t.Root, err))
		}
		s.Budget.finished(string(t.Root))
	}
	if err := v.quarantine.close(); err != nil {
		errs = append(errs, err)
	}
	v.listMore()
	slices.SortFunc(v.report.Quarantined, func(a, b Quarantined) int { return strings.Compare(string(a.Path), string(b.Path)) })
	slices.SortFunc(v.report.Flagged, func(a, b Flagged) int { return strings.Compare(string(a.Path), string(b.Path)) })
	switch {
	case v.partial:
		v.report.Unsure = "not everything could be read: only what is flagged or was moved out is listed"
	case v.differences != nil:
		v.differences()
	}
	return v.report, errors.Join(append(errs, v.errs...)...)
}

// settle is the visitor of Settle.
type settle struct {
	snap       *Snapshot
	quarantine *quarantine
	budget     *Budget
	t          *tree
	root       int
	external   bool
	rows       map[string]*row
	marks      map[string]*mark
	repos      map[string]bool
	programs   map[string]bool
	gitLinks   map[string]*row // links in repositories
	places     map[string]*row // rows, absent paths, and what lies on the way to those
	ways       map[string]bool // those of places that are dangerous as a link only
	bases      map[string]bool // last components of places
	secrets    map[string]bool // paths that the list hides, and no repository tracked
	staged     map[string]bool // sums of what indexes had at the start
	blind      map[blind]bool  // of what made git look away at the start

	differences func() // lists them, once all trees are settled; nil when they were not seen

	mu      sync.Mutex
	whole   map[Name]bool // worktrees, see isWhole
	seen    map[string]bool
	deps    []*dep
	links   map[inode]*linked
	indexes []*newStaged
	kept    int   // names in indexes
	more    int64 // files that are flagged and not listed

	unexamined map[string]bool // directories of the tree that were not looked through
	partial    bool            // there were some, in any of the trees

	report Report
	errs   []error
}

func (v *settle) settleTree(ctx context.Context, t *tree, external bool) error {
	fd, why, err := v.open(t, external)
	if err != nil {
		return err
	}
	if why != "" {
		v.report.Warnings = append(v.report.Warnings, why)
		return nil
	}
	defer unix.Close(fd)
	v.index(t, fd, external)
	var m walkMemory
	if !external && v.snap.remember {
		m.atEnd = newEndWalk(v.snap.names, v.snap.began)
		m.atEnd.find(v.snap.NothingHidden)
	}
	if err := run(ctx, fd, &v.snap.rules, 0, external, v, m); err != nil {
		return err
	}
	v.listWhole()
	if m.atEnd != nil {
		var deps []string
		for _, d := range v.deps {
			deps = append(deps, d.path)
		}
		v.differences = func() { v.differ(t, m.atEnd, deps) }
	}
	return nil
}

// index prepares the look-ups for one tree.
func (v *settle) index(t *tree, fd int, external bool) {
	v.t, v.root, v.external = t, fd, external
	v.rows, v.gitLinks = rowsByPath(t.Rows), rowsByPath(t.Links)
	v.repos, v.programs = setOf(t.Repos), setOf(t.Programs)
	v.secrets = t.secrets(&v.snap.rules)
	v.staged, v.indexes, v.kept = map[string]bool{}, nil, 0
	for _, t := range v.snap.trees {
		for _, sum := range t.Staged {
			v.staged[sum] = true
		}
	}
	v.blind = t.blinds()
	v.places, v.ways = maps.Clone(v.rows), map[string]bool{}
	v.bases, v.seen = map[string]bool{}, map[string]bool{}
	v.deps, v.links, v.unexamined = nil, map[inode]*linked{}, map[string]bool{}
	for i := range t.Absent {
		p := string(t.Absent[i].Path)
		if v.places[p] == nil {
			v.places[p] = &t.Absent[i]
		}
		for p = parent(p); p != "" && v.places[p] == nil; p = parent(p) {
			v.places[p], v.ways[p] = &t.Absent[i], true
		}
	}
	for p := range v.places {
		v.bases[path.Base(p)] = true
	}
	v.marks = make(map[string]*mark, len(t.Marks))
	for i := range t.Marks {
		v.marks[string(t.Marks[i].Path)] = &t.Marks[i]
	}
}

func rowsByPath(list []row) map[string]*row {
	m := make(map[string]*row, len(list))
	for i := range list {
		m[string(list[i].Path)] = &list[i]
	}
	return m
}

func setOf(list []Name) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, n := range list {
		m[string(n)] = true
	}
	return m
}

func (v *settle) full(rel string) Name { return v.t.full(rel) }

// full is the absolute path of rel; "" is the root.
func (t *tree) full(rel string) Name {
	if rel == "" {
		return t.Root
	}
	return t.Root + "/" + Name(rel)
}

func (v *settle) addFlagged(f Flagged) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.report.Flagged) >= maxFlagged {
		v.more++
		return
	}
	v.report.Flagged = append(v.report.Flagged, f)
}

func (v *settle) warn(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Warnings = append(v.report.Warnings, fmt.Sprintf(format, args...))
}

// unchanged reports whether r is still what it was, and lists it if the host
// wrote to it meanwhile: inside it was read-only.
func (v *settle) unchanged(r *row, st *unix.Statx_t) bool {
	if r.Ino == 0 || r.Ino != st.Ino || r.Dev != unix.Mkdev(st.Dev_major, st.Dev_minor) || r.Mode&typeMask != uint32(st.Mode)&typeMask {
		return false
	}
	if r.Ctime != nanos(st.Ctime) && !r.Linked && !r.Closed {
		v.addFlagged(Flagged{Path: v.full(string(r.Path)), Change: Changed, Rule: r.Rule,
			Reason: "changed on the host during the run; it was read-only inside (" + r.Reason + ")"})
	}
	return true
}

// beforeRules handles the paths that the snapshot names one by one.
func (v *settle) beforeRules(w *walker, d *dir, e entry) (bool, error) {
	if !v.countEntry(w.path) {
		return true, nil
	}
	if !v.bases[string(e.name())] {
		return false, nil
	}
	at := w.pathTo(e)
	r := v.places[at]
	if r == nil || v.ways[at] && e.typ != unix.DT_LNK {
		return false, nil
	}
	var st unix.Statx_t
	if err := statAt(d.fd, e.nameZ, &st); err != nil {
		return true, ignoreGone(err)
	}
	if v.unchanged(r, &st) {
		return true, nil
	}
	if r.Linked || r.Closed || v.hasRule(w, d, e) {
		return false, nil // judged by its name, like anything new
	}
	why := "it was not there when the run began"
	if r.Ino != 0 {
		why = "it was replaced during the run"
	}
	return true, v.moveOut(w, d, e, &Rule{Pattern: r.Rule, Reason: r.Reason}, why)
}

// hasRule reports whether e has a deny rule, or is called .git: it is judged by that.
func (v *settle) hasRule(w *walker, d *dir, e entry) bool {
	var s sub
	r := w.match(d, e, &s)
	return string(e.folded) == ".git" || r != nil && r.Tier == Deny
}

func (v *settle) deny(w *walker, d *dir, e entry) (bool, error) {
	why := "it was not there when the run began"
	if v.rows[w.pathTo(e)] != nil {
		why = "it was replaced during the run"
	}
	if e.rule.Where == InGit {
		reason := unread
		if v.budget.affordsSmall(d.fd, e.nameZ) {
			reason = v.judge(w, d, e)
		}
		if reason != "" && v.waitForOthers() && v.budget.affordsSmall(d.fd, e.nameZ) {
			reason = v.judge(w, d, e) // another run may have been writing it
		}
		if reason == "" {
			return false, nil
		}
		why += " and " + reason
	} else if v.isKnown(w.pathTo(e)) {
		return false, nil
	}
	return false, v.moveOut(w, d, e, e.rule, why)
}

// moveOut moves e into the quarantine.
func (v *settle) moveOut(w *walker, d *dir, e entry, r *Rule, why string) error {
	q := Quarantined{Path: v.full(w.pathTo(e)), Rule: r.Pattern, Reason: r.Reason, Why: why, Time: time.Now().UTC()}
	var st unix.Statx_t
	if v.waitForOthers() && errors.Is(statAt(d.fd, e.nameZ, &st), unix.ENOENT) {
		return nil // another run had it for a moment
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for range maxExchanged {
		one := q
		exchanged, err := v.quarantine.moveToSlot(d.fd, string(e.name()), &one)
		if err != nil {
			if ignoreGone(err) != nil {
				v.errs = append(v.errs, fmt.Errorf("moving %q out of the workspace: %w", q.Path, err))
			}
			return nil
		}
		v.report.Quarantined = append(v.report.Quarantined, one)
		if !exchanged {
			return nil
		}
	}
	v.errs = append(v.errs, fmt.Errorf("moving %q out of the workspace: %w", q.Path, errExchanged))
	return nil
}

func (v *settle) flag(w *walker, d *dir, e entry, st *unix.Statx_t) error {
	rel := w.pathTo(e)
	v.mu.Lock()
	v.seen[rel] = true
	v.mu.Unlock()
	m := v.marks[rel]
	if v.isUnlisted(d, e, rel) {
		return v.file(w, d, e, st)
	}
	f := Flagged{Path: v.full(rel), Change: Added, Rule: e.rule.Pattern, Reason: e.rule.Reason}
	switch {
	case m != nil && e.rule.Dir && m.Ino == st.Ino:
	case m == nil:
		f.After = v.sum(d, e, st)
		v.addFlagged(f)
	default:
		now := newMark(rel, e.rule, st)
		if m.Ino == now.Ino && m.Size == now.Size && m.Mtime == now.Mtime && m.Ctime == now.Ctime {
			break
		}
		f.Before, f.After, f.Change = m.Sum, v.sum(d, e, st), Changed
		if f.Before == f.After && f.Before != "" {
			if f.Change = Mode; m.Mode == now.Mode {
				break
			}
		}
		v.addFlagged(f)
	}
	return v.file(w, d, e, st)
}

// sum hashes a flagged file; "" where it is too large, or not to be read any more.
func (v *settle) sum(d *dir, e entry, st *unix.Statx_t) string {
	if int64(st.Size) > maxSum || !v.budget.spend(int64(st.Size)) {
		return ""
	}
	return sumAt(d.fd, e.name(), maxSum)
}

func (v *settle) tree(t *dep) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deps = append(v.deps, t)
}

func (v *settle) file(w *walker, d *dir, e entry, st *unix.Statx_t) error {
	if st == nil {
		if st = &w.st; statAt(d.fd, e.nameZ, st) != nil {
			return nil
		}
	}
	fresh := nanos(st.Ctime) >= v.snap.began
	if done, err := v.gitFile(w, d, e, st, fresh); done || err != nil {
		return err
	}
	if !fresh && (st.Mode&typeMask == typeReg || !w.isMoved(d)) {
		return nil
	}
	if d.dep != nil {
		d.dep.changed.Add(1)
	}
	f := Flagged{Path: v.full(w.pathTo(e))}
	switch st.Mode & typeMask {
	case typeReg:
		if st.Nlink > 1 {
			v.noteLink(w.pathTo(e), st)
		}
		if st.Mode&0o111 == 0 {
			return nil
		}
		if st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
			if born, known := birthOf(st); d.dep == nil && e.rule == nil && known && born <= v.snap.began+int64(clockSlack) && !v.programs[w.pathTo(e)] {
				f.Change, f.Reason = Mode, "it was there, and became a program"
				v.addFlagged(f)
			}
			return nil
		}
		f.Change, f.Reason = Setuid, "runs with the rights of its owner for everybody who starts it"
	case typeLink:
		if v.snap.enclosed && !v.staysIn(d, w, e, true) {
			return v.moveOut(w, d, e, outOfHistory, "a link out of the directory appeared in it during the run")
		}
		if d.dep != nil || v.staysIn(d, w, e, false) {
			return nil
		}
		f.Change, f.Reason = Leaving, "programs on the host that follow it leave the workspace"
	default:
		if f.Change, f.Reason = specialFile(st.Mode); f.Change == "" {
			return nil
		}
	}
	v.addFlagged(f)
	return nil
}
