package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLinksThatAreNotFollowed names a path by every key that takes one, through
// every link that something inside could have made.
func TestLinksThatAreNotFollowed(t *testing.T) {
	ways := []struct{ name, path, link, target string }{
		{"a link of the workspace", "dist", "home/u/ws/dist", "/outside/d"},
		{"its absolute name", "ROOT/home/u/ws/dist", "home/u/ws/dist", "/outside/d"},
		{"its name below the home", "~/ws/dist", "home/u/ws/dist", "/outside/d"},
		{"a link above it", "up/d", "home/u/ws/up", "/outside"},
		{"a link that stays in the workspace", "dist", "home/u/ws/dist", "sub"},
		{"a link to nothing", "dist", "home/u/ws/dist", "/outside/none"},
		{"a link of a writable tree", "ROOT/rw/l", "rw/l", "/outside/d"},
		{"a link of an earlier run's workspace", "ROOT/before/l", "before/l", "/outside/d"},
		{"a link to such a link", "ROOT/data/l", "data/l", "/before/l"},
	}
	for _, key := range []string{"filesystem.read", "filesystem.copy", "filesystem.write", "workspace.outputs", "workspace.readonly"} {
		for _, way := range ways {
			t.Run(key+" "+way.name, func(t *testing.T) {
				w := newWorld(t)
				for _, dir := range []string{"outside/d", "rw", "before", "home/u/ws/sub"} {
					w.mkdir(dir)
				}
				if err := RecordExposed(w.host.State, []string{w.at("before")}); err != nil {
					t.Fatal(err)
				}
				if way.target == "/before/l" {
					w.link("/outside/d", "before/l")
				}
				w.link(way.target, way.link)
				path := strings.ReplaceAll(way.path, "ROOT", w.root)
				_, err := w.compile(w.options("filesystem.write", w.at("rw"), key, path))
				if err == nil || !strings.Contains(err.Error(), "goes through the link") {
					t.Fatalf("got %v", err)
				}
				var hinted interface{ Hint() string }
				if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "remove") {
					t.Errorf("no way out: %v", err)
				}
			})
		}
	}
}

// TestLinksOfTheUser are followed: ~/src -> /data/src, outside all that anything
// inside could write to.
func TestLinksOfTheUser(t *testing.T) {
	w := newWorld(t)
	w.mkdir("data/src/sub")
	w.link("/data/src", "home/u/src")
	w.link("src", "home/u/again")
	p := w.plan(w.options("filesystem.read", "~/again/sub", "filesystem.write", w.at("home/u/src")))
	if r := w.rule(p, "data/src/sub"); r.Access != Read {
		t.Errorf("read: %+v", r)
	}
	if r := w.rule(p, "data/src"); r.Access != Write || r.At != w.at("home/u/src") {
		t.Errorf("write: %+v", r)
	}
	for _, given := range []string{w.at("home/u/src"), w.at("home/u/again/sub")} {
		o := w.options()
		o.Workspace = given
		if _, err := w.compile(o); err != nil {
			t.Errorf("--workspace %s: %v", given, err)
		}
	}
	o := w.options("workspace.outputs", "out") // the working directory by the user's link
	o.Host.Dir = w.at("home/u/src")
	if p := w.plan(o); p.Workspace != w.at("data/src") || len(p.Outputs) != 1 || p.Outputs[0] != w.at("data/src/out") {
		t.Errorf("workspace %s, outputs %v", p.Workspace, p.Outputs)
	}
}

func TestWorkspaceByALink(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(w *world)
	}{
		{"of a tree that an earlier run could write to", func(w *world) {
			if err := RecordExposed(w.host.State, []string{w.at("tree")}); err != nil {
				t.Fatal(err)
			}
		}},
		{"of a repository", func(w *world) { w.mkdir("tree/.git") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("outside/d")
			w.mkdir("tree/sub")
			w.link("/outside/d", "tree/sub/l")
			row.make(w)
			for _, o := range []Options{{Host: w.host, Workspace: w.at("tree/sub/l")}, {Host: w.host, Workspace: "tree/sub/l"}, {Host: w.host}} {
				o.Host.Dir = w.root
				if o.Workspace == "" {
					o.Host.Dir = w.at("tree/sub/l") // as a shell's PWD has it
				}
				if _, err := w.compile(o); err == nil || !strings.Contains(err.Error(), "goes through the link") {
					t.Errorf("--workspace %q in %s: %v", o.Workspace, o.Host.Dir, err)
				}
			}
		})
	}
}

