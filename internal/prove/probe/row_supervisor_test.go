//go:build linux

package probe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// harnessFaults are the ways in which other harnesses passed what they had not
// tried (HST-013, HST-014): none of them may read as held.
func harnessFaults() []verdict {
	return []verdict{
		{"the tool is missing", plain, func(*World, string) Observation { return Observation{Exit: 127} }, Inconclusive},
		{"the tool cannot be executed", plain, func(*World, string) Observation { return Observation{Exit: 126} }, Inconclusive},
		{"a script has a syntax error", plain, func(*World, string) Observation {
			return Observation{Exit: 2, Stderr: []byte("sh: 1: Syntax error: permission denied\n")}
		}, Inconclusive},
		{"the shell echoes what it runs, and that looks like a verdict", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			return Observation{Exit: 1, Stderr: append([]byte("+ "), o.Stdout...)}
		}, Inconclusive},
		{"the shell echoes what it runs, on standard output", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			return Observation{Stdout: []byte("+ " + strings.ReplaceAll(string(o.Stdout), "\n", "\n+ "))}
		}, Inconclusive},
		{"the time is over before the end, whatever was said", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			o.Took = time.Minute
			time.Sleep(300 * time.Millisecond)
			return o
		}, Inconclusive},
		{"it was killed after the first report", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			first, _, _ := strings.Cut(string(o.Stdout), "\n")
			return Observation{Exit: 137, Stdout: []byte(first + "\n")}
		}, Inconclusive},
		{"it could not be started", plain, func(*World, string) Observation { return Observation{Err: os.ErrNotExist} }, Inconclusive},
		{"it prints that all is well, and nothing else", plain, func(*World, string) Observation {
			return Observation{Stdout: []byte("PASS\nverdict: held\n0 escapes\n")}
		}, Inconclusive},
	}
}

func TestHarnessFaults(t *testing.T) {
	for _, c := range harnessFaults() {
		t.Run(c.name, func(t *testing.T) {
			c.row.Timeout = 200 * time.Millisecond
			r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
			if res := r.Play(t.Context(), c.play, c.row); res.Verdict != c.want {
				t.Errorf("%v (%s), want %v", res.Verdict, res.Reason, c.want)
			}
		})
	}
}

// TestAnEmptyListHoldsNothing: without rows nothing is proved, and there is no
// verdict that a caller could mistake for a proof.
func TestAnEmptyListHoldsNothing(t *testing.T) {
	r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
	broken := pretender(func(*World, string) Observation { return Observation{Exit: 127} })
	res := r.Run(t.Context(), broken, nil)
	if len(res) != 1 || res[0].Verdict != Inconclusive {
		t.Errorf("%d results, the first %v; want only the smoke test, inconclusive", len(res), res[0].Verdict)
	}
}

// TestAFewAreTriedAgain: what proves nothing for want of time is played once more, and
// told once; a target that ends nothing is not tried for each row again.
func TestAFewAreTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name        string
		broken      int // commands after the smoke test that fail
		plays, held int
	}{
		{"none", 0, 6, 6},
		{"three, once", 3, 9, 6},
		{"each, always", 100, 6 + mostAgain, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			plays := -1 // without the smoke test
			target := pretender(func(w *World, n string) Observation {
				plays++
				o := polite(w, n)
				switch {
				case plays == 0:
					o.Stdout = lines(w, n, inside.Report{Attempt: "nothing", Done: true})
				case plays <= c.broken:
					o = Observation{Exit: 127}
				}
				return o
			})
			told := map[string]int{}
			r := Runner{Prober: os.Args[0], Dir: t.TempDir(), Done: func(res Result) { told[res.Row.ID]++ }}
			var rows []Row
			for i := range 6 {
				rows = append(rows, with(func(r *Row) { r.ID = fmt.Sprintf("TST-10%d", i) }))
			}
			held := 0
			results := r.Run(t.Context(), target, rows)
			if results[0].Verdict != Held {
				t.Fatal(results[0].Verdict, results[0].Reason)
			}
			for _, res := range results[1:] {
				if res.Verdict == Held {
					held++
				}
				if told[res.Row.ID] != 1 {
					t.Errorf("%s was told %d times", res.Row.ID, told[res.Row.ID])
				}
			}
			if plays != c.plays || held != c.held {
				t.Errorf("%d plays, %d held; want %d and %d", plays, held, c.plays, c.held)
			}
		})
	}
}

