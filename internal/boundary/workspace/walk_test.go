//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Names of branches may be any name, and only in a repository: one that a run gave
// the shape of a repository hides nothing.
func TestNamesInRepositories(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"refs/.envrc", "objects/.envrc", "d/logs/.envrc", "store/refs/heads/.envrc", "store/objects/.envrc", "store/logs/.envrc", "store/src/.envrc", "store/.envrc"} {
		write(t, w, name, "")
	}
	bareShape(t, w+"/store")
	link(t, "d", w, "plain")
	s := scanned(t, w)
	got := rowPaths(s)
	slices.Sort(got)
	if want := []string{"d/logs/.envrc", "objects/.envrc", "refs/.envrc", "store/.envrc", "store/src/.envrc"}; !slices.Equal(got, want) {
		t.Errorf("protected %q, want %q", got, want)
	}
	write(t, w, "store/refs/heads/CLAUDE.md", "")
	write(t, w, "store/src/CLAUDE.md", "")
	bareShape(t, w+"/fake")
	write(t, w, "fake/refs/CLAUDE.md", "")
	link(t, "d", w, "Makefile")
	r := settled(t, s)
	got = nil
	for _, q := range r.Quarantined {
		got = append(got, strings.TrimPrefix(string(q.Path), w+"/"))
	}
	if want := []string{"fake/refs/CLAUDE.md", "store/src/CLAUDE.md"}; !slices.Equal(got, want) {
		t.Errorf("moved out %q, want %q", got, want)
	}
	if len(r.Flagged) != 1 || string(r.Flagged[0].Path) != w+"/Makefile" || r.Flagged[0].Change != Added {
		t.Errorf("a link under a listed name: %+v", r.Flagged)
	}
}

// erring is a visitor that fails in every goroutine but the first.
type erring struct {
	linkFinder
	first *walker
	calls atomic.Int64
}

var errErring = errors.New("erring")

func (v *erring) beforeRules(w *walker, _ *dir, _ entry) (bool, error) {
	if len(w.path) == 0 {
		v.first = w
	} else if v.calls.Add(1); w != v.first {
		return false, errErring
	}
	return false, nil
}

// An error that another goroutine of a walk meets is one of the walk.
func TestWalkReturnsErrorsOfOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	w := tempRoot(t)
	for i := range 4 {
		write(t, w, fmt.Sprintf("d%d/x", i), "")
	}
	rules := DefaultRules()
	v := &erring{}
	if err := run(t.Context(), openDir(t, w), &rules, 0, false, v, walkMemory{}); !errors.Is(err, errErring) || v.calls.Load() == 0 {
		t.Errorf("%v after %d calls", err, v.calls.Load())
	}
	if err := run(t.Context(), -1, &rules, 0, false, v, walkMemory{}); !errors.Is(err, unix.EBADF) {
		t.Errorf("without a directory: %v", err)
	}
}

// meeting is a visitor that waits at one name until another goroutine has come to it.
type meeting struct {
	linkFinder
	came atomic.Int64
	met  chan struct{}
}

func (v *meeting) beforeRules(_ *walker, _ *dir, e entry) (bool, error) {
	if string(e.name()) != "here" {
		return false, nil
	}
	if v.came.Add(1) == 2 {
		close(v.met)
	}
	select {
	case <-v.met:
		return false, nil
	case <-time.After(10 * time.Second):
		return false, errors.New("nobody else came")
	}
}

// Directories are shared wherever there are several, and not at the top alone.
func TestWalkIsShared(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, top := range []string{"", "only/", "src/main/java/org/example/"} {
		w := tempRoot(t)
		for _, name := range []string{"a/here", "b/here"} {
			write(t, w, top+name, "")
		}
		rules := DefaultRules()
		if err := run(t.Context(), openDir(t, w), &rules, 0, false, &meeting{met: make(chan struct{})}, walkMemory{}); err != nil {
			t.Errorf("directories of %q: %v", top, err)
		}
	}
}
