package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRecognise(t *testing.T) {
	for _, row := range []struct {
		name, value string
		care        Care
		pattern     string
	}{
		{"LANG", "C", NoCare, ""},
		{"DEPLOY_TOKEN", "x", SecretName, "*TOKEN*"},
		{"deploy_token", "x", SecretName, "*TOKEN*"},
		{"HARMLESS", "ghp_0123456789abcdefghij", SecretValue, ""},
		{"SSH_AUTH_SOCK", "/tmp/a", HostSocket, "SSH_*"},
		{"DOCKER_HOST", "tcp://user:word@example.org", SecretValue, "DOCKER_*"},
		{"LD_PRELOAD", "/x.so", Loads, "LD_*"},
	} {
		if care, pattern := Recognise(row.name, row.value); care != row.care || pattern != row.pattern {
			t.Errorf("Recognise(%q, %q) = %d, %q; want %d, %q", row.name, row.value, care, pattern, row.care, row.pattern)
		}
	}
}

// What is recognised here is never handed in by environment.pass.
func TestRecognisedIsNotPassed(t *testing.T) {
	e := environment()
	for _, name := range slices.Concat(e.SecretNames, e.HostSockets, e.Dangerous) {
		name = matchable(name)
		if care, _ := Recognise(name, "x"); care == NoCare || refusedName(name) == nil {
			t.Errorf("%s: care %d, passed: %v", name, care, refusedName(name) == nil)
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

// A program is known by the content of the file that its name leads to; of what
// is no file, or not there, nothing is known.
func TestProgramsAreKnownByTheirContent(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if err := errors.Join(os.WriteFile(dir+"/tool", nil, 0o755), os.Symlink("tool", dir+"/link"), os.Symlink("none", dir+"/broken")); err != nil {
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
