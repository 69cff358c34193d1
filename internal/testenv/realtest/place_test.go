package realtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// slow is how long the slowest program may take on a busy machine.
const slow = 3 * time.Minute

// TestPrograms runs all programs at the same time; none may leave a process, a
// mount, a cgroup or a temporary file behind.
func TestPrograms(t *testing.T) {
	root := t.TempDir()
	testenv.NoLeaks(t, root)
	for _, row := range []struct {
		name string
		run  func(t *testing.T, root string)
	}{
		{"compilers", compilers},
		{"archives and search", archivesAndSearch},
		{"go", goTools},
		{"git of every day", gitEverydayWork},
		{"git new repositories", gitNewRepositories},
		{"git worktree", gitWorktree},
		{"git submodule", gitSubmodule},
		{"git submodule of existing repository", gitSubmoduleOfExistingRepository},
		{"a layer under git", reviewTools("version: 1\nworkspace: {mode: review, view: overlay}\n")},
		{"a copy under git", reviewTools("version: 1\nworkspace: {mode: review, view: copy}\n")},
		{"a job with an output", jobWithOutput},
		{"node threads", nodeThreads},
		{"npm", npm},
		{"python venv", pythonVenv},
		{"python multiprocessing", pythonMultiprocessing},
		{"dev server", devServer},
		{"vite on localhost", vite("")},
		{"vite on 127.0.0.1", vite("--host 127.0.0.1")},
		{"vite on ::1", vite("--host ::1")},
		{"chromium", chromium},
		{"maven", maven},
		{"gradle", gradle},
		{"poetry and pipenv", pythonProjects},
		{"ruby", rubyTools},
		{"direnv", direnvTool},
		{"yarn, pnpm and playwright", jsTools},
		{"version managers", versionManagers},
		{"secrets of tools", toolSecrets},
	} {
		t.Run(row.name, func(t *testing.T) { row.run(t, root) })
	}
}

// fixture is a home directory and, beside it, a workspace.
type fixture struct {
	t        *testing.T
	home, ws string
	env      []string
}

func newFixture(t *testing.T, root string, needs ...testenv.Feature) *fixture {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	for _, f := range needs {
		testenv.Need(t, f, nil)
	}
	root = filepath.Join(root, filepath.Base(t.Name()))
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &fixture{t: t, home: filepath.Join(root, "home"), ws: filepath.Join(root, "ws")}
	for _, dir := range []string{p.home, p.ws} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if tool, err := exec.LookPath("go"); err == nil {
		path = filepath.Dir(tool) + ":" + path
	}
	p.env = append(testenv.HomeEnv(p.home), "PATH="+path, "LANG=C.UTF-8", "TERM=dumb", "GOTOOLCHAIN=local")
	return p
}

// write makes files below the workspace, by name and content; one that begins
// with "#!" is executable.
func (p *fixture) write(files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		path := filepath.Join(p.ws, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *fixture) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.ws, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

// bare runs a shell script in the workspace without holdfast and returns its
// output.
func (p *fixture) bare(script string, args ...string) string {
	p.t.Helper()
	return p.execute("sh", append([]string{"-euc", script}, args...)...)
}

// inside runs a shell script in the workspace under holdfast, with its flags.
func (p *fixture) inside(script string, flags ...string) string {
	p.t.Helper()
	args := append([]string{"run"}, flags...)
	return p.execute(testenv.Binary(p.t), append(args, "--", "sh", "-euc", script)...)
}

func (p *fixture) execute(name string, args ...string) string {
	p.t.Helper()
	out, _ := p.both(name, args...)
	return out
}

// both returns the standard output and the standard error.
func (p *fixture) both(name string, args ...string) (string, string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), slow)
	defer cancel()
	cmd := p.command(ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("%v\n%s\n%s\n%s", errors.Join(err, ctx.Err()), args[len(args)-1], out.String(), complaint.String())
	}
	if strings.Contains(complaint.String(), "quarantined") {
		p.t.Errorf("honest work was held back:\n%s", complaint.String())
	}
	return out.String(), complaint.String()
}

func (p *fixture) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = p.ws, append(p.env, "PWD="+p.ws)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// contains fails the test unless text holds each of want.
func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}
