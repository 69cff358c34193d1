package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// BinaryVar names a holdfast binary that is tested instead of one built on the
// spot; the other programs lie beside it. `make test` sets it.
const BinaryVar = "HOLDFAST_TEST_BINARY"

// Binary returns the absolute path of the holdfast program, built as it is
// shipped (static, no paths of this machine), once in a test process.
// Everybody may execute it: root runs it as another user.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Prove returns the absolute path of the holdfast-prove program, which lies beside
// that of Binary.
func Prove(t testing.TB) string {
	t.Helper()
	return filepath.Join(filepath.Dir(Binary(t)), "holdfast-prove")
}

var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(BinaryVar); path != "" {
		return filepath.Abs(path)
	}
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "holdfast"), goBuild(root, "-o", dir+"/", "./cmd/holdfast", "./cmd/holdfast-prove")
})

// binaryDir begins the name of a directory that Binary made; the id of the
// process follows. A test process has no last moment of its own at which it
// could remove it, so the next one does.
const binaryDir = "testenv-binary-"

func sweep(tmp string) {
	old, err := filepath.Glob(filepath.Join(tmp, binaryDir+"*"))
	if err != nil {
		return
	}
	for _, dir := range old {
		name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), binaryDir), "-")
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join("/proc", name)); errors.Is(err, os.ErrNotExist) {
			os.RemoveAll(dir)
		}
	}
}

// Prober returns the path of the static program that probes run inside.
func Prober(t testing.TB) string {
	t.Helper()
	return beside(t, "prober", "./internal/prove/inside/prober", "-ldflags=-s -w")
}

// Ablated returns the path of the holdfast program whose controls can be switched
// off, one by one.
func Ablated(t testing.TB) string {
	t.Helper()
	return beside(t, "ablated", "./internal/run/ablated")
}

// beside is a program that lies beside a binary which BinaryVar names; where there
// is none it is built, once in a test process.
func beside(t testing.TB, name, pkg string, flags ...string) string {
	t.Helper()
	if path := os.Getenv(BinaryVar); path != "" {
		path = filepath.Join(filepath.Dir(path), name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	build, _ := builds.LoadOrStore(name, sync.OnceValues(func() (string, error) { return buildOne(name, pkg, flags) }))
	path, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// builds are functions that build a program when they are called first, by name.
var builds sync.Map

func buildOne(name, pkg string, flags []string) (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, goBuild(root, append(flags, "-o", path, pkg)...)
}

// buildDir makes a directory that the next test process removes.
func buildDir() (string, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", binaryDir, os.Getpid()))
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

func goBuild(root string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-buildvcs=false"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// ModuleRoot returns the directory of go.mod, which is above the directory
// that a test runs in.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// TempHome returns an empty home directory that lives as long as the test. It
// changes no variable of this process, so that tests stay parallel: give
// [HomeEnv] of it to the program under test.
func TempHome(t testing.TB) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

// HomeEnv returns the variables that make home the home directory of a
// program, and that keep it from finding the real one by another name.
func HomeEnv(home string) []string {
	return []string{
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"XDG_DATA_HOME=" + filepath.Join(home, ".local", "share"),
		"XDG_STATE_HOME=" + filepath.Join(home, ".local", "state"),
	}
}
