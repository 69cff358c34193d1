package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast.dev/holdfast/internal/testenv"
)

// systemPath is where the programs of scripts are found: what every user of
// the machine has, and nothing of a version manager.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// TestScripts runs testdata/script. A script begins in the directory ws, which is empty
// except for the files that the script brings below ws/, with a home directory of its
// own beside it; holdfast is the program as it is shipped.
func TestScripts(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	root := t.TempDir()
	testenv.NoLeaks(t, root)
	bin := binDir(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		ContinueOnError:     true,
		Setup:               func(env *testscript.Env) error { return setUp(env, bin) },
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":  status,
			"fits":    fits,
			"need":    need,
			"bigfile": bigFile,
			"record":  record,
			"silent":  silent,
		},
	})
}

// binDir is a directory with nothing but our programs.
func binDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, path := range map[string]string{"holdfast": testenv.Binary(t), "holdfast-prove": testenv.Prove(t)} {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func setUp(env *testscript.Env, bin string) error {
	home, ws := filepath.Join(env.WorkDir, "home"), filepath.Join(env.WorkDir, "ws")
	for _, dir := range []string{home, ws} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	env.Cd = ws
	for _, v := range testenv.HomeEnv(home) {
		name, value, _ := strings.Cut(v, "=")
		env.Setenv(name, value)
	}
	env.Setenv("PATH", bin+":"+systemPath)
	env.Setenv("LANG", "C.UTF-8")
	env.Setenv("HOLDFAST", filepath.Join(bin, "holdfast")) // for scripts that change PATH
	env.Values[test{}] = env.T()
	return nil
}

func condition(name string) (bool, error) {
	switch name {
	case "uid0":
		return os.Geteuid() == 0, nil
	case "fuse":
		return testenv.Have(testenv.FUSE), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// status N CMD [ARG…] runs a command whose exit status must be N; what it
// printed is there for stdout, stderr and cmp.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// partial is the line at the end of a run that not all could be seen of.
var partial = regexp.MustCompile(`(?m)^holdfast: record: PARTIAL: lookups not seen: /dev/fuse cannot be opened; see: holdfast log verify \S+\n`)

// silent checks that a run printed nothing on standard error, except the message about
// its record if not everything can be seen.
func silent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: silent")
	}
	output := ts.ReadFile("stderr")
	if !testenv.Have(testenv.FUSE) {
		output = partial.ReplaceAllString(output, "")
	}
	if output != "" {
		ts.Fatalf("standard error has: %s", output)
	}
}

// fits LINES FILE checks that a text fits a screen and is not wider than 110.
func fits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fits LINES FILE")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[1])), "\n")
	if len(lines) > most {
		ts.Fatalf("%d lines, want at most %d", len(lines), most)
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 110 {
			ts.Fatalf("%d columns wide: %s", n, line)
		}
	}
}

// test is the key of the test that a script is.
type test struct{}

// need FEATURE… is testenv.Need for a script.
func need(ts *testscript.TestScript, neg bool, args []string) {
	t, ok := ts.Value(test{}).(testing.TB)
	if !ok || neg {
		ts.Fatalf("usage: need FEATURE...")
	}
	for _, name := range args {
		testenv.Need(t, testenv.Feature(name), nil)
	}
}

// bigfile FILE BYTES TEXT writes TEXT again and again until FILE has BYTES.
func bigFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: bigfile FILE BYTES TEXT")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := args[2] + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(text, size/len(text)+1)), 0o600))
}
