//go:build linux

package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/probe"
	"holdfast.dev/holdfast/internal/probe/inside"
	"holdfast.dev/holdfast/internal/probe/targets"
	"holdfast.dev/holdfast/internal/report"
	"holdfast.dev/holdfast/internal/testenv"
)

// place makes worlds below the home, as a user's projects are.
func place(t *testing.T) *Place {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	built, err := probe.BuildProber(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlace(home, built)
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

// TestMatrix plays every row against the program as it is shipped, as whoever
// runs the test. Each is held and seen, or gets through for a reason that it
// documents.
func TestMatrix(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	program := testenv.Binary(t)
	run, err := Prove(t.Context(), Options{Target: targets.Holdfast{Path: program}, Place: place(t), Worker: []string{program, WorkerCommand}})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, run)
	rows := map[string]probe.Row{}
	for _, r := range probe.All() {
		rows[r.ID] = r
	}
	for _, r := range run.Rows {
		if r.Fails(!r.Missing || !mayLack(rows[r.ID])) {
			t.Errorf("%s, %s: %s: %s", r.ID, r.Title, r.Verdict, r.Reason)
		}
	}
	if len(run.Rows) != len(rows) {
		t.Errorf("%d of %d rows were played", len(run.Rows), len(rows))
	}
}

// lacks are the rows for which an ordinary machine lacks something besides
// programs and rights, and what.
var lacks = map[string]string{
	"PTH-004": "a file system that ignores case",
	"PRC-008": "/proc/sysrq-trigger, which containers do not have",
	"PRC-010": "binfmt_misc",
}

// mayLack says whether the machine may lack what a row needs. It is not what the
// row was found to lack that counts, or rows that nobody plays any more would pass
// in silence. A machine that promises nothing (testenv.Want) may lack any program
// or device, but no machine lacks the network that the harness makes.
func mayLack(r probe.Row) bool {
	if lacks[r.ID] != "" {
		return true
	}
	for _, need := range r.Needs {
		program, named := strings.CutPrefix(need, "program ")
		switch {
		case need == "root" && os.Geteuid() != 0, need == "user" && os.Geteuid() == 0, named && !inside.OnSystemPath(program):
			return true
		case strings.HasPrefix(need, "runs "): // three programs that are often there and do not run
			return true
		case need != "network" && os.Getenv(testenv.Want) == "":
			return true
		}
	}
	return false
}

// TestWhatMayBeLacking has the list speak of rows that are there, and of no more
// of them than it must: a row that is not played proves nothing.
func TestWhatMayBeLacking(t *testing.T) {
	t.Setenv(testenv.Want, "all")
	may := map[string]bool{}
	for _, r := range probe.All() {
		may[r.ID] = mayLack(r)
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
	if !mayLack(probe.Row{Needs: []string{"program no-such-program"}}) || mayLack(probe.Row{Needs: []string{"network"}}) || mayLack(probe.Row{Needs: []string{"gti"}}) {
		t.Error("what a machine may lack is not what its rows need")
	}
}

// keep leaves the report where ARTEFACTS says.
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
	unheld := probe.Unheld(results)
	var b strings.Builder
	if err := probe.Table(&b, unheld); err != nil {
		t.Fatal(err)
	}
	if len(unheld) > 0 {
		t.Errorf("%d of %d rows are not held:\n%s", len(unheld), len(results), b.String())
	}
}
