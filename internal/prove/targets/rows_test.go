//go:build linux

package targets_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

// sampled are rows that another runner plays from their data alone: files read
// and written through links and odd paths, environments, sockets, spellings.
var sampled = []string{
	"LNK-001", "LNK-002", "LNK-003", "LNK-006", "LNK-011", "PTH-001", "PTH-003", "PTH-010b", "PTH-010c", "PTH-012", "ENV-001", "ENV-002", "HST-040c",
	"IPC-001", "IPC-001c", "IPC-002", "IPC-003b", "IPC-018", "CMD-001", "CMD-003", "CMD-008", "ARG-002b",
}

// TestAnotherRunnerAgrees plays rows with a runner in another language, which
// only knows what docs/formats/rows.md says, and compares its verdicts with ours.
func TestAnotherRunnerAgrees(t *testing.T) {
	testenv.Need(t, "python3", func() error { _, err := exec.LookPath("python3"); return err })
	bwrap, err := targets.Named("bwrap", targets.Options{})
	testenv.Need(t, "bwrap", func() error { return err })
	rows := filepath.Join(t.TempDir(), "rows.json")
	f, err := os.Create(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.WriteRows(f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	byID := map[string]probe.Row{}
	for _, r := range probe.All() {
		byID[r.ID] = r
	}
	ours := runner(t)
	for name, target := range map[string]probe.Target{"none": probe.None{}, "bwrap": bwrap} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp(ours.Dir, ".rows-test-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			out, err := exec.Command("python3", append([]string{"testdata/rows.py", rows, name, dir}, sampled...)...).Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr(err))
			}
			var theirs map[string][2]string
			if err := json.Unmarshal(out, &theirs); err != nil {
				t.Fatal(err)
			}
			for _, id := range sampled {
				res := ours.Play(t.Context(), target, byID[id])
				if theirs[id][0] != res.Verdict.String() {
					t.Errorf("%s: the other runner says %q, we say %s: %s", id, theirs[id], res.Verdict, res.Reason)
				}
			}
		})
	}
}

func stderr(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}
