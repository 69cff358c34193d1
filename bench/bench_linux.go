package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bench is one run of everything.
type bench struct {
	ctx      context.Context
	options  options
	root     string // of the module
	dir      string // private, readable by all users, removed at the end
	holdfast string // absolute path of the measured program
	bwrap    string // absolute path; "" if not installed
	user     account
	env      []string // of what starts a command
	inside   []string // of the command itself, the same for all contestants
	cpu      cpuMeter
	rooted   *bench // forRoot
}

// longest limits one measured run: one that takes longer hangs.
const longest = 2 * time.Minute

// newBench makes the private directory and builds holdfast into it.
func newBench(ctx context.Context, o options, root string) (_ *bench, err error) {
	b := &bench{ctx: ctx, options: o, root: root}
	if b.user, err = ordinaryUser(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, fmt.Errorf("making a directory to work in: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.remove())
		}
	}()
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return nil, fmt.Errorf("resolving the directory to work in: %w", err)
	}
	if err := b.layout(); err != nil {
		return nil, err
	}
	b.holdfast = filepath.Join(b.dir, "bin", "holdfast")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Dir(b.holdfast)+"/", "./cmd/holdfast", "./cmd/holdfast-prove")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building holdfast: %w: %s", err, out)
	}
	b.bwrap, _ = exec.LookPath("bwrap") // the report says if it is missing
	return b, b.checkReachable()
}

// layout makes the directories: the user owns the user's ones, and the measured
// programs cannot write the others.
func (b *bench) layout() error {
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return fmt.Errorf("giving the user access to the directory: %w", err)
	}
	for _, d := range []string{"bin", "scratch", "copies", "home", "work"} {
		if err := os.Mkdir(filepath.Join(b.dir, d), 0o755); err != nil {
			return fmt.Errorf("making a directory: %w", err)
		}
	}
	for _, d := range []string{".cache/go-build", ".npm/_cacache", "go/pkg/mod"} {
		if err := os.MkdirAll(filepath.Join(b.home(), d), 0o755); err != nil {
			return fmt.Errorf("making the home: %w", err)
		}
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	if p, err := exec.LookPath("go"); err == nil {
		path = filepath.Dir(p) + ":" + path
	}
	b.env = []string{"HOME=" + b.home(), "PATH=" + path, "USER=" + b.user.name, "LOGNAME=" + b.user.name}
	return errors.Join(b.user.chownTree(b.home()), b.user.chownTree(filepath.Join(b.dir, "work")))
}

// forRoot is the same bench running as root, in a separate home and separate
// workspaces, which are made at the first call.
func (b *bench) forRoot() (*bench, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("measuring as root needs root: start the bench as root")
	}
	if b.rooted != nil {
		return b.rooted, nil
	}
	r := *b
	r.user, r.dir = account{name: "root"}, filepath.Join(b.dir, "root")
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory for root: %w", err)
	}
	if err := r.layout(); err != nil {
		return nil, err
	}
	b.rooted = &r
	return b.rooted, nil
}

func (b *bench) home() string { return filepath.Join(b.dir, "home") }

// workspace is the user's directory for the workloads that share name.
func (b *bench) workspace(name string) string { return filepath.Join(b.dir, "work", name) }

// checkReachable checks that the user can use the new directories: below a directory
// that only root may enter every contestant would fail, or worse, only some.
func (b *bench) checkReachable() error {
	if _, err := b.runAs("", "test", "-w", b.home(), "-a", "-x", b.holdfast); err != nil {
		return fmt.Errorf("%s cannot use the working directory; set TMPDIR to a directory that all users can enter: %w", b.user.name, err)
	}
	return nil
}

// runAs runs a command as the user, unmeasured, in dir ("" for the home), and
// returns its output.
func (b *bench) runAs(dir, name string, arg ...string) (string, error) {
	if dir == "" {
		dir = b.home()
	}
	ctx, cancel := context.WithTimeout(b.ctx, 2*longest)
	defer cancel()
	program, err := b.lookup(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, arg...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, b.env, b.user.attr()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(arg, " "), err, lastLines(exit.Stderr))
		}
		return "", fmt.Errorf("starting %s: %w", name, err)
	}
	return string(out), nil
}

// lookup finds a program in the PATH of the measured programs, which is not ours.
func (b *bench) lookup(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	list, _ := strings.CutPrefix(b.env[1], "PATH=")
	for _, dir := range filepath.SplitList(list) {
		p := filepath.Join(dir, name)
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not on the path %s: %w", name, list, exec.ErrNotFound)
}

// remove deletes everything that was made. The directories of the module cache
// are read-only, so a second attempt is needed.
func (b *bench) remove() error {
	if os.RemoveAll(b.dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o755)
		}
		return nil // the removal below reports what is left
	})
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("removing temporary files: %w", err)
	}
	return nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module (run this inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// lastLines shortens a program's output to fit into an error.
func lastLines(b []byte) string {
	s := strings.TrimSpace(string(b))
	if len(s) > 500 {
		s = "…" + s[len(s)-500:]
	}
	return s
}
