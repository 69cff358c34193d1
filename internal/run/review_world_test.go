//go:build linux

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
)

// views are the ways to show the workspace in review mode.
var views = []policy.View{policy.ViewOverlay, policy.ViewCopy}

// newReview is a task in review mode, in a workspace with files in it.
func newReview(t *testing.T, view policy.View, argv ...string) *Task {
	t.Helper()
	task, _ := newBench(t, argv...)
	task.Plan.Review, task.Plan.View = true, view
	w := task.Plan.Workspace
	for _, d := range []string{"dir/deep", ".git/hooks", "node_modules/x", "vendor"} {
		if err := os.MkdirAll(filepath.Join(w, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"file": "one\n", "dir/a": "a\n", "dir/deep/b": "b\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".git/HEAD": "ref: refs/heads/main\n",
		".envrc": "echo\n", ".env": "SECRET=1\n", "node_modules/x/i.js": "1\n", "prog": "#!/bin/sh\n", "vendor/v": "v\n",
	} {
		if err := os.WriteFile(filepath.Join(w, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(w, "prog"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(w, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(w, "dir/a"), filepath.Join(w, "dir/a2")); err != nil {
		t.Fatal(err)
	}
	unix.Setxattr(filepath.Join(w, "file"), "user.note", []byte("kept"), 0)
	return task
}

// fingerprint is everything visible in a tree, except access times.
func fingerprint(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		line := fmt.Sprintf("%o %d:%d %d %d mtime %d ctime %d nlink %d", st.Mode, st.Uid, st.Gid, st.Size, st.Ino, st.Mtim.Nano(), st.Ctim.Nano(), st.Nlink)
		buf := make([]byte, 4096)
		if n, err := unix.Llistxattr(path, buf); err == nil {
			line += " " + string(buf[:n])
		}
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			line += " " + hex.EncodeToString(sum[:8])
		}
		out[path] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s\n was %s\n  is %s", path, was, after[path])
		}
	}
	for path := range after {
		if before[path] == "" {
			t.Errorf("%s appeared", path)
		}
	}
}

var workOf string // of the test that runs

func mkdirs(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(dir, n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func begun(t *testing.T, dir string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(workOf, &st); err != nil {
		t.Fatal(err)
	}
	r := workspace.Review{Session: filepath.Base(dir), Workspace: workspace.Name(workOf), Dev: st.Dev, Ino: st.Ino,
		Mode: workspace.ReviewOverlay, State: workspace.ReviewRunning}
	if err := r.Begin(dir); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "start.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := workspace.WriteFacts(context.Background(), workOf, 0, f); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to be")
		}
	}
}
