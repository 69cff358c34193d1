//go:build linux

package harness

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

var update = flag.Bool("harness.update", false, "write what the record told into testdata/reconstruction.md")

const reconstruction = "testdata/reconstruction.md"

// toldColumns are the columns of the table after the kind and the number of
// things.
var toldColumns = []struct{ title, world, level string }{
	{"`standard`", DefaultWorld, "standard"}, {"`full`", DefaultWorld, "full"},
	{"`standard`, no `/dev/fuse`", "no-fuse", "standard"}, {"`full`, no `/dev/fuse`", "no-fuse", "full"},
}

// TestReconstructionIsCurrent plays the rows of the reconstruction in the worlds of
// the table, and compares the figures with it. Worlds that this machine cannot have
// are skipped: the default one needs /dev/fuse. With the flag -harness.update it
// writes the figures.
func TestReconstructionIsCurrent(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	for _, world := range []string{DefaultWorld, "no-fuse"} {
		t.Run(world, func(t *testing.T) {
			if world == DefaultWorld {
				testenv.Need(t, testenv.FUSE, nil)
			}
			page := readCoverage(t)
			now := maps.Clone(page.cells)
			for level, kinds := range playCoverage(t, world) {
				page.take(world, level, kinds)
			}
			if *update {
				page.write(t)
				return
			}
			for kind, cells := range page.cells {
				if !slices.Equal(cells, now[kind]) {
					t.Errorf("%s has %q of %s, and it is %q: go test ./internal/prove/harness -run TestReconstructionIsCurrent -args -harness.update", reconstruction, now[kind], kind, cells)
				}
			}
		})
	}
}

// playCoverage plays the rows in a world and returns how much was recorded, by level and
// kind.
func playCoverage(t *testing.T, name string) map[string]map[string]probe.Coverage {
	worlds, err := WorldsNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	program := testenv.Binary(t)
	told := map[string]map[string]probe.Coverage{"standard": {}, "full": {}}
	o := Options{Target: targets.Holdfast{Path: program}, Select: Selection{IDs: []string{"HST-50[123]*"}}, Place: place(t), World: worlds[0],
		Worker: []string{testenv.Prove(t), WorkerCommand}, Machine: []string{testenv.Prove(t), MachineCommand}}
	o.Progress = func(_, _ int, r probe.Result) {
		if r.Verdict != probe.Held {
			t.Errorf("%s: %v: %s", r.Row.ID, r.Verdict, r.Reason)
		}
		level := "standard"
		if strings.HasSuffix(r.Row.ID, "b") {
			level = "full"
		}
		for kind, of := range r.Coverage {
			told[level][kind] = sum(told[level][kind], of)
		}
	}
	if _, err := Prove(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	return told
}

func sum(a, b probe.Coverage) probe.Coverage {
	return probe.Coverage{Done: a.Done + b.Done, Right: a.Right + b.Right, Beyond: a.Beyond + b.Beyond}
}

// allKinds is the last line of the table.
const allKinds = "**all**"

// coveragePage is the table of reconstruction.
type coveragePage struct {
	cells map[string][]string // by kind: the number of things, then one cell per column
}

func readCoverage(t *testing.T) *coveragePage {
	text, err := os.ReadFile(reconstruction)
	if err != nil {
		t.Fatal(err)
	}
	p := &coveragePage{cells: map[string][]string{}}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == len(toldColumns)+2 && cells[0] != "kind" && cells[0] != "---" {
			p.cells[cells[0]] = cells[1:]
		}
	}
	return p
}

// take enters the figures of a world and a level into the table.
func (p *coveragePage) take(world, level string, kinds map[string]probe.Coverage) {
	column := 0
	for i, c := range toldColumns {
		if c.world == world && c.level == level {
			column = i + 1
		}
	}
	all := probe.Coverage{}
	for _, told := range kinds {
		all = sum(all, told)
	}
	kinds = maps.Clone(kinds)
	kinds[allKinds] = all
	for kind := range p.cells {
		if _, some := kinds[kind]; !some {
			delete(p.cells, kind)
		}
	}
	for kind, told := range kinds {
		cells := slices.Clone(p.cells[kind])
		if cells == nil {
			cells = make([]string, len(toldColumns)+1)
		}
		cells[0] = fmt.Sprint(told.Done + told.Beyond)
		cells[column] = fmt.Sprintf("%d of %d", told.Right, told.Done)
		p.cells[kind] = cells
	}
}

// write writes the table with the kinds in order and the sum last.
func (p *coveragePage) write(t *testing.T) {
	var b strings.Builder
	b.WriteString("| kind | things |")
	for _, c := range toldColumns {
		b.WriteString(" " + c.title + " |")
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(toldColumns)+2) + "\n")
	kinds := slices.Sorted(maps.Keys(p.cells))
	for _, kind := range append(slices.DeleteFunc(kinds, func(k string) bool { return k == allKinds }), allKinds) {
		b.WriteString("| " + kind + " | " + strings.Join(p.cells[kind], " | ") + " |\n")
	}
	if err := os.WriteFile(reconstruction, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