// TestWhatIsNotTriedAgainKeepsItsReason: who interrupts the second plays learns what
// the first ones found.
func TestWhatIsNotTriedAgainKeepsItsReason(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	plays := 0
	target := pretender(func(w *World, n string) Observation {
		switch plays++; plays {
		case 1: // the smoke test
			o := polite(w, n)
			o.Stdout = lines(w, n, inside.Report{Attempt: "nothing", Done: true})
			return o
		case 4:
			cancel()
		}
		return Observation{Exit: 127}
	})
	r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
	results := r.Run(ctx, target, []Row{plain, plain})
	if plays != 4 {
		t.Errorf("%d plays, want two rows and the first of them again", plays)
	}
	if again := results[1].Reason; !strings.Contains(again, "played twice") {
		t.Errorf("the row that was played twice: %s", again)
	}
	if once := results[2].Reason; !strings.HasPrefix(once, "the action never ran (status 127)") || strings.Contains(once, "twice") {
		t.Errorf("the row that was not: %s", once)
	}
}

// TestNearlyEveryRowMustEscape: a row that cannot escape without a sandbox shows
// nothing, so there may be only few (HST-015).
func TestNearlyEveryRowMustEscape(t *testing.T) {
	var tame []string
	total := 0
	for _, r := range All() {
		if r.Kind == Control {
			continue
		}
		total++
		if r.Bare != "" {
			tame = append(tame, r.ID)
		}
	}
	if total == 0 || len(tame)*20 > total {
		t.Errorf("%d of %d rows need not escape: %v", len(tame), total, tame)
	}
}

func TestNamedAsksForEachChange(t *testing.T) {
	w := &World{W: t.TempDir()}
	must(os.Mkdir(w.Path("W/tree"), 0o755))
	for name, content := range map[string]string{"W/kept": "as it was\n", "W/changed": "another\n", "W/tree/new": "new\n"} {
		must(os.WriteFile(w.Path(name), []byte(content), 0o644))
	}
	before := map[string]string{"W/kept": "as it was\n", "W/changed": "as it was\n"}
	for _, c := range []struct {
		name, said string
		want       int
	}{
		{"nothing is said of two changes", "", 2},
		{"one is named, with punctuation", fmt.Sprintf("changed: %s, (why)", filepath.Join(w.W, "changed")), 1},
		{"a longer name is another file", filepath.Join(w.W, "changed5") + " " + filepath.Join(w.W, "tree/newer"), 2},
		{"a directory stands for what is in it", filepath.Join(w.W, "changed") + " " + filepath.Join(w.W, "tree") + "/", 0},
		{"the workspace itself stands for nothing", w.W, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := named(before, "W/kept", "W/changed", "W/tree/new", "W/absent")(w, Observation{Stderr: []byte(c.said)})
			if len(got) != c.want {
				t.Errorf("%d complaints, want %d: %v", len(got), c.want, got)
			}
		})
	}
}

func TestRepositoriesAreFoundInEveryShape(t *testing.T) {
	root := t.TempDir()
	for _, p := range []string{"a/.git/HEAD", "b/.GIT/HEAD", "bare/HEAD", "bare/objects/x", "bare/refs/x", "plain/HEAD"} {
		must(os.MkdirAll(filepath.Dir(filepath.Join(root, p)), 0o755))
		must(os.WriteFile(filepath.Join(root, p), nil, 0o644))
	}
	must(os.MkdirAll(filepath.Join(root, "tree"), 0o755))
	must(os.WriteFile(filepath.Join(root, "tree/.git"), []byte("gitdir: x\n"), 0o644))
	want := []string{root, root + "/a", root + "/b", root + "/bare", root + "/tree"}
	if got := repositories(root); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}
