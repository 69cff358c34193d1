//go:build linux

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestManySupervisors starts the shipped program a hundred times at once: each
// scans and settles a workspace that the others change.
func TestManySupervisors(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, testenv.Git, nil)
	holdfast := testenv.Binary(t)
	for _, tt := range []struct {
		name      string
		workspace func(i int) string
	}{
		{"in one workspace", func(int) string { return "w" }},
		{"in a workspace each", func(i int) string { return fmt.Sprint(i) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			testenv.NoLeaks(t, dir)
			home := filepath.Join(dir, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			var ended sync.WaitGroup
			for i := range 100 {
				work := filepath.Join(dir, tt.workspace(i))
				if err := os.MkdirAll(work, 0o755); err != nil {
					t.Fatal(err)
				}
				ended.Go(func() {
					env := append(testenv.HomeEnv(home), "PATH="+os.Getenv("PATH"))
					if err := initInside(holdfast, work, env, i); err != nil {
						t.Errorf("run %d: %v", i, err)
					}
				})
			}
			ended.Wait()
			for i := range 100 {
				if _, err := os.Stat(filepath.Join(dir, tt.workspace(i), fmt.Sprintf("r%d/.git/HEAD", i))); err != nil {
					t.Error(err)
				}
			}
			// The end of one run may find what another one has half created and
			// quarantine it; then only this remains of its session.
			left, _ := filepath.Glob(home + "/.local/state/holdfast/sessions/*/*")
			for _, path := range left {
				if filepath.Base(path) != "quarantine" {
					t.Errorf("left of a session: %s", path)
				}
			}
		})
	}
}

// initInside makes repository i in a run. It tries again if the run is refused
// because git of another run replaced a file between inspection and launch.
func initInside(holdfast, work string, env []string, i int) (err error) {
	for range 5 {
		cmd := exec.Command(holdfast, "run", "--", "sh", "-ec", fmt.Sprintf("git init -q r%d && git -C r%d status --porcelain && echo done", i, i))
		cmd.Dir, cmd.Env = work, env
		out, failed := cmd.Output()
		if failed == nil && string(out) == "done\n" {
			return nil
		}
		why := ""
		if exit, ok := failed.(*exec.ExitError); ok {
			why = string(exit.Stderr)
		}
		err = fmt.Errorf("%w, %q, %s", failed, out, why)
		if !strings.Contains(why, "was replaced after the policy was checked") {
			break
		}
	}
	return err
}
