//go:build linux

package review

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestPairsOfARename: equal content is paired by the last name first, each file once, and
// what was not read with nothing.
func TestPairsOfARename(t *testing.T) {
	x, y := sum{1}, sum{2}
	del := func(p workspace.Name) *Change {
		return &Change{Kind: Deleted, Path: p, OldType: File, OldSize: 20, OldMode: 0o600}
	}
	add := func(p workspace.Name) *Change { return &Change{Kind: Added, Path: p, Type: File, Size: 20} }
	s := &Set{}
	list := []*Change{del("a/1"), del("b/2"), del("b/3"), del("c/4"), del("unread"), add("d/2"), add("d/new"), add("d/other"), add("e/1"), add("new/unread"), {Kind: Modified, Path: "m"}}
	list[0].Flags, list[0].Notes = []Flag{{"r", "1"}, {"r", "2"}}, []string{"n"}
	list[8].Flags, list[8].Notes = []Flag{{"r", "2"}}, []string{"n"}
	s.Changes = slices.Clone(list)
	s.pair(list, []sum{x, x, x, y, {}, x, x, y, x, {}, x})
	want(t, lines(s), `deleted "unread" file→none`, `renamed "d/2" from "b/2"`, `renamed "d/new" from "b/3"`, `renamed "d/other" from "c/4"`, `renamed "e/1" from "a/1" [r] [r]`, `added "new/unread"`, `modified "m" none→none`)
	if c := list[8]; !slices.Equal(c.Flags, []Flag{{"r", "2"}, {"r", "1"}}) || len(c.Notes) != 1 || c.OldMode != 0o600 || c.OldSize != 20 {
		t.Errorf("%+v", c)
	}
	for _, row := range []struct {
		t    Type
		kind bool
		size int64
		want bool
	}{{File, true, minRename, true}, {File, true, minRename - 1, false}, {File, true, maxRename, true}, {File, true, maxRename + 1, false}, {Link, true, 20, false}, {File, false, 20, false}} {
		if got := movable(row.t, row.kind, row.size); got != row.want {
			t.Errorf("%+v: %t", row, got)
		}
	}
}

// TestContentThatIsCompared: files are compared to their end, past holes that both have.
func TestContentThatIsCompared(t *testing.T) {
	f := newField(t, Overlay).lower("kept=workspace", "only=workspace", "gone=1", "l/x=1", "d=1")
	f.make(f.dir+"/base", "kept=kept", "l->x", "d/x=1")
	s := f.collect()
	s.trees.gone = map[string]bool{"gone": true}
	for path, want := range map[string]string{"kept": "kept", "only": "workspace", "l/x": "1", "gone": "", "none": "", "d": ""} {
		file, err := s.trees.openOld(path)
		got := ""
		if err == nil {
			b, _ := io.ReadAll(file)
			file.Close()
			got = string(b)
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	dir := t.TempDir()
	file := func(name string, size int64, data map[int64]string) *os.File {
		w, err := os.Create(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		for at, s := range data {
			w.WriteAt([]byte(s), at)
		}
		w.Truncate(size)
		return w
	}
	const size = 4 * chunk
	hole, zeros := file("hole", size, nil), file("zeros", size, map[int64]string{0: strings.Repeat("\x00", chunk)})
	end, mid, short := file("end", size, map[int64]string{size - 1: "x"}), file("mid", size, map[int64]string{2*chunk + 5: "x"}), file("short", size/2, nil)
	for i, row := range []struct {
		a, b *os.File
		size int64
		want bool
	}{
		{hole, hole, size, true}, {hole, zeros, size, true}, {zeros, hole, size, true}, {hole, end, size, false}, {end, hole, size, false}, {end, end, size, true}, {mid, hole, size, false}, {mid, hole, 2 * chunk, true}, {mid, mid, size, true},
		{hole, short, size / 2, true}, {end, short, size, false}, {short, end, size, false}, {hole, mid, 2*chunk + 6, false}, {hole, mid, 2*chunk + 5, true}, {hole, end, 0, true},
	} {
		if got := workspace.SameContent(int(row.a.Fd()), int(row.b.Fd()), row.size); got != row.want {
			t.Errorf("row %d: %t", i, got)
		}
	}
}
