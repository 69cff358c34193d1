// Package packaging holds what packages are made with besides the programs: scripts,
// the AppArmor profile, the recipe of an image. Its tests install a package as a user
// would. It knows no room of the product.
package packaging

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"

	"holdfast.dev/holdfast/internal/testenv"
)

// releaseVar names a directory that `make release` made, which is tested instead of
// one that is made on the spot.
const releaseVar = "HOLDFAST_TEST_RELEASE"

// TestRootRelease makes a release for amd64 once, and tries it.
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
	t.Run("package for Debian", func(t *testing.T) { installs(t, dir) })
	t.Run("recipe of an image", func(t *testing.T) { followsRecipe(t, dir) })
	t.Run("RPM", func(t *testing.T) { holdsTheSame(t, dir) })
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

// installs puts the package for Debian into a fresh root, runs the first
// command of the README there as a new user, and removes the package: every file is
// as it was.
func installs(t *testing.T, dir string) {
	t.Helper()
	root := testenv.ModuleRoot(t)
	deb := one(t, filepath.Join(dir, "holdfast_*_amd64.deb"))
	fresh := filepath.Join(t.TempDir(), "fresh")
	run(t, nil, "cp", "-a", testenv.FreshRootDir, fresh)
	run(t, nil, "cp", deb, filepath.Join(fresh, "root/holdfast.deb"))
	out := run(t, []string{"README_COMMAND=" + readmeCommand(t)}, filepath.Join(root, "packaging/testdata/enter"), fresh, filepath.Join(root, "packaging/testdata/user"))
	for _, want := range []string{
		"cat: /home/newcomer/.ssh/id_rsa: No such file or directory\n", "touch: cannot touch '/usr/local/bin/evil'",
		".git/hooks/pre-commit: Read-only file system\n", "work done\n", "removed without a trace\n", "the profile came and went\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what was printed:\n%s", want, out)
		}
	}
}

// followsRecipe runs the steps of the recipe in a fresh root, but for those
// that need a network.
func followsRecipe(t *testing.T, dir string) {
	t.Helper()
	recipe, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	script, steps := "", 0
	for line := range strings.Lines(string(recipe)) {
		step, is := strings.CutPrefix(line, "RUN ")
		if is && !strings.HasPrefix(step, "apt-get ") {
			script, steps = script+step, steps+1
		}
	}
	if steps == 0 {
		t.Fatal("the recipe has no step")
	}
	script += "holdfast version\nholdfast doctor\n"
	work := t.TempDir()
	fresh, file := filepath.Join(work, "fresh"), filepath.Join(work, "script")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "cp", "-a", testenv.FreshRootDir, fresh)
	run(t, nil, "install", "-D", "-t", filepath.Join(fresh, "tmp/holdfast"), one(t, filepath.Join(dir, "holdfast_*_amd64.deb")))
	out := run(t, nil, filepath.Join(testenv.ModuleRoot(t), "packaging/testdata/enter"), fresh, file)
	if want := "holdfast run works here with the default profile.\n"; !strings.Contains(out, want) {
		t.Errorf("%q is not in what was printed:\n%s", want, out)
	}
}

// TestWorkflow checks the workflow as GitHub would read it.
func TestWorkflow(t *testing.T) {
	lint, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("github.yml")
	if err != nil {
		t.Fatal(err)
	}
	found, err := lint.Lint("contained.yml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Error(e)
	}
}

// holdsTheSame compares the files of the RPM with those of the package for Debian: it lists both.
func holdsTheSame(t *testing.T, dir string) {
	t.Helper()
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
