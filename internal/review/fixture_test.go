//go:build linux

package review

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// field is a workspace and the directory of a review of it.
type field struct {
	t    testing.TB
	ws   string
	dir  string
	mode Mode
	fast bool // nothing is put on disk for good
}

func newField(t testing.TB, mode Mode) *field {
	t.Helper()
	return newFieldIn(t, mode, t.TempDir())
}

// inMemory is a directory whose files cost little, where there is one that
// keeps attributes.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-review-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if unix.Setxattr(dir, "user.overlay.opaque", []byte("x"), 0) != nil {
		return t.TempDir()
	}
	return dir
}

func newFieldIn(t testing.TB, mode Mode, top string) *field {
	t.Helper()
	f := &field{t: t, ws: top + "/ws", dir: top + "/review", mode: mode}
	for _, d := range []string{f.ws, f.dir + "/upper"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// make lays out a tree. A row is "path=content", "path/" for a directory,
// "path->target" for a link, "path!" for a deleted name, "path|" for a named
// pipe; "0755 " and the like in front sets the mode.
func (f *field) make(root string, rows ...string) {
	f.t.Helper()
	for _, row := range rows {
		if err := makeRow(root, row); err != nil {
			f.t.Fatalf("%q: %v", row, err)
		}
	}
}

func makeRow(root, row string) error {
	mode, set := uint32(0), false
	if m, rest, ok := strings.Cut(row, " "); ok && len(m) == 4 && m[0] >= '0' && m[0] <= '7' {
		fmt.Sscanf(m, "%o", &mode)
		row, set = rest, true
	}
	name := strings.FieldsFunc(row, func(r rune) bool { return r == '=' || r == '!' || r == '|' })[0]
	if n, _, ok := strings.Cut(row, "->"); ok && !strings.Contains(n, "=") {
		name = n
	}
	p := root + "/" + name
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	rest := row[len(name):]
	var err error
	switch {
	case strings.HasPrefix(rest, "="):
		err = os.WriteFile(p, []byte(rest[1:]), 0o644)
	case strings.HasPrefix(rest, "->"):
		return os.Symlink(rest[2:], p)
	case rest == "!":
		return os.WriteFile(p, nil, 0o600) // made a whiteout by its attribute
	case rest == "|":
		err = unix.Mkfifo(p, 0o644)
	case strings.HasSuffix(name, "/"):
		err = os.MkdirAll(p, 0o755)
	}
	if err == nil && set {
		err = unix.Chmod(p, mode)
	}
	return err
}

func (f *field) lower(rows ...string) *field { f.t.Helper(); f.make(f.ws, rows...); return f }

// upper lays out what the run left. Deleted names are the attribute form of a
// whiteout, which an ordinary user can make too.
func (f *field) upper(rows ...string) *field {
	f.t.Helper()
	f.make(f.dir+"/upper", rows...)
	for _, row := range rows {
		name, ok := strings.CutSuffix(row, "!")
		if !ok {
			continue
		}
		p := f.dir + "/upper/" + name
		f.attr(p, "user.overlay.whiteout", "y")
		f.attr(filepath.Dir(p), "user.overlay.opaque", "x")
	}
	return f
}

func (f *field) attr(path, name, value string) {
	f.t.Helper()
	if err := unix.Setxattr(path, name, []byte(value), 0); err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) source() Source {
	return Source{Workspace: f.ws, Dir: f.dir, Mode: f.mode, Rules: workspace.DefaultRules(), Began: time.Now().Add(time.Hour)}
}

func (f *field) collect() *Set {
	f.t.Helper()
	s, err := Collect(f.t.Context(), f.source())
	if err != nil {
		f.t.Fatal(err)
	}
	s.saved.fast = f.fast
	f.t.Cleanup(func() { s.Close() })
	return s
}

// lines lists the changes in short.
func lines(s *Set) []string {
	var out []string
	for _, c := range s.Changes {
		l := fmt.Sprintf("%s %q", c.Kind, string(c.Path))
		if c.From != "" {
			l += fmt.Sprintf(" from %q", string(c.From))
		}
		if c.Type != File || c.OldType != File && c.OldType != None {
			l += fmt.Sprintf(" %s→%s", c.OldType, c.Type)
		}
		for _, f := range c.Flags {
			l += " [" + f.Rule + "]"
		}
		if c.Cannot != "" {
			l += " cannot"
		}
		if c.Applied {
			l += " applied"
		}
		out = append(out, l)
	}
	return out
}

func want(t testing.TB, got []string, rows ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(rows, "\n") {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(rows, "\n  "))
	}
}

// Decide records one decision for one change.
func (s *Set) Decide(c *Change, d Decision) error { return s.DecideAll([]*Change{c}, d) }
