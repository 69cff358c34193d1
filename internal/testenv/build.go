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

// BinaryVar names a holdfast program to test instead of one built here; the other
// programs are beside it. `make test` sets it.
const BinaryVar = "HOLDFAST_TEST_BINARY"

// Binary returns the absolute path of the holdfast program, built as it is
// shipped (static, no paths of this machine), once per test process. All users
// may execute it: root runs it as another user.
func Binary(t testing.TB) string { return program(t, "holdfast") }

// Prove is the same for holdfast-prove.
func Prove(t testing.TB) string { return program(t, "holdfast-prove") }

// Prober is the same for the program that probes run inside.
func Prober(t testing.TB) string { return program(t, "prober") }

// Ablated is the same for the holdfast program whose controls can be switched off
// one by one.
func Ablated(t testing.TB) string { return program(t, "ablated") }

func program(t testing.TB, name string) string {
	t.Helper()
	if path := os.Getenv(BinaryVar); name == "holdfast" && path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// built is the directory of the programs that tests start.
var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(BinaryVar); path != "" {
		return filepath.Abs(filepath.Dir(path))
	}
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	removeOldBinaries(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", binaryDir, os.Getpid()))
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(dir, 0o755), buildPrograms(root, dir))
})

// buildPrograms builds the programs that tests start, from the module in root,
// into dir: holdfast, holdfast-prove, ablated and prober.
func buildPrograms(root, dir string) error {
	for _, args := range [][]string{
		{"-o", dir + "/", "./cmd/holdfast", "./cmd/holdfast-prove", "./internal/run/ablated"},
		{"-ldflags=-s -w", "-o", dir + "/", "./internal/prove/inside/prober"},
	} {
		cmd := exec.Command("go", append([]string{"build", "-trimpath", "-buildvcs=false"}, args...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// binaryDir begins the name of a directory that Binary made; the PID follows. A
// test process cannot remove it at its own end, so the next one does.
const binaryDir = "testenv-binary-"

func removeOldBinaries(tmp string) {
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

// ModuleRoot returns the directory of go.mod, a parent of the directory that a
// test runs in.
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

// TempHome returns an empty home directory that exists as long as the test. It
// changes no variables of this process, so that tests can be parallel: pass
// [HomeEnv] of it to the program under test.
func TempHome(t testing.TB) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

// HomeEnv returns the variables that make home the home directory of a program,
// including those that would lead it to the real one.
func HomeEnv(home string) []string {
	return []string{
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"XDG_DATA_HOME=" + filepath.Join(home, ".local", "share"),
		"XDG_STATE_HOME=" + filepath.Join(home, ".local", "state"),
	}
}
