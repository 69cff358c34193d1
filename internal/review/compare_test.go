//go:build linux

package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// tick is longer than the clock of inodes takes to move on.
const tick = 20 * time.Millisecond

// TestWhatARunDidInACopyOfWhichNothingIsListed: what was not touched since the copy was
// taken is not of the run, and what came into the workspace since was not deleted by it.
func TestWhatARunDidInACopyOfWhichNothingIsListed(t *testing.T) {
	for _, mode := range []Mode{Copy, Overlay} {
		f := newField(t, mode).lower("early=1", "touched=1", "gone=1")
		f.upper("early=2", "touched=1")
		time.Sleep(tick)
		began := time.Now()
		time.Sleep(tick)
		f.lower("made=1", "remade=1").upper("touched=2")
		if mode == Overlay {
			f.upper("made!", "gone!")
		}
		f.make(f.dir+"/base", "remade=kept", "kept=1") // what was kept of the start may be younger
		src := f.source()
		for name, at := range map[string]time.Time{"known": began, "not known": {}} {
			src.Began = at
			s, err := Collect(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var births unix.Statx_t
			if err := unix.Statx(unix.AT_FDCWD, f.ws+"/made", 0, unix.STATX_BTIME, &births); err != nil {
				t.Fatal(err)
			}
			kept := []string{`deleted "kept" file→none`}
			made := []string{`deleted "made" file→none`}
			remade := []string{`deleted "remade" file→none`}
			early := []string{`modified "early"`}
			switch {
			case mode == Overlay:
				kept, remade = nil, nil // nothing shows that they were deleted
			case name == "known":
				early = nil
				if births.Mask&unix.STATX_BTIME != 0 {
					made = nil
				}
			}
			all := slices.Concat(early, []string{`deleted "gone" file→none`}, kept, made, remade, []string{`modified "touched"`})
			t.Run(fmt.Sprintf("%s, its begin is %s", mode, name), func(t *testing.T) { want(t, lines(s), all...) })
			late := name == "known" && (mode == Overlay || made != nil)
			if c := s.Find("made"); c != nil && (len(c.Notes) > 0) != late {
				t.Errorf("%s, %s: notes of made: %q", mode, name, c.Notes)
			}
			if c := s.Find("kept"); c != nil && len(c.Notes) > 0 {
				t.Errorf("%s, %s: notes of kept: %q", mode, name, c.Notes)
			}
			if c := s.Find("gone"); len(c.Notes) > 0 {
				t.Errorf("%s, %s: notes of gone: %q", mode, name, c.Notes)
			}
		}
	}
}

// TestWhatARunDidInACopyThatIsListed: what is as the list says is not of the run,
// whatever became of the workspace meanwhile.
func TestWhatARunDidInACopyThatIsListed(t *testing.T) {
	f := newField(t, Copy).lower("same=1", "gone=1", "both=1", "made/a=1", "bits/a=1", "run/a=1", "type/a=1", "file=1", "removed=1", "away/a=1")
	f.copied()
	f.lower("same=2", "both=2", "new=1", "newdir/a=1")
	up := f.dir + "/upper"
	f.upper("both=3", "new=2", "newdir/a=1")
	for path, mode := range map[string]uint32{f.ws + "/bits": 0o700, up + "/run": 0o700, f.ws + "/newdir": 0o700} {
		if err := unix.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{up + "/gone", f.ws + "/removed", f.ws + "/away/a", f.ws + "/away", f.ws + "/type/a", f.ws + "/type"} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	f.lower("type=1", "host=1")
	if err := unix.Mkfifo(f.ws+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	s := f.collect()
	want(t, lines(s), `type "type" file→dir [type]`, `modified "both"`, `deleted "gone" file→none`, `added "new"`, `added "newdir/a"`, `mode "run" dir→dir`)
}

// TestChangesOfATree: each kind of entry is distinguished from what was there, with the
// targets of both sides of a link.
func TestChangesOfATree(t *testing.T) {
	f := newField(t, Overlay).lower("was->a", "gonelink->b", "pipe|", "elf=text", "same->c", "l->a", "bits=1", "big=1", "empty=", "f=1")
	f.upper("was=1", "gonelink!", "pipe|", "elf=\x7fELF\x00\x00", "same->c", "l->b", "0600 bits=1", "newpipe|", "one=1", "empty=", "f=2", "bin=a\x00", "text=a")
	for from, to := range map[string]string{"newpipe": "otherpipe", "one": "two"} {
		if err := os.Link(f.dir+"/upper/"+from, f.dir+"/upper/"+to); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Truncate(f.ws+"/big", MaxText+1), os.WriteFile(f.dir+"/upper/big", []byte("2"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s := f.collect()
	want(t, lines(s), `modified "elf" [program]`, `type "was" link→file [type]`, `modified "big"`, `added "bin"`, `mode "bits"`, `modified "f"`, `deleted "gonelink" link→none`,
		`modified "l" link→link`, `added "newpipe" none→fifo cannot`, `added "one"`, `added "otherpipe" none→fifo cannot`, `added "text"`, `added "two"`)
	for path, old := range map[string]workspace.Name{"was": "a", "gonelink": "b", "l": "a", "f": ""} {
		if c := s.Find(path); c.OldTarget != old || path != "l" && c.Target != "" {
			t.Errorf("%s: %q before, %q now", path, c.OldTarget, c.Target)
		}
	}
	for path, notes := range map[string]int{"one": 1, "two": 1, "newpipe": 0, "otherpipe": 0, "text": 0} {
		if c := s.Find(path); len(c.Notes) != notes {
			t.Errorf("%s: %q", path, c.Notes)
		}
	}
	for path, huge := range map[string]bool{"big": true, "f": false, "text": false} {
		if s.Find(path).Huge != huge {
			t.Errorf("%s: huge: %t", path, !huge)
		}
	}
	for path, binary := range map[string]bool{"bin": true, "text": false, "elf": true} {
		if s.Find(path).Binary != binary {
			t.Errorf("%s: binary: %t", path, !binary)
		}
	}
}

// TestAnEntryThatIsNotThere: what cannot be looked at is named, what was never there
// and is asked for as if deleted is not, and the end of the whole is passed on.
func TestAnEntryThatIsNotThere(t *testing.T) {
	f := newField(t, Overlay).lower("a=1").upper("a=2")
	s := f.collect()
	l, _, err := s.trees.openLevel("", true, true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	look := func(ctx context.Context, apart ...string) *comparison {
		c := &collector{ctx: ctx, t: s.trees, mode: Overlay, lim: defaultLimits(), apart: map[string]bool{}}
		for _, a := range apart {
			c.apart[a] = true
		}
		return &comparison{collector: c, job: job{look: s.Source.Rules.Look()}, l: l}
	}
	long := strings.Repeat("n/", maxName/2) + "n" // a path that is just not too long
	ended, end := context.WithCancel(t.Context())
	end()
	for _, row := range []struct {
		name, entry   string
		v             *comparison
		deleted       bool
		found, unseen int
		err           error
	}{
		{"it is there", "a", look(t.Context()), false, 1, 0, nil},
		{"it is not there", "none", look(t.Context()), false, 0, 1, nil},
		{"it was there", "a", look(t.Context()), true, 1, 0, nil},
		{"it was never there", "none", look(t.Context()), true, 0, 0, nil},
		{"something is mounted over it", "a", look(t.Context(), "a"), false, 0, 0, nil},
		{"something is mounted over what was there", "a", look(t.Context(), "a"), true, 0, 0, nil},
		{"something is mounted over all", "a", look(t.Context(), "."), false, 0, 0, nil},
		{"something is mounted over all that was", "a", look(t.Context(), "."), true, 0, 0, nil},
		{"its name is too long", long + "n", look(t.Context()), false, 0, 1, nil},
		{"the name of what was is too long", long + "n", look(t.Context()), true, 0, 1, nil},
		{"the look was ended", "a", look(ended), false, 0, 0, context.Canceled},
		{"the look at what was is ended", "a", look(ended), true, 0, 0, context.Canceled},
	} {
		var err error
		if row.deleted {
			err = row.v.addDeleted(row.entry)
		} else {
			err = row.v.entry(row.entry, false)
		}
		if !errors.Is(err, row.err) || len(row.v.found) != row.found || len(row.v.unseen) != row.unseen {
			t.Errorf("%s: %v, found %v, unseen %v", row.name, err, row.v.found, row.v.unseen)
		}
	}
}

// TestFlagOfWhatIsPushed: what is in a flagged directory has its flag, the first of
// these on the way, and what is below a directory that was not one is flagged for that.
func TestFlagOfWhatIsPushed(t *testing.T) {
	rule, over := &workspace.Rule{Pattern: ".vscode", Reason: "x"}, &Flag{"above", "y"}
	for i, row := range []struct {
		over *Flag
		rule *workspace.Rule
		kind Kind
		want string
	}{
		{nil, nil, Added, ""}, {over, rule, TypeChanged, "above"}, {nil, rule, TypeChanged, ".vscode"}, {nil, rule, Added, ".vscode"}, {nil, nil, TypeChanged, "below"},
	} {
		v := &comparison{collector: &collector{}, job: job{over: row.over}}
		v.push(job{}, &Change{Path: "d", Kind: row.kind}, row.rule)
		if got := v.subs[0].over; (got == nil) != (row.want == "") || got != nil && got.Rule != row.want {
			t.Errorf("row %d: %+v", i, got)
		}
	}
}

// TestEntryOfACopy: a name of the workspace counts as deleted from a copy only if the
// copy had it; without a list, any name does.
func TestEntryOfACopy(t *testing.T) {
	v := &comparison{collector: &collector{}, job: job{path: "d"}}
	if !v.inCopy("a") {
		t.Error("without a list, d/a was not in the copy")
	}
	v.copied = map[string]workspace.Identity{"d/a": {}}
	if !v.inCopy("a") || v.inCopy("b") {
		t.Error("with a list of d/a")
	}
}

// TestSideOfAFileThatIsNotWhatItSays: a file that has more than its size says changed
// while it was read.
func TestSideOfAFileThatIsNotWhatItSays(t *testing.T) {
	proc, err := unix.Open("/proc", openTop, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	if side, err := readSide(proc, "version", false); !errors.Is(err, ErrChanged) {
		t.Errorf("%+v, %v", side, err)
	}
	tr := &trees{modes: map[string]uint32{"a": unix.S_IFREG | 0o4750, "b": 0, "l": unix.S_IFLNK | 0o777}}
	for path, want := range map[string]uint32{"a": 0o4750, "b": 0o600, "c": 0o600} {
		if got := tr.sideMode(path, 0o600); got != want {
			t.Errorf("%s: %o", path, got)
		}
	}
	for path, want := range map[string]uint16{"a": unix.S_IFREG | 0o4750, "b": unix.S_IFREG | 0o600, "l": unix.S_IFREG | 0o600} {
		if got := tr.mode(path, unix.S_IFREG|0o600); got != want {
			t.Errorf("%s with its type: %o", path, got)
		}
	}
}

// TestHeaderOfEachKind writes what git would write above the lines.
func TestHeaderOfEachKind(t *testing.T) {
	file, other := Side{Type: File, Mode: 0o644}, Side{Type: File, Mode: 0o755}
	large := Side{Type: File, Mode: 0o644, Size: 7}
	hunk := []Hunk{{}}
	for _, row := range []struct {
		name string
		c    Change
		d    Diff
		want []string
	}{
		{"a history", Change{Kind: History}, Diff{Hunks: hunk}, nil},
		{"a new file", Change{Kind: Added}, Diff{New: other}, []string{"new file mode 100755"}},
		{"a file that is gone", Change{Kind: Deleted}, Diff{Old: other, Hunks: hunk}, []string{"deleted file mode 100755", "--- a/p", "+++ /dev/null"}},
		{"other lines", Change{Kind: Modified}, Diff{Old: file, New: file, Hunks: hunk}, []string{"--- a/p", "+++ b/p"}},
		{"nothing at all", Change{Kind: Modified}, Diff{Old: file, New: file}, nil},
		{"other bits", Change{Kind: ModeChanged}, Diff{Old: file, New: other}, []string{"old mode 100644", "new mode 100755"}},
		{"a rename", Change{Kind: Renamed, From: "o"}, Diff{Old: file, New: other}, []string{"old mode 100644", "new mode 100755", "similarity index 100%", "rename from o", "rename to p"}},
		{"a link in the place of a directory", Change{Kind: TypeChanged}, Diff{Old: Side{Type: Dir, Mode: 0o755}, New: Side{Type: Link, Mode: 0o777}}, []string{"old mode 040755", "new mode 120000"}},
		{"a pipe", Change{Kind: Added}, Diff{New: Side{Type: FIFO, Mode: 0o600}}, []string{"new file mode 000600"}},
		{"no text", Change{Kind: Modified}, Diff{Binary: true, Old: Side{Type: File, Mode: 0o644, Size: 3, SHA256: "ab"}, New: file},
			[]string{"Binary files differ", "old 3 bytes, sha256 ab", "new 0 bytes, too large to be read"}},
		{"too large", Change{Kind: Modified}, Diff{Binary: true, Huge: true, Old: large, New: large}, []string{"Large files differ", "old 7 bytes, too large to be read", "new 7 bytes, too large to be read"}},
		{"too large, and new", Change{Kind: Added}, Diff{Huge: true, New: large}, []string{"new file mode 100644", "Large files differ", "old none", "new 7 bytes, too large to be read"}},
	} {
		row.c.Path = "p"
		first := "diff --git a/p b/p"
		if row.c.From != "" {
			first = "diff --git a/o b/p"
		}
		got := (&Set{}).Header(&row.c, &row.d)
		t.Run(row.name, func(t *testing.T) { want(t, got, append([]string{first}, row.want...)...) })
	}
	for name, want := range map[string]string{"a b~": "a b~", "a\"": `"a\""`, "a\\": `"a\\"`, "a\x1f": `"a\x1f"`, "a\x7f": `"a\x7f"`, "\u00e9": `"\u00e9"`, "": ""} {
		if got := quote(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// TestSidesThatCanBeCompared: lines are compared unless a side is too large or no text;
// of a link, where it leads.
func TestSidesThatCanBeCompared(t *testing.T) {
	file := func(s string) Side { return Side{Type: File, data: []byte(s), full: true} }
	for i, row := range []struct {
		from, to     Side
		huge, binary bool
		lines        string
	}{
		{file("a\n"), file("b\n"), false, false, "@@ -1,1 +1,1 @@\n-a\n+b\n"},
		{file("a\x00"), file("b\n"), false, true, ""},
		{file("a\n"), file("b\xff"), false, true, ""},
		{file("a\n"), Side{Type: File}, true, false, ""},
		{Side{Type: File}, file("a\x00"), true, true, ""},
		{Side{}, file("b\n"), false, false, "@@ -0,0 +1,1 @@\n+b\n"},
		{Side{Type: Link, Target: "x"}, Side{Type: Link, Target: "y"}, false, false, "@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"},
		{Side{Type: Dir}, Side{Type: FIFO}, false, false, ""},
	} {
		if d := DiffSides(row.from, row.to); d.Huge != row.huge || d.Binary != row.binary || show(d.Hunks) != row.lines {
			t.Errorf("row %d: huge %t, binary %t, %s", i, d.Huge, d.Binary, show(d.Hunks))
		}
	}
}
