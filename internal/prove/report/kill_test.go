package report

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func sampleKill() Kill {
	return Kill{
		Tool: "holdfast", Version: "0.5.0", Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Host: Host{Kernel: "6.18.44", Arch: "amd64", User: "root"},
		Controls: []KillControl{
			{Name: "the fresh root", Omit: []string{"view"}, Played: []string{"LNK-001", "PTH-001"}, Escaped: []string{"PTH-001", "LNK-001"}},
			{Name: "read-only binds and Landlock", Omit: []string{"readonly", "landlock"}, Escaped: []string{"DNY-017"}, Unclear: []string{"LNK-014"}, Why: "either wall alone holds writes to a tree that is shown"},
			{Name: "masks over /proc", Omit: []string{"proc-masks"}, Why: "the files behind them answer only to root of the first user namespace", Excused: true},
			{Name: "a bolt on the cellar door", Omit: []string{"bolt"}, Played: []string{"LNK-001"}},
		},
		Rows: []KillRow{
			{ID: "PTH-001", Class: "fs.path-strings", Title: "Leave the workspace by .."},
			{ID: "LNK-001", Class: "fs.links", Title: "Write through a symlink"},
			{ID: "DNY-017", Class: "fs.deny-carveouts", Title: "Change the mode of a | protected file"},
			{ID: "RAC-009", Class: "fs.races", Title: "Rename the parent while it is looked up"},
			{ID: "HST-001", Class: "host.supervisor", Title: "Kill the supervisor", Excused: "the kernel's own check of the user"},
		},
	}
}

func TestKill(t *testing.T) {
	k := sampleKill()
	if got := k.Needless(); !slices.Equal(got, []string{"a bolt on the cellar door"}) {
		t.Errorf("no row needs %q", got)
	}
	if got := rowIDs(k.Unheld()); !slices.Equal(got, []string{"RAC-009"}) {
		t.Errorf("no control holds %q", got)
	}
	if got := k.HeldBy("LNK-001"); !slices.Equal(got, []string{"the fresh root"}) {
		t.Errorf("LNK-001 is held by %q", got)
	}
	for name, f := range map[string]Format{"kill.txt": FormatText, "kill.md": FormatMarkdown, "kill.json": FormatJSON} {
		golden(t, name, written(t, func(w io.Writer) error { return WriteKill(w, k, f, TextOptions{Width: 80}) }))
	}
	if err := WriteKill(io.Discard, k, FormatSARIF, TextOptions{}); err == nil {
		t.Error("a kill matrix as SARIF is no error")
	}
}

// TestNoFindingIsNoPromise: the absence of findings is only claimed for the
// played rows.
func TestNoFindingIsNoPromise(t *testing.T) {
	k := sampleKill()
	k.Controls, k.Rows = k.Controls[:3], append(k.Rows[:3:3], k.Rows[4])
	b := string(written(t, func(w io.Writer) error { return WriteKill(w, k, FormatMarkdown, TextOptions{}) }))
	for _, want := range []string{"None among 4 rows that were played: 3 of 4 rows escape when a control is left out", "Controls with a row or a reason: 3 of 3 (2 with a row, 1 with a reason).", "Rows that were not played may have no control."} {
		if !strings.Contains(b, want) {
			t.Errorf("%q is not said:\n%s", want, b)
		}
	}
}

// TestKillUnknown distinguishes a control about which nothing is known from one
// that no row needs.
func TestKillUnknown(t *testing.T) {
	k := Kill{Controls: []KillControl{
		{Name: "all unclear", Played: []string{"A-1"}, Unclear: []string{"A-1"}}, {Name: "not played"},
		{Name: "one still held", Played: []string{"A-1", "A-2"}, Unclear: []string{"A-1"}}}}
	if got := k.Unknown(); !slices.Equal(got, []string{"all unclear", "not played"}) {
		t.Errorf("nothing is known of %q", got)
	}
	if got := k.Needless(); !slices.Equal(got, []string{"one still held"}) {
		t.Errorf("no row needs %q", got)
	}
}

// TestKillMerge merges the runs of two users, as read from files.
func TestKillMerge(t *testing.T) {
	root, user := sampleKill(), sampleKill()
	user.Host.User = "user"
	root.Controls[0].As = []string{"root"}
	user.Controls = slices.Clone(user.Controls)
	user.Controls[0].As, user.Controls[0].Escaped = []string{"user"}, []string{"PTH-002"}
	user.Controls[2] = KillControl{Name: "masks over /proc", Played: []string{"PRC-001"}, Escaped: []string{"PRC-001"}, As: []string{"user"}, Why: "a wall of its own"}
	user.Rows = append(user.Rows, KillRow{ID: "PRC-001"})
	user.Unproved = []KillUnproved{{ID: "PTH-009", As: "user", Verdict: Inconclusive, Reason: "timed out"}}
	b := written(t, func(w io.Writer) error { return WriteKill(w, user, FormatJSON, TextOptions{}) })
	read, err := ReadKill(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	both, err := root.Merge(read)
	if err != nil {
		t.Fatal(err)
	}
	view, masks := both.Controls[0], both.Controls[2]
	if !slices.Equal(view.Escaped, []string{"LNK-001", "PTH-001", "PTH-002"}) || !slices.Equal(view.As, []string{"root", "user"}) {
		t.Errorf("%+v", view)
	}
	if masks.Excused || masks.Why != "a wall of its own" || !slices.Equal(masks.As, []string{"user"}) {
		t.Errorf("%+v", masks)
	}
	if len(both.Rows) != 6 || len(both.Unproved) != 1 || len(both.Also) != 1 || both.Also[0].User != "user" {
		t.Errorf("%+v", both)
	}
	if held, excused := both.Covered(); held != 3 || excused != 0 {
		t.Errorf("%d hold a row, %d have a reason", held, excused)
	}
	md := string(written(t, func(w io.Writer) error { return WriteKill(w, both, FormatMarkdown, TextOptions{}) }))
	for _, want := range []string{"| root, user |", "- Not held with every control in place: PTH-009 as user (inconclusive): timed out.", "- host: Linux 6.18.44 amd64, as user"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	user.Version = "0.6.0"
	if _, err := root.Merge(user); err == nil {
		t.Error("runs of two builds are merged")
	}
	if _, err := ReadKill(strings.NewReader(`{"schema": 1, "kind": "run"}`)); err == nil {
		t.Error("a run is read as a kill matrix")
	}
}

func TestHostileKill(t *testing.T) {
	for _, s := range nasty {
		k := Kill{Tool: s, Version: s, Host: Host{Kernel: s},
			Controls: []KillControl{{Name: s, Omit: []string{s}, Why: s, Escaped: []string{s}, As: []string{s}, Unclear: []string{s}}, {Name: s}},
			Rows:     []KillRow{{ID: s, Class: s, Title: s, Excused: s}, {ID: s + "x", Title: s}},
			Also:     []Host{{Kernel: s}}, Unproved: []KillUnproved{{ID: s, As: s, Verdict: s, Reason: s}}}
		for _, f := range KillFormats {
			b := written(t, func(w io.Writer) error { return WriteKill(w, k, f, TextOptions{Width: 80}) })
			room := 0
			if f == FormatText {
				room = 80
			}
			if problem := harmless(b, room); problem != "" {
				t.Errorf("%+.40q as %s: %.200s", s, f, problem)
			}
		}
	}
}
