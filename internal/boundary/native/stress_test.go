//go:build linux

package native

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/testenv"
)

// together starts many runs, all of them alive at the same time, and demands
// that every one ends as it should.
func together(t *testing.T, specs []boundary.Spec) {
	t.Helper()
	var begun, ended sync.WaitGroup
	begun.Add(len(specs))
	problems := make(chan error, len(specs))
	for i, spec := range specs {
		ended.Go(func() {
			p, err := (&Backend{}).Start(t.Context(), spec)
			begun.Done()
			if err != nil {
				problems <- fmt.Errorf("run %d: %w", i, err)
				return
			}
			begun.Wait() // each waits for the last one
			io.WriteString(p.Stdin(), "go\n")
			p.Stdin().Close()
			out, _ := io.ReadAll(p.Stdout())
			said, _ := io.ReadAll(p.Stderr())
			p.Stdout().Close()
			p.Stderr().Close()
			if exit, err := p.Wait(); err != nil || exit.Status() != 0 || string(out) != "done\n" {
				problems <- fmt.Errorf("run %d ended with %+v, %w, %q, %q", i, exit, err, out, said)
			}
		})
	}
	ended.Wait()
	close(problems)
	for err := range problems {
		t.Error(err)
	}
	leftGroups(t, "the last run")
}

const many = 100

func TestManyRunsAtOnce(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, testenv.Git, nil)
	plain := func(dir string) boundary.Spec {
		spec, err := scene(dir)
		if err != nil {
			t.Fatal(err)
		}
		spec.In, spec.Err, spec.Orphaned = boundary.Pipe, boundary.Pipe, nil
		spec.Plan.Publish = nil
		return spec
	}
	script := func(spec boundary.Spec, text string) boundary.Spec {
		spec.Argv = []string{"sh", "-ec", "read line; " + text + "; echo done"}
		return spec
	}
	t.Run("in one workspace", func(t *testing.T) {
		dir := temporary(t)
		testenv.NoLeaks(t, dir)
		specs := make([]boundary.Spec, many)
		for i := range specs {
			specs[i] = script(plain(dir), fmt.Sprintf("true; git init -q repo%d; git -C repo%d status --porcelain", i, i))
		}
		together(t, specs)
	})
	t.Run("in a workspace each", func(t *testing.T) {
		dir := temporary(t)
		testenv.NoLeaks(t, dir)
		specs := make([]boundary.Spec, many)
		for i := range specs {
			specs[i] = script(plain(filepath.Join(dir, fmt.Sprint(i))), "true; git init -q repo; git -C repo status --porcelain")
		}
		together(t, specs)
	})
	t.Run("in workspaces that lie in each other", func(t *testing.T) {
		dir := temporary(t)
		testenv.NoLeaks(t, dir)
		specs := make([]boundary.Spec, 20)
		for i := range specs {
			specs[i] = script(plain(dir), "echo x >> mine; ! echo x > .git/config")
			specs[i].Plan.Workspace = dir + "/work" + strings.Repeat("/d", i)
			specs[i].Plan.Dir = specs[i].Plan.Workspace
			if err := os.MkdirAll(specs[i].Plan.Workspace+"/.git/hooks", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(specs[i].Plan.Workspace+"/.git/config", nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		together(t, specs)
	})
}
