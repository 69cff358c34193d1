//go:build linux

package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

func TestReviewKeepsChangesFromTheTree(t *testing.T) {
	const script = `set -e
echo two >> file; rm dir/a; rm -r node_modules; mkdir node_modules; echo 2 > node_modules/new; mkdir new; echo n > new/n
echo evil > .git/hooks/pre-commit; echo evil >> .envrc; chmod 600 prog; ln -s /etc/passwd leave; mv dir/deep dir/moved
! cat .env 2>/dev/null; ! (echo x > vendor/v) 2>/dev/null; test "$(cat dir/moved/b)" = b`
	for _, view := range views {
		t.Run(string(view), func(t *testing.T) {
			task := newReview(t, view, "sh", "-c", script)
			w := task.Plan.Workspace
			task.Plan.Paths = []policy.PathRule{{Path: w + "/vendor", Access: policy.Read}}
			before := fingerprint(t, w)
			r, err := task.Run(t.Context())
			if err != nil || r.Exit.Status() != 0 {
				t.Fatalf("got %+v, %v", r.Exit, err)
			}
			same(t, before, fingerprint(t, w))
			if len(r.Settled.Quarantined)+len(r.Settled.Flagged) > 0 {
				t.Errorf("settled the tree itself: %+v", r.Settled)
			}
			if r.Viewed == nil || r.Viewed.Dir == "" || r.Viewed.Mode != view || r.Viewed.Waiting != 1 {
				t.Fatalf("got %+v", r.Viewed)
			}
			about, err := workspace.ReadReview(r.Viewed.Dir)
			if err != nil || about.State != workspace.ReviewWaiting || string(about.Mode) != string(view) || about.Died || about.Ended.IsZero() {
				t.Errorf("got %+v, %v", about, err)
			}
			if !isApart(about, "vendor/v") || !isApart(about, ".env") || isApart(about, "file") {
				t.Errorf("apart: %q", about.Apart)
			}
			for path, want := range map[string]string{"file": "one\n", "dir/a": "a\n", "node_modules/x/i.js": "1\n", "dir/deep/b": "b\n", ".envrc": "echo\n"} {
				if got, err := os.ReadFile(filepath.Join(r.Viewed.Dir, "base", path)); err != nil || string(got) != want {
					t.Errorf("the original of %s is %q, %v", path, got, err)
				}
			}
			if got, err := os.ReadFile(filepath.Join(r.Viewed.Dir, "upper", "file")); err != nil || string(got) != "one\ntwo\n" {
				t.Errorf("the changed file is %q, %v", got, err)
			}
			if _, err := os.Lstat(filepath.Join(r.Viewed.Dir, "work")); err == nil {
				t.Error("the work directory stayed")
			}
			if left := task.sessionsLeft(); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

func TestReviewOfNothingLeavesNothing(t *testing.T) {
	for _, view := range views {
		for name, script := range map[string]string{
			"only read":         "cat file dir/deep/b >/dev/null; exit 3",
			"changed and back":  "echo x > dir/new; rm dir/new; chmod 600 file; chmod 644 file; touch dir/a; : >> prog",
			"cannot be started": "",
		} {
			t.Run(string(view)+"/"+name, func(t *testing.T) {
				task := newReview(t, view, "sh", "-c", script)
				if script == "" {
					task.Argv = []string{"no-such-program"}
				}
				r, _ := task.Run(t.Context())
				if r.Viewed != nil && r.Viewed.Dir != "" {
					t.Errorf("something waits: %+v", r.Viewed)
				}
				if left, _ := filepath.Glob(filepath.Join(task.State, "reviews", "*")); len(left) > 0 {
					t.Errorf("left %q", left)
				}
			})
		}
	}
}

// TestReviewNamesWhatACopyLacks also has a file of holes, and names of one file.
func TestReviewNamesWhatACopyLacks(t *testing.T) {
	task := newReview(t, policy.ViewCopy, "sh", "-c", "test dir/a -ef dir/a2 && test $(stat -c %b huge) -lt 100 && test $(stat -c %s huge) = 1099511627776 && echo x > new")
	w := task.Plan.Workspace
	if err := syscall.Mkfifo(filepath.Join(w, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w, "huge"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(w, "huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	r, err := task.Run(t.Context())
	if err != nil || r.Exit.Status() != 0 {
		t.Fatalf("got %+v, %v", r.Exit, err)
	}
	if !slices.Contains(r.Viewed.Left, "fifo: a FIFO") || r.Viewed.Why == "" {
		t.Errorf("got %+v", r.Viewed)
	}
}

func TestReviewIsNotACopyThatIsTooLarge(t *testing.T) {
	task := newReview(t, policy.ViewCopy, "true")
	task.Plan.Limits.Disk = 64 << 10
	if err := os.WriteFile(filepath.Join(task.Plan.Workspace, "large"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := task.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "larger than the limit of disk") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(task.State, "reviews", "*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestReviewCopiesWhereNoLayerCanBe(t *testing.T) {
	task := newReview(t, policy.ViewAuto, "sh", "-c", "echo x > new")
	task.Backend = &native.Backend{Omit: []string{"view"}}
	r, err := task.Run(t.Context())
	if err != nil || r.Viewed == nil || r.Viewed.Mode != policy.ViewCopy || !strings.Contains(r.Viewed.Why, "left out") {
		t.Fatalf("got %+v, %v", r.Viewed, err)
	}
	task.Plan.View = policy.ViewOverlay
	if _, err := task.Run(t.Context()); err == nil {
		t.Error("a run that asks for a layer had none and began")
	}
}

// TestReviewOutlivesSuddenDeath: the supervisor is killed while the command
// runs.
func TestReviewOutlivesSuddenDeath(t *testing.T) {
	for _, view := range views {
		t.Run(string(view), func(t *testing.T) {
			task := newReview(t, view)
			w := task.Plan.Workspace
			before := fingerprint(t, w)
			dir := filepath.Dir(w)
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(exe)
			cmd.Args = []string{"supervisor", dir, "sh", "-c", "echo two >> file; touch done; sleep 100"}
			cmd.Env = append(os.Environ(), "REVIEW="+string(view))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			upper := ""
			eventually(t, func() bool {
				found, _ := filepath.Glob(filepath.Join(task.State, "reviews", "*", "upper", "done"))
				if len(found) == 1 {
					upper = found[0]
				}
				return upper != ""
			})
			cmd.Process.Kill()
			cmd.Wait()
			review := filepath.Dir(filepath.Dir(upper))
			eventually(t, func() bool {
				r, err := workspace.ReadReview(review)
				return err == nil && r.State == workspace.ReviewWaiting && r.Died && len(task.sessionsLeft()) == 0
			})
			same(t, before, fingerprint(t, w))
			if got, err := os.ReadFile(filepath.Join(review, "base", "file")); err != nil || string(got) != "one\n" {
				t.Errorf("the original is %q, %v", got, err)
			}
		})
	}
}

// TestSweepFinishesReviews has storage that was left behind: as it is at each step of a
// run.
func TestSweepFinishesReviews(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, dir string)
		state workspace.ReviewState // "" for gone
	}{
		{"only the directory", func(*testing.T, string) {}, ""},
		{"the layers", func(t *testing.T, dir string) { mkdirs(t, dir, "upper", "work") }, ""},
		{"nothing was changed", func(t *testing.T, dir string) { mkdirs(t, dir, "upper", "work"); begun(t, dir) }, ""},
		{"something was", func(t *testing.T, dir string) {
			mkdirs(t, dir, "upper", "work", "work/work")
			os.Chmod(filepath.Join(dir, "work/work"), 0)
			begun(t, dir)
			write(t, filepath.Join(dir, "upper", "new"), "n")
		}, workspace.ReviewWaiting},
		{"the originals in part", func(t *testing.T, dir string) {
			mkdirs(t, dir, "upper", "base/x")
			begun(t, dir)
			write(t, filepath.Join(dir, "upper", "new"), "n")
		}, workspace.ReviewWaiting},
		{"a layer without its record", func(t *testing.T, dir string) {
			mkdirs(t, dir, "upper")
			write(t, filepath.Join(dir, "upper", "new"), "n")
		}, "kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			task, _ := newBench(t, "true")
			dir := filepath.Join(task.State, "reviews", "20260101T000000-0123456789ab")
			mkdirs(t, dir, ".")
			workOf = task.Plan.Workspace
			tt.make(t, dir)
			if _, err := task.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := workspace.ReadReview(dir)
			switch {
			case tt.state == "kept":
				if _, err := os.Stat(filepath.Join(dir, "upper", "new")); err != nil {
					t.Error(err)
				}
			case tt.state == "":
				if _, err := os.Lstat(dir); err == nil {
					t.Errorf("it is still there: %+v", r)
				}
			case err != nil || r.State != tt.state || !r.Died:
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestReviewLeavesTreesThatAreWrittenToDirect(t *testing.T) {
	for _, view := range views {
		t.Run(string(view), func(t *testing.T) {
			task := newReview(t, view, "sh", "-c", "echo r > out/result; echo evil > out/.envrc; echo x >> file")
			w := task.Plan.Workspace
			mkdirs(t, w, "out")
			task.Plan.Paths = []policy.PathRule{{Path: w + "/out", Access: policy.Write, Origin: policy.Origin{File: "--rw"}}}
			r, err := task.Run(t.Context())
			if err != nil || r.Exit.Status() != 0 {
				t.Fatalf("got %+v, %v", r.Exit, err)
			}
			if got, err := os.ReadFile(w + "/out/result"); err != nil || string(got) != "r\n" {
				t.Errorf("the result is %q, %v", got, err)
			}
			if len(r.Settled.Quarantined) != 1 || r.Settled.Quarantined[0].Path != workspace.Name(w+"/out/.envrc") {
				t.Errorf("quarantined %+v", r.Settled.Quarantined)
			}
			about, err := workspace.ReadReview(r.Viewed.Dir)
			if err != nil || len(about.Written) != 1 || !isApart(about, "out/result") {
				t.Errorf("got %+v, %v", about, err)
			}
		})
	}
}

func TestReviewCountsAgainstTheDiskLimit(t *testing.T) {
	for _, view := range views {
		t.Run(string(view), func(t *testing.T) {
			task := newReview(t, view, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do head -c 8000000 /dev/urandom > big$i; sleep 0.3; done; sleep 30")
			task.Plan.Limits.Disk = 16 << 20
			r, err := task.Run(t.Context())
			if err != nil || !strings.Contains(r.Exit.Reason, "disk limit") {
				t.Errorf("got %+v, %v", r.Exit, err)
			}
			if r.Viewed == nil || r.Viewed.Dir == "" {
				t.Errorf("what was written until then is gone: %+v", r.Viewed)
			}
		})
	}
}

// isApart reports whether a path is one over which something else was mounted.
func isApart(r workspace.Review, path string) bool {
	return slices.ContainsFunc(r.Apart, func(a workspace.Name) bool { return paths.Within(string(a), path) })
}
