// Package packaging holds what packages contain besides the programs (scripts,
// the AppArmor profile) and the recipe of an image. Its tests install packages as
// a user does.
package packaging

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// releaseVar names a directory that `make release` made. Without it the test
// makes a release for amd64, once.
const releaseVar = "HOLDFAST_TEST_RELEASE"

// TestRootRelease installs the packages of a release in a copy of a fresh system.
func TestRootRelease(t *testing.T) {
	for _, f := range []testenv.Feature{testenv.Root, testenv.FreshRoot, testenv.Go, testenv.Git, testenv.Make} {
		testenv.Need(t, f, nil)
	}
	dir := os.Getenv(releaseVar)
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "release")
		cmd := exec.Command("go", "run", ".", "-version", "development", "-arch", "amd64", "-once", dir)
		cmd.Dir, cmd.Env = filepath.Join(testenv.ModuleRoot(t), "tools/release"), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("making a release: %v\n%s", err, out)
		}
	}
	s := system{
		root: filepath.Join(t.TempDir(), "fresh"), release: dir,
		deb: one(t, filepath.Join(dir, "holdfast_*_amd64.deb")), rpm: one(t, filepath.Join(dir, "holdfast-*.x86_64.rpm")),
	}
	run(t, nil, "cp", "-a", testenv.FreshRootDir, s.root)
	run(t, nil, "cp", s.deb, filepath.Join(s.root, "root/holdfast.deb"))
	run(t, nil, "cp", s.rpm, filepath.Join(s.root, "root/holdfast.rpm"))
	s.execute(t, "useradd --create-home --shell /bin/bash newcomer\ninstall -d /run/user\n")
	fresh := s.files(t)
	for _, step := range []struct {
		name string
		try  func(*testing.T, system)
	}{
		{"a user installs, uses and removes the package for Debian", installsForDebian},
		{"RPM", installsRPM},
		{"AppArmor profile", installsProfile},
		{"contents", contents},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.try(t, s)
			if left := s.files(t); !maps.Equal(left, fresh) {
				t.Errorf("not all is as before:\n%s", differences(fresh, left))
			}
		})
	}
	t.Run("recipe and workflow", func(t *testing.T) { followsRecipe(t, s) })
}

// system is a fresh system to install packages in.
type system struct{ root, release, deb, rpm string }

// execute runs a script as root of the system and returns what it printed.
func (s system) execute(t *testing.T, script string, env ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return run(t, env, "testdata/enter", s.root, file)
}

// script runs a script from testdata.
func (s system) script(t *testing.T, name string, env ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return s.execute(t, string(text), env...)
}

// passing matches the files that package managers and the test itself change.
var passing = regexp.MustCompile(`^/(root|home|proc|sys|dev|tmp|var/lib/dpkg|var/lib/rpm|var/log)/`)

// files describes each file of the system.
func (s system) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, s.root)
		if err != nil || passing.MatchString(name) {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			all[name] += fmt.Sprintf(", %d bytes of %s", info.Size(), info.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func differences(before, after map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			fmt.Fprintf(&b, "%s was %q and is %q\n", name, before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == "" {
			fmt.Fprintf(&b, "%s is new\n", name)
		}
	}
	return b.String()
}

// readmeCommand is the first command of the README.
func readmeCommand(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^(?:go run \./cmd/|bin/)?holdfast (run .*)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the README runs nothing")
	}
	return "holdfast " + string(m[1])
}

func installsForDebian(t *testing.T, s system) {
	// cat writes its error in parts, and an alert may come between them.
	alerts := regexp.MustCompile(`holdfast: alert: .*\n`)
	out := alerts.ReplaceAllString(s.script(t, "user", "README_COMMAND="+readmeCommand(t)), "")
	for _, want := range []string{
		"cat: /home/newcomer/.ssh/id_rsa: No such file or directory\n", "touch: cannot touch '/usr/local/bin/evil'",
		".git/hooks/pre-commit: Read-only file system\n", "work done\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what was printed:\n%s", want, out)
		}
	}
}

func installsRPM(t *testing.T, s system) { s.script(t, "rpm") }

func installsProfile(t *testing.T, s system) { s.script(t, "apparmor") }

// contents compares the files of both packages and of the archive.
func contents(t *testing.T, s system) {
	list := func(out string) []string {
		var names []string
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); line[0] == '-' {
				names = append(names, "/"+strings.TrimLeft(fields[len(fields)-1], "./"))
			}
		}
		slices.Sort(names)
		return names
	}
	deb := list(run(t, nil, "sh", "-c", `dpkg-deb --fsys-tarfile "$1" | tar -tv`, "sh", s.deb))
	rpm := list(s.execute(t, "rpm --query --package --list --verbose /root/holdfast.rpm\n"))
	archive := list(run(t, nil, "tar", "-tv", "--transform=s,^[^/]*,/usr,", "--show-transformed-names", "-f", one(t, filepath.Join(s.release, "holdfast-*-linux-amd64.tar.gz"))))
	if !slices.Equal(deb, rpm) || !slices.Equal(deb, archive) {
		t.Errorf("the package for Debian has %q, the RPM %q, the archive %q", deb, rpm, archive)
	}
	for _, want := range []string{
		"bin/holdfast", "bin/holdfast-prove", "share/man/man1/holdfast-run.1.gz", "share/man/man1/holdfast-prove-rows.1.gz",
		"share/bash-completion/completions/holdfast", "share/zsh/site-functions/_holdfast-prove", "share/fish/vendor_completions.d/holdfast.fish",
		"share/holdfast/apparmor", "share/doc/holdfast/LICENSE", "share/doc/holdfast/reference/syscalls.md", "share/doc/holdfast/reference/prove/rows.md",
	} {
		if !slices.Contains(deb, "/usr/"+want) {
			t.Errorf("%q is missing", want)
		}
	}
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = s.release
	if out, err := sums.CombinedOutput(); err != nil {
		t.Errorf("checksums: %v\n%s", err, out)
	}
}

// one returns the only file that pattern matches.
func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s matches %q, %v", pattern, found, err)
	}
	return found[0]
}

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
