//go:build linux

package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// viewed is a launch on a view of the workspace, and how often the workspace was
// copied.
func viewed(t *testing.T, view policy.View) (boundary.Spec, *int) {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	dir := temporary(t)
	testenv.NoLeaks(t, dir)
	work, review, copies := filepath.Join(dir, "work"), filepath.Join(dir, "review"), new(int)
	for _, d := range []string{work, review, review + "/upper", review + "/work"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { removeView(review) })
	return boundary.Spec{
		Plan: policy.Plan{
			Workspace: work, Dir: work, Review: true, View: view,
			Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Name: "tester", Home: dir + "/home"},
			Env:      []policy.Env{{Name: "PATH", Value: "/usr/bin:/bin"}},
		},
		Argv:   []string{"touch", work + "/ran"},
		Review: &boundary.Review{Dir: review, Copy: func(context.Context, string) error { *copies++; return nil }},
	}, copies
}

// TestEveryStepOfTheView breaks one step after the other that makes the view.
// The command runs on a view or not at all.
func TestEveryStepOfTheView(t *testing.T) {
	for _, view := range []policy.View{policy.ViewOverlay, policy.ViewAuto} {
		t.Run(string(view), func(t *testing.T) {
			spec, copies := viewed(t, view)
			work := spec.Plan.Workspace
			spec.Review.Mode = policy.ViewOverlay
			var steps []int
			for n, o := range programOf(t, spec).ops {
				if (strings.Contains(o.name, work) || strings.Contains(o.name, "review") || strings.HasPrefix(o.name, viewSteps)) && o.judge == must {
					steps = append(steps, n)
				}
			}
			if len(steps) < 10 {
				t.Fatalf("only %d steps make the view", len(steps))
			}
			for _, n := range steps {
				name := ""
				b := &Backend{tamper: func(p *program) {
					if spec.Review.Mode != policy.ViewOverlay || p.ops[n].nr == noCall {
						return
					}
					o := &p.ops[n]
					name, o.nr, o.args, o.refs = o.name, unix.SYS_CLOSE, [6]uint64{1<<32 - 1}, 0
				}}
				*copies = 0
				p, err := b.Start(t.Context(), spec)
				if err == nil {
					_, err = p.Wait()
				}
				falls := view == policy.ViewAuto && strings.HasPrefix(name, viewSteps)
				if name != "" && (falls != (err == nil) || falls != (*copies == 1)) {
					t.Errorf("%s failed: %v, %d copies", name, err, *copies)
				}
				if _, err := os.Lstat(work + "/ran"); !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("%s failed, and the command wrote to the workspace itself", name)
				}
				os.Remove(spec.Review.Dir + "/upper/ran")
			}
		})
	}
}

func TestNoViewWithoutACopy(t *testing.T) {
	spec, _ := viewed(t, policy.ViewCopy)
	full := errors.New("disk full")
	spec.Review.Copy = func(context.Context, string) error { return full }
	if p, err := (&Backend{}).Start(t.Context(), spec); !errors.Is(err, full) {
		t.Errorf("started %v, %v", p, err)
	}
}
