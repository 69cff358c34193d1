//go:build linux

package harness

import (
	"cmp"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

// place makes worlds below the home, where a user's projects are.
func place(t *testing.T) *Place {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlace(home, testenv.Prober(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func runner(t *testing.T) probe.Runner {
	p := place(t)
	return probe.Runner{Prober: p.Prober, Dir: p.Dir}
}

// TestMatrix plays every row against the shipped program, as the user that runs the
// test: in the default world, and in one other, which the number of the build
// selects. If root and an ordinary user both run it for one build, each plays a row
// once: one of them in the other world, selected by the number of the build. Each
// row is held and seen, or gets through for a documented reason.
func TestMatrix(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	build := cmp.Or(os.Getenv(testenv.Build), time.Now().UTC().Format(time.DateOnly))
	t.Logf("the other worlds are those of build %s: %s=%[1]s plays the same ones again", build, testenv.Build)
	chosen := map[string][]string{}
	for _, r := range probe.All() {
		w, root := sample(r, build)
		twice, mine := os.Getenv(testenv.Twice) != "", root == (os.Geteuid() == 0)
		if !twice || mine {
			chosen[w.Name] = append(chosen[w.Name], r.ID)
		}
		if !twice || !mine || alone(r) {
			chosen[DefaultWorld] = append(chosen[DefaultWorld], r.ID)
		}
	}
	for _, w := range Worlds() {
		if ids, some := chosen[w.Name]; some {
			t.Run(w.Name, func(t *testing.T) { playMatrix(t, w, ids) })
		}
	}
}

// sample returns the world besides the default one in which r is played in that
// build, and whether root plays it there (an ordinary user plays the rest). Each
// build has others.
func sample(r probe.Row, build string) (w World, root bool) {
	worlds := slices.DeleteFunc(Worlds(), func(w World) bool { return w.Name == DefaultWorld || w.Except(r) != "" })
	h := fnv.New32a()
	h.Write([]byte(build + " " + r.ID))
	n, m := h.Sum32(), uint32(len(worlds))
	root = n/m%2 == 0
	if alone(r) {
		root = slices.Contains(r.Needs, "root")
	}
	return worlds[n%m], root
}

// alone reports whether only root, or only an ordinary user, can play r.
func alone(r probe.Row) bool {
	return slices.Contains(r.Needs, "root") || slices.Contains(r.Needs, "user")
}

// playMatrix plays some rows in a world.
func playMatrix(t *testing.T, w World, ids []string) {
	rows := map[string]probe.Row{}
	for _, r := range probe.All() {
		rows[r.ID] = r
	}
	run, err := Prove(t.Context(), Options{Target: targets.Holdfast{Path: testenv.Binary(t)}, Select: Selection{IDs: ids}, Place: place(t), World: w,
		Worker: []string{testenv.Prove(t), WorkerCommand}, Machine: []string{testenv.Prove(t), MachineCommand}})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, run)
	if len(run.Rows) != len(ids) {
		t.Errorf("%d of %d rows were played", len(run.Rows), len(ids))
	}
	for _, r := range run.Rows {
		if r.Fails(!r.Missing || !mayLack(rows[r.ID], w)) {
			t.Errorf("%s, %s: %s: %s", r.ID, r.Title, r.Verdict, r.Reason)
		}
	}
}

// lacks lists the rows that need something, besides programs and rights, that an
// ordinary machine lacks.
var lacks = map[string]string{
	"PTH-004": "a file system that ignores case",
	"PRC-008": "/proc/sysrq-trigger, which containers do not have",
	"PRC-010": "binfmt_misc",
}

// mayLack reports whether the machine may lack what a row needs. What the row was
// found to lack does not count; otherwise rows that are never played any more would
// pass silently. A machine that promises nothing (testenv.Want) may lack any program
// or device, but no machine lacks the network that the harness makes. A world that an
// ordinary user makes is a user namespace, which maps no second group.
func mayLack(r probe.Row, w World) bool {
	if lacks[r.ID] != "" {
		return true
	}
	for _, need := range r.Needs {
		program, named := strings.CutPrefix(need, "program ")
		switch {
		case need == "root" && os.Geteuid() != 0, need == "user" && os.Geteuid() == 0, named && !inside.OnSystemPath(program):
			return true
		case need == "second group" && os.Geteuid() != 0 && w.made != "":
			return true
		case strings.HasPrefix(need, "runs "): // three programs that are often there but do not run
			return true
		case need != "network" && os.Getenv(testenv.Want) == "":
			return true
		}
	}
	return false
}

// TestWhatMayBeLacking checks that the list names existing rows, and no more of
// them than necessary: a row that is not played proves nothing.
func TestWhatMayBeLacking(t *testing.T) {
	t.Setenv(testenv.Want, "all")
	may := map[string]bool{}
	for _, r := range probe.All() {
		may[r.ID] = mayLack(r, Worlds()[0])
		if may[r.ID] && len(r.Needs) == 0 && lacks[r.ID] == "" {
			t.Errorf("%s needs nothing, and may lack something", r.ID)
		}
	}
	for id, why := range lacks {
		if _, known := may[id]; !known || why == "" {
			t.Errorf("%s may lack %q, and is no row", id, why)
		}
	}
	for _, id := range []string{"LNK-001", "NET-001", "NET-006b", "DNS-001", "PXY-007", "EXF-006"} {
		if may[id] {
			t.Errorf("%s may lack something", id)
		}
	}
	for need, want := range map[string]bool{"program no-such-program": true, "network": false, "second group": false, "gti": false} {
		if mayLack(probe.Row{Needs: []string{need}}, Worlds()[0]) != want {
			t.Errorf("a machine may lack %q: want %v", need, want)
		}
	}
}

// keep writes the report to the directory in ARTEFACTS.
func keep(t *testing.T, run report.Run) {
	t.Helper()
	dir := os.Getenv("ARTEFACTS")
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, "matrix-"+run.Host.User+".html"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := report.HTML(f, run); err != nil {
		t.Error(err)
	}
}

func matrix(t *testing.T, play probe.Runner, target probe.Target, rows []probe.Row) {
	t.Helper()
	results := play.Run(t.Context(), target, rows)
	for _, r := range probe.Unheld(results) {
		t.Errorf("%s is not held: %s: %s: %s", r.Row.ID, r.Verdict, r.Row.Title, r.Reason)
	}
}

// TestMeaning checks that rows name existing worlds, and that each row is played in
// most.
func TestMeaning(t *testing.T) {
	excepted := map[string]int{}
	for _, r := range probe.All() {
		for w, why := range r.NotIn {
			if excepted[w]++; !slices.Contains(WorldNames(), w) || why == "" {
				t.Errorf("%s means nothing in the world %q, because %q", r.ID, w, why)
			}
		}
		if len(r.NotIn) > 2 {
			t.Errorf("%s means nothing in %d worlds", r.ID, len(r.NotIn))
		}
	}
	for w, n := range excepted {
		if n > len(probe.All())/5 {
			t.Errorf("%d rows mean nothing in the world %s: why is it one?", n, w)
		}
	}
}
