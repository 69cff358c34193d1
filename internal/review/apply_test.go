//go:build linux

package review

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree lists everything in a directory.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel := strings.TrimPrefix(p, root+"/")
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out = append(out, rel+"/")
		case d.Type()&fs.ModeSymlink != 0:
			l, _ := os.Readlink(p)
			out = append(out, rel+"->"+l)
		case d.Type().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("%04o %s=%s", info.Mode().Perm(), rel, b))
		default:
			out = append(out, rel+"?")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// big is a field with a change of each kind.
func big(t testing.TB, mode Mode) *field {
	f := newFieldIn(t, mode, inMemory(t))
	f.lower("a=1\n", "b=left alone", "gone=old old\n", "moved=some content that moved\n", "d/x=1", "d/y/z=2", "mode=m", "l->a", "tofile/in=1", "todir=1", "tolink=1", "unlink->x")
	f.upper("a=2\n", "gone!", "moved!", "sub/arrived=some content that moved\n", "d!", "0755 mode=m", "l->b", "tofile=now", "todir/f=1", "new/deep/er/file=n", "empty/", "tolink->a", "unlink=x", "4755 su=x")
	return f
}

var bigAfter = []string{
	"0644 a=2\n", "0644 b=left alone", "empty/", "l->b", "0755 mode=m", "new/", "new/deep/", "new/deep/er/", "0644 new/deep/er/file=n",
	"0755 su=x", "sub/", "0644 sub/arrived=some content that moved\n", "todir/", "0644 todir/f=1", "0644 tofile=now", "tolink->a", "0644 unlink=x",
}

func (f *field) acceptAll(s *Set) {
	f.t.Helper()
	var list []*Change
	for _, c := range s.Changes {
		if c.Cannot == "" {
			list = append(list, c)
		}
	}
	if err := s.DecideAll(list, Accept); err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) apply(s *Set, o Options) Report {
	f.t.Helper()
	r, err := s.Apply(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func TestApplyAll(t *testing.T) {
	f := big(t, Overlay)
	s := f.collect()
	f.acceptAll(s)
	r := f.apply(s, Options{})
	if len(r.Refused)+len(r.Conflicts) > 0 || !r.Settled {
		t.Errorf("%+v", r)
	}
	want(t, tree(t, f.ws), bigAfter...)
	want(t, tree(t, f.dir+"/base"), "0644 a=1\n", "d/", "0644 d/x=1", "d/y/", "0644 d/y/z=2", "0644 gone=old old\n", "l->a", "0644 moved=some content that moved\n", "0644 todir=1", "tofile/", "0644 tofile/in=1", "0644 tolink=1", "unlink->x")
	if _, err := os.Stat(f.dir + "/journal"); err == nil {
		t.Error("the journal is still there")
	}
	s.Close()
	again := f.collect()
	if n := again.Counts(); n.Applied != n.Changes || !again.Settled() {
		t.Errorf("looked at again: %+v\n%s", n, strings.Join(lines(again), "\n"))
	}
	if r := f.apply(again, Options{}); len(r.Applied) > 0 {
		t.Errorf("applied again: %v", r.Applied)
	}
	want(t, tree(t, f.ws), bigAfter...)
}

func TestApplySafe(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("a=1\n", "Makefile=all:\n")
	f.upper("a=2\n", "Makefile=x", "0755 run=#!/bin/sh\n", "l->a", ".vscode/tasks.json={}", "b=1", "up->../x", "node_modules/x/index.js=1")
	s := f.collect()
	r := f.apply(s, Options{Safe: true})
	want(t, tree(t, f.ws), "0644 Makefile=all:\n", "0644 a=2\n", "0644 b=1")
	if len(r.Left) != 6 || r.Settled {
		t.Errorf("%+v", r)
	}
}

func TestApplyConflicts(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("a=1\n", "gone=old\n", "mode=m", "moved=some content that moved\n", "type=1")
	f.upper("a=2\n", "gone!", "moved!", "arrived=some content that moved\n", "0755 mode=m", "type/x=1", "new=1", "same=1")
	s := f.collect()
	f.acceptAll(s)
	f.make(f.ws, "a=3\n", "gone=other\n", "mode=other", "moved=other", "type=other", "new=other", "same=1")
	before := tree(t, f.ws)
	s.began = 1 // what is there now came later
	r := f.apply(s, Options{})
	want(t, tree(t, f.ws), before...)
	var got []string
	for _, k := range r.Conflicts {
		got = append(got, fmt.Sprintf("%s: %s", k.Path, k.Why))
	}
	want(t, got,
		"type: it is not what it was when the run began",
		"a: it is not what it was when the run began",
		"arrived: it is not what it was when the run began",
		"mode: it is not what it was when the run began",
		"new: something else is there",
		"gone: it is not what it was when the run began",
	)
	if len(r.Refused) != 1 || r.Refused[0].Path != "type/x" {
		t.Errorf("refused: %v", r.Refused)
	}
}
