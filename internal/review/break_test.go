//go:build linux

package review

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/testenv"
)

var errKilled = errors.New("killed")

// breaker breaks the n-th system call that changes something.
type breaker struct {
	n    int
	how  string
	seen int
	dead bool
	op   string
}

func (b *breaker) hook(op string, done bool) error {
	if b.dead {
		return errKilled
	}
	if !done {
		b.seen++
	}
	if b.seen != b.n {
		return nil
	}
	b.op = op
	switch {
	case b.how == "fails" && !done:
		return unix.ENOSPC
	case b.how == "happens and is reported to have failed" && done:
		return unix.EIO
	case b.how == "is never reached" && !done:
		b.dead = true
		return errKilled
	}
	return nil
}

// broken is a field in which every step of an apply is broken.
type broken struct {
	make  func(t *testing.T) *field
	after []string // what is there at last
	calls int      // that are broken at the least
	share bool     // each is broken in one of the ways, in turn, and not in all
}

// Whatever fails, wherever: each file is the old or the new one, and an apply that does
// not fail continues to the end.
func TestEveryBrokenStep(t *testing.T) {
	breakAll(t, broken{func(t *testing.T) *field { return big(t, Overlay) }, bigAfter, 60, false})
}

// With the review on another file system, where what is replaced is kept by
// copying it: the usual case.
func TestEveryBrokenStepBetweenFileSystems(t *testing.T) {
	testenv.Need(t, testenv.SecondFS, nil)
	breakAll(t, broken{func(t *testing.T) *field {
		f := newFieldIn(t, Overlay, inMemory(t))
		f.ws = t.TempDir()
		f.lower("a=1\n", "gone=old old\n", "l->a", "d/tolink=1")
		return f.upper("a=2\n", "gone!", "l->b", "d/tolink->a", "new=1\n")
	}, []string{"0644 a=2\n", "d/", "d/tolink->a", "l->b", "0644 new=1\n"}, 30, false})
}

// A history: objects, references, HEAD and the index, in a copy of the workspace.
func TestEveryBrokenStepOfAHistory(t *testing.T) {
	model, up := gitField(t)
	for _, root := range []string{model.ws, up} {
		git(t, root, "config", "core.logAllRefUpdates", "false")
		for _, name := range []string{"hooks", "logs"} { // long, and as any other file
			if err := os.RemoveAll(root + "/.git/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	model.make(up, "a=2\n", "c=3\n")
	git(t, up, "add", ".")
	git(t, up, "commit", "-qm", "second")
	git(t, up, "branch", "side")
	history := func(t *testing.T) *field {
		f := newFieldIn(t, Copy, inMemory(t))
		copyOf(t, model.ws, f.ws)
		f.listed()
		upper := f.dir + "/upper"
		if err := os.RemoveAll(upper); err != nil {
			t.Fatal(err)
		}
		copyOf(t, up, upper)
		return f
	}
	f := history(t)
	s := f.collect()
	f.acceptAll(s)
	if r := f.apply(s, Options{}); !r.Settled {
		t.Fatalf("%+v", r)
	}
	git(t, f.ws, "fsck", "--full", "--strict")
	if log := git(t, f.ws, "log", "--format=%s", "side"); log != "second\nfirst\n" {
		t.Fatalf("log: %q", log)
	}
	breakAll(t, broken{history, tree(t, f.ws), 60, true})
}

func copyOf(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.CopyTree(t.Context(), from, to, 0); err != nil {
		t.Fatal(err)
	}
}

func breakAll(t *testing.T, w broken) {
	for i, how := range []string{"fails", "happens and is reported to have failed", "is never reached"} {
		t.Run(how, func(t *testing.T) {
			first, step, last := 1, 1, 1<<30
			if w.share {
				first, step = 1+i, 3
			}
			for n := first; n <= last; n += step {
				b := &breaker{n: n, how: how}
				t.Run(strconv.Itoa(n), func(t *testing.T) { breakOnce(t, b, w) })
				if b.op == "" {
					last = n // there were fewer
				}
				if t.Failed() {
					t.Fatalf("call %d (%s) %s", n, b.op, how)
				}
			}
			if last < w.calls {
				t.Errorf("only %d calls were broken", last)
			}
		})
	}
}

// private reports whether a row is of what Apply makes for itself.
func private(row string) bool {
	return strings.Contains(row, tempPrefix) || strings.HasSuffix(row, "/") || strings.HasPrefix(row, "0600 .git/index.lock=")
}

func breakOnce(t *testing.T, b *breaker, w broken) {
	f := w.make(t)
	f.fast = true
	before := tree(t, f.ws)
	s := f.collect()
	f.acceptAll(s)
	_, err := s.Apply(t.Context(), Options{hook: b.hook})
	half := tree(t, f.ws)
	for _, l := range half {
		if !slices.Contains(before, l) && !slices.Contains(w.after, l) && !private(l) {
			t.Errorf("neither old nor new: %q (apply said: %v)", l, err)
		}
	}
	s.Close()
	again := f.collect()
	for _, c := range again.Changes {
		if c.Decision != Accept {
			t.Errorf("%s is %s when it is looked at again: %q", c, c.Decision, c.Notes)
		}
	}
	r, err := again.Apply(t.Context(), Options{hook: func(string, bool) error { return nil }})
	if err != nil || len(r.Conflicts)+len(r.Refused) > 0 || !r.Settled {
		t.Errorf("the second apply: %v, %+v", err, r)
	}
	want(t, tree(t, f.ws), w.after...)
	for _, l := range tree(t, f.dir) {
		if strings.Contains(l, tempPrefix) || strings.Contains(l, "journal") {
			t.Errorf("left behind: %q", l)
		}
	}
	again.Close()
}
