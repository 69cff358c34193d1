//go:build linux

package cli

import (
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestPolicyFlagsAreThoseOfRun compares the flags that are passed on with those of
// holdfast run, except those about how it runs.
func TestPolicyFlagsAreThoseOfRun(t *testing.T) {
	help, err := exec.Command(testenv.Binary(t), "run", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		if !slices.Contains([]string{"grace", "help", "verbose", "workspace"}, m[1]) {
			got = append(got, m[1])
		}
	}
	want := slices.Concat(runTexts, runSwitches)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("run has %q, and the examiner hands on %q", got, want)
	}
}
