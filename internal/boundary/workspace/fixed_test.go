//go:build linux

package workspace

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// TestFixedPaths: paths over which something was mounted are listed if their names lead
// to something else at the end.
func TestFixedPaths(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"same", "written", "replaced", "removed", "dir/x", "listed", "said", "held/x", "heldx", "linked", "closed/x"} {
		write(t, w, name, "a")
	}
	rule := func(path string) policy.PathRule { return policy.PathRule{Path: path} }
	s := &scan{rules: &Rules{}, found: &tree{Root: Name(w)}}
	must(t, s.open(w))
	defer unix.Close(s.root)
	s.fixed = []policy.PathRule{rule("/elsewhere"), rule(w), rule(w + "/none")}
	for _, name := range []string{"same", "written", "replaced", "removed", "dir", "listed", "said", "held", "held/x", "heldx"} {
		s.fixed = append(s.fixed, rule(w+"/"+name))
	}
	s.statFixed()
	if len(s.found.Fixed) != 10 {
		t.Fatalf("%d paths are remembered: %+v", len(s.found.Fixed), s.found.Fixed)
	}
	for i, name := range []string{"linked", "closed", "removed"} {
		r := row{Path: Name(name), Rule: "row", Reason: "why", Linked: i == 0, Closed: i == 1}
		s.found.Rows = append(s.found.Rows, r)
	}
	s.found.Hidden = []row{{Path: "secret", Rule: "hidden"}}

	v := &settle{t: s.found, root: s.root}
	full := func(name string) Name { return Name(w + "/" + name) }
	v.report.Quarantined = []Quarantined{{Path: full("held")}}
	v.report.Flagged = []Flagged{{Path: full("listed"), Change: Changed, Reason: "r"}, {Path: full("said"), Change: Changed, Reason: "changed on the host during the run"}}
	time.Sleep(2 * clockSlack) // what is written now has another time of change
	write(t, w, "written", "b")
	write(t, w, "dir/y", "b")
	for _, name := range []string{"replaced", "listed", "said"} {
		write(t, w, name+".new", "b")
		must(t, os.Rename(w+"/"+name+".new", w+"/"+name))
	}
	for _, name := range []string{"removed", "heldx", "linked", "closed", "held"} {
		must(t, os.RemoveAll(w+"/"+name))
	}
	v.listReplaced()
	got := map[Name]string{}
	for _, f := range v.report.Flagged {
		got[f.Path] += string(f.Change) + " " + f.Rule + ": " + f.Reason
	}
	for name, want := range map[string]string{
		"written": "changed : changed on the host", "replaced": "changed : replaced on the host", "heldx": "removed : removed or moved",
		"listed": "changed : r; replaced on the host", "said": "changed : changed on the host during the run", "removed": "removed : removed or moved", "secret": "removed hidden: removed or moved on the host during the run; it was hidden inside",
	} {
		if !strings.HasPrefix(got[full(name)], want) || strings.Count(got[full(name)], "on the host") != 1 {
			t.Errorf("%s: %q", name, got[full(name)])
		}
		delete(got, full(name))
	}
	if len(got) != 0 {
		t.Errorf("listed as well: %q", got)
	}
}

// The file that takes the place of one that was removed may get the number of its inode.
func TestRemadeWithTheSameInode(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "file", "a")
	mkdir(t, w+"/dir")
	at := func(name string) (st unix.Statx_t) {
		must(t, unix.Statx(unix.AT_FDCWD, w+"/"+name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st))
		return st
	}
	st, dir := at("file"), at("dir")
	was, later := newRow("file", "", "", &st), newRow("file", "", "", &st)
	later.Ctime -= int64(time.Hour)
	kind := newRow("file", "", "", &st)
	kind.Mode = uint32(dir.Mode)
	if was.isOther(&st) || !later.isOther(&st) || !kind.isOther(&st) {
		t.Errorf("the same %v, one born later %v, one of another kind %v", !was.isOther(&st), later.isOther(&st), kind.isOther(&st))
	}
}
