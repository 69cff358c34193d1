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

// TestNoFindingIsNoPromise: that nothing was found is said of what was played.
func TestNoFindingIsNoPromise(t *testing.T) {
	k := sampleKill()
	k.Controls, k.Rows = k.Controls[:3], append(k.Rows[:3:3], k.Rows[4])
	b := string(written(t, func(w io.Writer) error { return WriteKill(w, k, FormatMarkdown, TextOptions{}) }))
	for _, want := range []string{"None among 4 rows that were played: 3 of 4 rows escape when a control is left out", "2 of 3 controls hold a row", "Rows that were not played may have no control."} {
		if !strings.Contains(b, want) {
			t.Errorf("%q is not said:\n%s", want, b)
		}
	}
}

func TestHostileKill(t *testing.T) {
	for _, s := range nasty {
		k := Kill{Tool: s, Version: s, Host: Host{Kernel: s},
			Controls: []KillControl{{Name: s, Omit: []string{s}, Why: s, Escaped: []string{s}, Unclear: []string{s}}, {Name: s}},
			Rows:     []KillRow{{ID: s, Class: s, Title: s, Excused: s}, {ID: s + "x", Title: s}}}
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
