//go:build linux

package workspace

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// Fixed names paths that are mounted over in a writable tree, so that inside they
// can be read and not changed. Such a mount ends when a program of the host
// replaces what it is on, and Settle lists the paths where one did.
func Fixed(rules ...policy.PathRule) Option {
	return func(s *scan) { s.fixed = rules }
}

// statFixed remembers what the paths of Fixed are in this tree.
func (s *scan) statFixed() {
	for _, r := range s.fixed {
		rel, ok := s.relativeToRoot(r.Path)
		if !ok {
			continue
		}
		var st unix.Statx_t
		if statBeneath(s.root, rel, &st) == nil {
			s.found.Fixed = append(s.found.Fixed, newRow(rel, r.Origin.String(), "it was read-only inside", &st))
		}
	}
}

func statBeneath(root int, rel string, st *unix.Statx_t) error {
	fd, err := OpenBeneath(root, parent(rel), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return statAt(fd, append([]byte(path.Base(rel)), 0), st)
}

// listReplaced lists, after the walk, the paths over which something was mounted and whose
// names lead to something else at the end.
func (v *settle) listReplaced() {
	for _, r := range v.t.Fixed {
		v.compare(&r, r.Mode&typeMask != typeDir)
	}
	for _, r := range v.t.Hidden {
		r.Reason = "it was hidden inside"
		v.compare(&r, false)
	}
	for _, r := range v.t.Rows {
		if !r.Linked && !r.Closed {
			r.Reason = "it was read-only inside (" + r.Reason + ")"
			v.compare(&r, false)
		}
	}
}

// compare lists r if it changed. With contents set, the same file changed in place is
// listed too.
func (v *settle) compare(r *row, contents bool) {
	full := v.full(string(r.Path))
	var st unix.Statx_t
	f := Flagged{Path: full, Change: Changed, Rule: r.Rule}
	switch err := statBeneath(v.root, string(r.Path), &st); {
	case err != nil:
		if v.wasMoved(full) {
			return
		}
		f.Change, f.Reason = Removed, "removed or moved on the host during the run; "+r.Reason
	case r.isOther(&st):
		f.Reason = "replaced on the host during the run: from then on the command could change it; " + r.Reason
	case contents && r.Ctime != nanos(st.Ctime):
		f.Reason = "changed on the host during the run; " + r.Reason
	default:
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	at := slices.IndexFunc(v.report.Flagged, func(old Flagged) bool { return old.Path == full && old.Change == f.Change })
	switch {
	case at < 0:
		v.report.Flagged = append(v.report.Flagged, f)
	case !strings.Contains(v.report.Flagged[at].Reason, "on the host during the run"):
		v.report.Flagged[at].Reason += "; " + f.Reason
	}
}

// isOther reports whether st is of another file than r was. The number of an inode says
// too little: a file system may give it at once to the file that takes the place of the one
// that was removed.
func (r *row) isOther(st *unix.Statx_t) bool {
	born, known := birthOf(st)
	return r.Ino != st.Ino || r.Dev != unix.Mkdev(st.Dev_major, st.Dev_minor) || (r.Mode^uint32(st.Mode))&typeMask != 0 ||
		known && born > r.Ctime
}

// wasMoved reports whether a path, or one above it, was moved out of the tree.
func (v *settle) wasMoved(full Name) bool {
	return slices.ContainsFunc(v.report.Quarantined, func(q Quarantined) bool {
		return paths.Within(string(q.Path), string(full))
	})
}