// TestPoliciesByALink are not read where something inside could have led the link
// to another file.
func TestPoliciesByALink(t *testing.T) {
	w := newWorld(t)
	w.write("data/p.yaml", "version: 1\n", 0o644)
	w.link("/data/p.yaml", "home/u/ws/p.yaml")
	w.link("/home/u/ws/p.yaml", "data/again.yaml")
	for _, path := range []string{"p.yaml", w.at("data/again.yaml")} {
		o := w.options()
		o.Policy = path
		if _, err := w.compile(o); err == nil || !strings.Contains(err.Error(), "goes through the link") {
			t.Errorf("--policy %s: %v", path, err)
		}
	}
}

// TestExposedTreesAreForgotten: those that are gone, and those that no run could
// write to for longest.
func TestExposedTreesAreForgotten(t *testing.T) {
	w := newWorld(t)
	var trees []string
	for i := range 6 {
		trees = append(trees, w.mkdir(fmt.Sprintf("tree%d", i)))
		if err := RecordExposed(w.host.State, trees[i:]); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(i-10) * 100 * time.Hour)
		if err := os.Chtimes(w.host.exposed(trees[i]), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(trees[5]); err != nil {
		t.Fatal(err)
	}
	if err := RecordExposed(w.host.State, trees[:1]); err != nil { // written to again
		t.Fatal(err)
	}
	if err := PruneExposed(w.host.State, 3); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false, true, true, false} {
		if got := w.host.exposedAbove(trees[i]+"/x") != ""; got != want {
			t.Errorf("tree %d is remembered: %t, want %t", i, got, want)
		}
	}
	for i := range MaxExposed {
		if err := os.WriteFile(w.host.exposed(fmt.Sprint("/gone/", i)), fmt.Appendf(nil, "/gone/%d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RecordExposed(w.host.State, trees[1:2]); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(w.host.State, exposedDir)); err != nil || len(left) != 4 {
		t.Errorf("%d trees are remembered, want 4: %v", len(left), err)
	}
}

// TestStepsAreTheKernels compares the walk with what the kernel finds.
func TestStepsAreTheKernels(t *testing.T) {
	w := newWorld(t)
	w.mkdir("a/b/c")
	w.write("a/b/file", "", 0o644)
	w.link("b", "a/l")
	w.link("/a/l/../l/c", "a/m")
	w.link("m", "a/n")
	w.link("/proc/self/../self/cwd", "a/p")
	for _, path := range []string{"a", "a/b/c", "a/l", "a/l/c", "a/l/..", "a/n", "a/n/..", "a/./l//c/", "a/l/file", "a/m/../file"} {
		want, err := filepath.EvalSymlinks(w.root + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		at, err := locate(w.root + "/" + path)
		if _, real := steps(w.root + "/" + path); err != nil || at.path != want || real != want {
			t.Errorf("%s: %q, %q, %v; want %q", path, at.path, real, err, want)
		}
	}
	for path, want := range map[string]string{"a/none/x": "a/none/x", "a/l/none": "a/b/none", "a/b/file/x": "a/b/file/x"} {
		if _, real := steps(w.at(path)); real != w.at(want) {
			t.Errorf("%s: %q, want %q", path, real, w.at(want))
		}
	}
	if _, err := locate(w.at("a/b/file/x")); !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("below a file: %v", err)
	}
}

// TestOutsideViewOfNoWholePath: a path that is taken relative to nothing is refused.
func TestOutsideViewOfNoWholePath(t *testing.T) {
	w := newWorld(t)
	x := explainer{plan: Plan{}, host: w.host}
	for text, good := range map[string]bool{"token": false, "./token": false, "": false, w.at("token"): true, "~/token": true} {
		if _, fault := x.outsideView(Entry{}, "it", text); (fault == nil) != good {
			t.Errorf("%q: %v", text, fault)
		}
	}
}
