package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/testenv"
)

// tiny is a driver for a package in the test's registry.
func tiny(t *testing.T, pkg, extra string) Driver {
	t.Helper()
	d, err := parse([]byte(`
name: tiny
title: Tiny
package: "` + pkg + `"
command: tiny-agent
latest: 1.2.0
since: 1.0.0
spec:
  dialect: chat
  programs: ["node_modules/` + pkg + `/bin/agent"]
  argv: ["{prompt}"]
  postures: {bare: {title: nothing}}
` + extra))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const scoped = "@example/tiny"

func good() published {
	return published{version: "1.2.0", files: map[string]string{"bin/agent*": "#!/bin/sh\necho tiny 1.2.0\n", "data": "x"},
		about: map[string]any{
			"dependencies": map[string]any{"dep": "1.0.0"}, "devDependencies": map[string]any{"nowhere": "1.0.0"},
			"scripts": map[string]any{"preinstall": "touch $HOME/ran", "install": "touch $HOME/ran", "postinstall": "touch $HOME/ran"},
		}}
}

func TestInstall(t *testing.T) {
	r := serve(t, map[string]published{scoped: good(), "dep": {version: "1.0.0", about: map[string]any{"scripts": map[string]any{"postinstall": "touch $HOME/ran"}}}})
	defer syscall.Umask(syscall.Umask(0o077)) // other users can read it nevertheless
	dir := filepath.Join(t.TempDir(), "state", "agents")
	d := tiny(t, scoped, "")
	first, err := Install(t.Context(), Request{Driver: d, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if first.Version != "1.2.0" || first.Dir != filepath.Join(dir, "tiny@1.2.0") || first.Node != "" {
		t.Errorf("got %+v", first)
	}
	sum, err := sumOf(first.Program)
	if err != nil || sum != first.SHA256 || len(sum) != 64 {
		t.Errorf("the hash is %s, and the program's %s: %v", first.SHA256, sum, err)
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "ran")); err == nil {
		t.Error("a script of a package was run")
	}
	readable(t, first.Dir)
	onlyInstalls(t, dir, "tiny@1.2.0")

	r.Close() // from here on there is no registry
	again, err := Install(t.Context(), Request{Driver: d, Version: "1.2.0", Dir: dir})
	if err != nil || again != first {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	found, err := Find(t.Context(), d, []string{"PATH=/nowhere"}, dir)
	if err != nil || len(found) != 1 || found[0] != first {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := programs.Write(first.Program, []byte("#!/bin/sh\necho other\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), Request{Driver: d, Dir: dir}); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("a program that was changed: %v", err)
	}
	if err := os.Remove(first.Program); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), Request{Driver: d, Dir: dir}); err == nil || !strings.Contains(err.Error(), "no longer has its program") {
		t.Errorf("a program that is gone: %v", err)
	}
}

// readable checks that every user can read all of dir and only the owner can
// write it.
func readable(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o444)
		if e.IsDir() || strings.HasSuffix(path, "bin/agent") {
			want |= 0o111
		}
		if m := info.Mode().Perm(); m&want != want || m&0o022 != 0 {
			t.Errorf("%s has mode %v", path, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// onlyInstalls checks that no partial install is left.
func onlyInstalls(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("there is %q, and should be %q", got, want)
	}
}

func TestInstallRefuses(t *testing.T) {
	forged := good()
	forged.forged = true
	nothing := good()
	nothing.files = map[string]string{"README": "x"}
	local := t.TempDir()
	if err := os.WriteFile(filepath.Join(local, "package.json"), []byte(`{"name": "dep", "version": "1.0.0"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	serve(t, map[string]published{
		"dep": {version: "1.0.0"}, "@example/forged": forged, "@example/nothing": nothing,
		"@example/local": {version: "1.2.0", files: good().files, about: map[string]any{"dependencies": map[string]any{"dep": "file:" + local}}},
	})
	for _, c := range []struct{ pkg, version, want string }{
		{"@example/forged", "1.2.0", "EINTEGRITY"},
		{"@example/nothing", "1.2.0", "no program for this machine"},
		{"@example/absent", "1.2.0", "404"},
		{"@example/forged", "1.2.1", "ETARGET"},
		{"@example/local", "1.2.0", "no hash"},
		{"@example/forged", "1.2.0 || 1.2.1", "not a version"},
		{"@example/forged", "../../1.2.0", "not a version"},
		{"@example/forged", "1.2.0;id", "not a version"},
		{"@example/forged", "0.9.0", "older than"},
	} {
		dir := t.TempDir()
		i, err := Install(t.Context(), Request{Driver: tiny(t, c.pkg, ""), Version: c.version, Dir: dir})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %+v, %v; want %q", c.pkg, c.version, i, err, c.want)
		}
		onlyInstalls(t, dir)
	}
	d := tiny(t, scoped, "")
	for _, pkg := range []string{"--global", "git+https://example.org/x.git", "../x", "x@npm:y"} {
		d.Package = pkg
		if _, err := Install(t.Context(), Request{Driver: d, Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "not the name of a package") {
			t.Errorf("%q: %v", pkg, err)
		}
	}
	if _, err := Install(t.Context(), Request{Driver: d, Dir: "agents"}); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("a directory that depends on where one stands: %v", err)
	}
}

func TestInstallOffline(t *testing.T) {
	r := serve(t, nil)
	r.Close()
	dir := t.TempDir()
	d := tiny(t, scoped, "")
	_, err := Install(t.Context(), Request{Driver: d, Dir: dir})
	var fetch *FetchError
	if !errors.As(err, &fetch) || !strings.Contains(fetch.Hint(), "npm install --prefix "+filepath.Join(dir, "tiny@1.2.0")+" --ignore-scripts --omit=dev @example/tiny@1.2.0") {
		t.Fatalf("got %v", err)
	}
	onlyInstalls(t, dir)
}

// TestInstallByHand does what the hint says, and hands the result over.
func TestInstallByHand(t *testing.T) {
	r := serve(t, map[string]published{scoped: good(), "dep": {version: "1.0.0"}})
	dir := t.TempDir()
	d := tiny(t, scoped, "")
	target := filepath.Join(dir, "tiny@1.2.0")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runNPM(t.Context(), target, scoped, "1.2.0"); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if i, err := Install(t.Context(), Request{Driver: d, Dir: dir}); err != nil || i.Dir != target {
		t.Errorf("got %+v, %v", i, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tiny@1.3.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if i, err := Install(t.Context(), Request{Driver: d, Version: "1.3.0", Dir: dir}); err == nil {
		t.Errorf("an empty directory was taken for an install: %+v", i)
	}
}

func TestInstallTwoAtOnce(t *testing.T) {
	packages := map[string]published{scoped: good(), "dep": {version: "1.0.0"}}
	one := serve(t, packages)
	if _, err := Install(t.Context(), Request{Driver: tiny(t, scoped, ""), Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	r := serve(t, packages) // with its own cache
	dir := t.TempDir()
	left := filepath.Join(dir, ".tiny@1.2.0-interrupted")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	d := tiny(t, scoped, "")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := Install(t.Context(), Request{Driver: d, Dir: dir}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, want := r.archives.Load(), one.archives.Load(); n != want {
		t.Errorf("%d archives were fetched, and %d when one alone asked", n, want)
	}
	onlyInstalls(t, dir, "tiny@1.2.0")
}

func TestInstallInterrupted(t *testing.T) {
	testenv.Need(t, testenv.NPM, nil)
	dir := t.TempDir()
	d := tiny(t, scoped, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	serve(t, map[string]published{scoped: good()})
	if _, err := Install(ctx, Request{Driver: d, Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	onlyInstalls(t, dir)

	unlock, err := lock(t.Context(), filepath.Join(dir, ".tiny@1.2.0.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Install(ctx, Request{Driver: d, Dir: dir}); err == nil || !strings.Contains(err.Error(), "waiting for another install") {
		t.Errorf("got %v", err)
	}
}

// TestNode installs a node if the given one is too old.
func TestNode(t *testing.T) {
	pkg := platform(nodePackage)
	node := published{version: nodeVersion, files: map[string]string{"bin/node*": "#!/bin/sh\necho v" + nodeVersion + " $0\n"}}
	plainly := good()
	plainly.about = nil
	serve(t, map[string]published{scoped: plainly, pkg: node})
	old := script(t, t.TempDir(), "node", "echo v18.1.0 $0")
	dir := t.TempDir()
	path := os.Getenv("PATH")
	d := tiny(t, scoped, "  node: 22.0.0\n")
	if _, err := findNode(t.Context(), old, "99.0.0", dir); err == nil || !strings.Contains(err.Error(), "newest version that can be installed") {
		t.Errorf("a version that is not to be had: %v", err)
	}
	if got, err := findNode(t.Context(), old, "18.0.0", dir); err != nil || got != old {
		t.Errorf("one that is new enough: %s, %v", got, err)
	}
	// npm itself needs the machine's node, whatever its version.
	if _, err := Install(t.Context(), Request{Driver: tiny(t, scoped, ""), Dir: dir}); err != nil {
		t.Fatal(err)
	}
	w := nodeWanted()
	if _, err := w.install(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(old))
	i, err := Install(t.Context(), Request{Driver: d, Dir: dir})
	if want := filepath.Join(dir, "node@"+nodeVersion, "node_modules", pkg, "bin", "node"); err != nil || i.Node != want {
		t.Errorf("got %+v, %v", i, err)
	}
	t.Setenv("PATH", path)
	found, err := Find(t.Context(), d, []string{"PATH=" + filepath.Dir(old)}, dir)
	if err != nil || len(found) != 1 || found[0].Node != i.Node {
		t.Errorf("found %+v, %v", found, err)
	}
}

// script writes a program.
func script(t *testing.T, dir, name, does string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := programs.Write(path, []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
