//go:build linux

package workspace

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Outputs names directories for results, absolute: nothing in them is protected
// or hidden, and what appears there stays, and is flagged where the host would
// execute it.
func Outputs(dirs ...string) Option {
	return func(s *scan) {
		for _, dir := range dirs {
			s.outputs = append(s.outputs, Name(dir))
		}
	}
}

// output says whether a path is in a directory for results.
func (s *Snapshot) output(path Name) bool {
	return slices.ContainsFunc(s.outputs, func(dir Name) bool {
		return path == dir || strings.HasPrefix(string(path), string(dir)+"/")
	})
}

// socketRule is of sockets among what is hidden.
const socketRule = "socket"

// spare drops what is in directories for results from the rows of the workspace.
// Sockets stay: a program of the host listens on them, wherever they are.
func (s *Snapshot) spare() {
	if len(s.outputs) == 0 {
		return
	}
	t := s.trees[0]
	t.Rows = slices.DeleteFunc(t.Rows, func(r row) bool { return !r.Linked && s.output(t.Root+"/"+r.Path) })
	t.Hidden = slices.DeleteFunc(t.Hidden, func(r row) bool { return r.Rule != socketRule && s.output(t.Root+"/"+r.Path) })
}

// leave flags what would be taken out of another directory.
func (v *settle) leave(d *dir, e entry, q Quarantined) {
	var st unix.Statx_t
	if statAt(d.fd, e.nameZ, &st) != nil || nanos(st.Ctime) < v.snap.began {
		return
	}
	v.flagged(Flagged{Path: q.Path, Change: Added, Rule: q.Rule, Reason: q.Reason})
}
