package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

func TestCommitOf(t *testing.T) {
	recorded := func(settings ...debug.BuildSetting) *debug.BuildInfo { return &debug.BuildInfo{Settings: settings} }
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for _, c := range []struct {
		name, set string
		info      *debug.BuildInfo
		want      string
	}{
		{"a build without a repository", "", recorded(), "holdfast development"},
		{"a build that knows nothing of itself", "", nil, "holdfast development"},
		{"a build of the Makefile", "abcdef012345-dirty", recorded(revision), "holdfast development (commit abcdef012345-dirty)"},
		{"a build of go install", "", recorded(revision), "holdfast development (commit 0123456789ab)"},
		{"a build of go install with changes", "", recorded(revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "holdfast development (commit 0123456789ab-dirty)"},
	} {
		if got := "holdfast " + buildLine("development", commitOf(c.set, c.info)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestMakefileSetsTheBuild builds with the command of the Makefile, which it asks
// for in a repository of its own.
func TestMakefileSetsTheBuild(t *testing.T) {
	testenv.Need(t, testenv.Make, nil)
	testenv.Need(t, testenv.Git, nil)
	root, dir := testenv.ModuleRoot(t), t.TempDir()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	line := func(args ...string) string {
		t.Helper()
		for line := range strings.Lines(run("make", append([]string{"-n", "build"}, args...)...)) {
			if strings.Contains(line, "./cmd/holdfast") {
				return strings.TrimSpace(line)
			}
		}
		t.Fatal("make build does not build the program")
		return ""
	}
	if got := line(); !strings.Contains(got, "command.commit= ") {
		t.Errorf("without a repository: %s", got)
	}
	run("git", "init", "-q")
	run("git", "add", "Makefile")
	run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one")
	commit := strings.TrimSpace(run("git", "rev-parse", "--short=12", "HEAD"))
	if got := line(); !strings.Contains(got, "command.commit="+commit+" ") || !strings.Contains(got, "command.release=development'") {
		t.Errorf("at %s: %s", commit, got)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), append(makefile, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "bin") + "/"
	build := exec.Command("sh", "-c", strings.Replace(line("VERSION=1.2.3"), "-o bin/", "-o "+out, 1))
	build.Dir = root
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	for _, name := range []string{"holdfast", "holdfast-prove"} {
		if got, want := run(out+name, "version"), name+" 1.2.3 (commit "+commit+"-dirty) "; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
