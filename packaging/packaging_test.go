// Package packaging holds what packages are made with besides the programs: scripts,
// the AppArmor profile, the recipe of an image. Its tests install a package as a user
// would. It knows no room of the product.
package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// releaseVar names a directory that `make release` made, which is tested instead of
// one that is made on the spot.
const releaseVar = "HOLDFAST_TEST_RELEASE"

// released returns a directory with the files of a release for amd64.
func released(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(releaseVar); dir != "" {
		return dir
	}
	for _, f := range []testenv.Feature{testenv.Go, testenv.Git, testenv.Make} {
		testenv.Need(t, f, nil)
	}
	dir := filepath.Join(t.TempDir(), "release")
	cmd := exec.Command("go", "run", ".", "-version", "development", "-arch", "amd64", "-once", dir)
	cmd.Dir, cmd.Env = filepath.Join(testenv.ModuleRoot(t), "tools/release"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making a release: %v\n%s", err, out)
	}
	return dir
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

// readmeCommand is what the first command of the README runs inside.
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

// TestRootPackage installs the package for Debian in a fresh root, runs the first
// command of the README there as a new user, and removes the package: every file is
// as it was. The image of the recipe is built there too. The RPM has the same files.
func TestRootPackage(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FreshRoot, nil)
	root, dir := testenv.ModuleRoot(t), released(t)
	deb := one(t, filepath.Join(dir, "holdfast_*_amd64.deb"))
	fresh := filepath.Join(t.TempDir(), "fresh")
	run(t, nil, "cp", "-a", testenv.FreshRootDir, fresh)
	run(t, nil, "cp", deb, filepath.Join(fresh, "root/holdfast.deb"))
	out := run(t, []string{"README_COMMAND=" + readmeCommand(t)}, filepath.Join(root, "packaging/testdata/enter"), fresh, filepath.Join(root, "packaging/testdata/user"))
	for _, want := range []string{
		"cat: /home/newcomer/.ssh/id_rsa: No such file or directory\n", "touch: cannot touch '/usr/local/bin/evil'",
		".git/hooks/pre-commit: Read-only file system\n", "work done\n", "removed without a trace\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what was printed:\n%s", want, out)
		}
	}
}

// TestRootRPM compares the files of the RPM with those of the package for Debian: it lists both.
func TestRootRPM(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FreshRoot, nil)
	dir := released(t)
	deb := files(t, `dpkg-deb --fsys-tarfile "$1" | tar -tv`, one(t, filepath.Join(dir, "holdfast_*_amd64.deb")))
	rpm := files(t, `bsdtar -tvf "$1"`, one(t, filepath.Join(dir, "holdfast-*.x86_64.rpm")))
	if !slices.Equal(deb, rpm) {
		t.Errorf("the RPM has %q and the package for Debian %q", rpm, deb)
	}
	for _, want := range []string{"/usr/bin/holdfast", "/usr/bin/holdfast-prove", "/usr/share/man/man1/holdfast-run.1.gz", "/usr/share/fish/vendor_completions.d/holdfast.fish"} {
		if !slices.Contains(deb, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// files are the regular files in what a command lists, each from the root.
func files(t *testing.T, command, path string) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(run(t, nil, "sh", "-c", command, "sh", path)) {
		if fields := strings.Fields(line); line[0] == '-' {
			names = append(names, "/"+strings.TrimLeft(fields[len(fields)-1], "./"))
		}
	}
	slices.Sort(names)
	return names
}

// TestProfileIsThatOfDoctor holds the profile that is installed against the one that
// `holdfast doctor` tells users to write.
func TestProfileIsThatOfDoctor(t *testing.T) {
	root := testenv.ModuleRoot(t)
	source, err := os.ReadFile(filepath.Join(root, "internal/boundary/native/check.go"))
	if err != nil {
		t.Fatal(err)
	}
	installed, err := os.ReadFile("apparmor")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(source), "const apparmorProfile = `")
	told, _, found := strings.Cut(after, "`")
	if !found {
		t.Fatal("doctor has no profile")
	}
	for line := range strings.Lines(strings.ReplaceAll(told, "%s", "/usr/bin/holdfast")) {
		if !strings.Contains(string(installed), strings.TrimSpace(line)) {
			t.Errorf("doctor says %q, which is not in packaging/apparmor", line)
		}
	}
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
