package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// What needs care is never handed in by environment.pass.
func TestWhatNeedsCareIsNotPassed(t *testing.T) {
	e := environment()
	for _, name := range slices.Concat(e.SecretNames, e.HostSockets, e.Dangerous) {
		if name = matchable(name); refusedName(name) == nil {
			t.Errorf("%s is passed", name)
		}
	}
	for _, name := range TrustVariables { // inside each names the run's own bundle
		if err := passable(name); err != nil {
			t.Errorf("--env %s: %v", name, err)
		}
	}
}

func matchable(pattern string) string {
	out := ""
	for _, c := range pattern {
		if c == '*' {
			c = 'X'
		}
		out += string(c)
	}
	return out
}

// A program is identified by the content of the file that its name leads to; a path
// that is not a file, or does not exist, has none.
func TestProgramsAreKnownByTheirContent(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if err := errors.Join(programs.Write(dir+"/tool", nil, 0o755), os.Symlink("tool", dir+"/link"), os.Symlink("none", dir+"/broken")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, path, sum string }{
		{"/tool", dir + "/tool", empty}, {"/link", dir + "/tool", empty}, {"/broken", "", ""}, {"/none", "", ""}, {"", dir, ""},
	} {
		if path, sum := (Plan{}).findProgram(dir + row.name); path != row.path || sum != row.sum {
			t.Errorf("%s: %q, %q, want %q, %q", row.name, path, sum, row.path, row.sum)
		}
	}
}
