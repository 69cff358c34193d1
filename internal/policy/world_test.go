package policy

import (
	"os"
	"path/filepath"
	"testing"
)

// world is a home and a workspace of a test's own, and a host made of them.
type world struct {
	t    testing.TB
	root string
	host Host
}

func newWorld(t testing.TB) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root}
	for _, dir := range []string{"home/u", "home/u/ws", "home/u/.config/holdfast", "data", "usr/bin", "outside"} {
		w.mkdir(dir)
	}
	w.host = Host{
		UID: os.Getuid(), GID: os.Getgid(), Name: "u",
		Home: w.at("home/u"), Dir: w.at("home/u/ws"),
		Env:        []string{"PATH=" + w.at("usr/bin"), "LANG=C.UTF-8"},
		Executable: w.at("usr/bin/holdfast"),
		Config:     w.at("home/u/.config/holdfast"),
		State:      w.at("home/u/.local/state/holdfast"),
		System:     []PathRule{{Path: w.at("usr"), Access: Read, Origin: Origin{File: "system"}}},
	}
	return w
}

func (w *world) at(path string) string { return filepath.Join(w.root, path) }

func (w *world) mkdir(path string) string {
	w.t.Helper()
	if err := os.MkdirAll(w.at(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return w.at(path)
}

// write makes a file, and the directories above it.
func (w *world) write(path, text string, mode os.FileMode) string {
	w.t.Helper()
	w.mkdir(filepath.Dir(path))
	if err := os.WriteFile(w.at(path), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(w.at(path), mode); err != nil {
		w.t.Fatal(err)
	}
	return w.at(path)
}

// link makes a symbolic link; an absolute target counts from the world.
func (w *world) link(target, path string) {
	w.t.Helper()
	if filepath.IsAbs(target) {
		target = w.at(target)
	}
	w.mkdir(filepath.Dir(path))
	if err := os.Symlink(target, w.at(path)); err != nil {
		w.t.Fatal(err)
	}
}

// options are those of a run in the workspace; args are pairs of key and value
// as a flag gives them.
func (w *world) options(args ...string) Options {
	o := Options{Host: w.host}
	for i := 0; i+1 < len(args); i += 2 {
		o.Settings = append(o.Settings, Setting{Flag: "--" + args[i], Key: args[i], Value: args[i+1]})
	}
	return o
}

func (w *world) compile(o Options) (Plan, error) {
	e, err := Load(o)
	if err != nil {
		return Plan{}, err
	}
	return Compile(e, o.Host)
}

func (w *world) plan(o Options) Plan {
	w.t.Helper()
	p, err := w.compile(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// rule is the rule of p for a path of the world, or the zero rule.
func (w *world) rule(p Plan, path string) PathRule {
	for _, r := range p.Paths {
		if r.Path == w.at(path) {
			return r
		}
	}
	return PathRule{}
}

func variableOf(p Plan, name string) (string, bool) {
	for _, e := range p.Env {
		if e.Name == name {
			return e.Value, true
		}
	}
	return "", false
}
