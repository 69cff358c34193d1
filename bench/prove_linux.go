package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// The names for -only of the parts about the escape matrix. All of it takes so
// long that it is a separate part.
const (
	provePart      = "prove"
	proveWholePart = "prove-whole"
)

// proveTime limits one run of the matrix, on a busy machine.
const proveTime = 30 * time.Minute

// provingCore measures the headline cases, also against the other targets.
func (b *bench) provingCore() (*section, error) {
	s := b.newSection(provePart, "Prove", [][]string{{"git", "--version"}, {"bwrap", "--version"}})
	s.intro = []string{"`holdfast prove --core --quick`, three times, and against each other target once; wall and processor time are those of the whole tree, medians."}
	args, others := []string{"--core", "--quick"}, []string{proveNone}
	if b.user.uid == 0 {
		others = nil // prove refuses to run without a sandbox as root
	}
	if b.options.quick {
		args = append(args, "--class", "fs")
	}
	if b.bwrap != "" {
		others = append(others, bwrap)
	}
	runs, err := b.measureProve(s, args, append(slices.Clone(others), holdfast, holdfast, holdfast))
	if err != nil {
		return nil, err
	}
	s.verdicts = []verdict{judge("prove: the headline cases (--core --quick), s", proveCoreLimit, runs.wall(holdfast), "%.1f")}
	s.tables = []captioned{{caption: "The headline cases: " + s.only, table: runs.table(append(others, holdfast))}}
	return s, nil
}

// provingWhole measures all of it once.
func (b *bench) provingWhole() (*section, error) {
	s := b.newSection(proveWholePart, "Prove, all of it", [][]string{{"git", "--version"}})
	s.intro = []string{"`holdfast prove`, once; wall and processor time are those of the whole tree."}
	var args []string
	if b.options.quick {
		args = []string{"--class", "fs", "--core"}
	}
	runs, err := b.measureProve(s, args, []string{holdfast})
	if err != nil {
		return nil, err
	}
	s.verdicts = []verdict{judge("prove: all of it, s", proveLimit, runs.wall(holdfast), "%.1f")}
	if of := runs[holdfast]; len(of) > 0 {
		s.tables = []captioned{{caption: "The matrix: " + s.only, text: "The rows that took longest: " + of[0].slowest(10) + ".", table: runs.table([]string{holdfast})}}
	}
	return s, nil
}

// measureProve runs the escape matrix against each target in order.
func (b *bench) measureProve(s *section, args, order []string) (_ matrixRuns, err error) {
	if b.cpu.parent == "" {
		b.cpu.parent = newCPUMeter().parent
	}
	prober, err := b.buildProber()
	if err != nil {
		return nil, err
	}
	worlds, err := b.worlds()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(worlds)) }()
	args = append([]string{"--prober", prober, "--dir", worlds}, args...)
	all := matrixRuns{}
	for _, target := range order {
		b.logf("%s: %s", s.only, target)
		r, err := b.runMatrix(target, args)
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if err != nil {
			s.fail("prove against %s: %v", target, err)
			continue
		}
		all[target] = append(all[target], r)
	}
	s.load[1], s.remarks = load(), proveRemarks
	return all, nil
}

// worlds makes a directory of the user's in the place of homes: Holdfast and
// bubblewrap replace the directory for temporary files, so rows would find none
// of the user's files there.
func (b *bench) worlds() (string, error) {
	home := "/home"
	if os.Geteuid() != 0 {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("finding the home directory: %w", err)
		}
	}
	dir, err := os.MkdirTemp(home, ".holdfast-bench-")
	if err != nil {
		return "", fmt.Errorf("making a directory to probe in: %w", err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), b.user.chownTree(dir)); err != nil {
		return "", errors.Join(fmt.Errorf("changing the owner of the directory to probe in to %s: %w", b.user.name, err), os.RemoveAll(dir))
	}
	return dir, nil
}

// buildProber builds the program that runs inside, as in a release.
func (b *bench) buildProber() (string, error) {
	path := filepath.Join(b.dir, "bin", "prober")
	build := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./internal/prove/inside/prober")
	build.Dir, build.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the prober: %w: %s", err, out)
	}
	return path, nil
}

// runMatrix runs prove once. Status 1 means that something escaped; the report shows
// that.
func (b *bench) runMatrix(target string, args []string) (r matrixRun, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, proveTime)
	defer cancel()
	report := filepath.Join(b.home(), "prove.json")
	cmd := exec.CommandContext(ctx, b.holdfast, append([]string{"prove", "--target", target, "--format", "json", "-o", report}, args...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = b.home(), b.env, b.user.attr()
	// It removes what it has made.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 20*time.Second
	stderr, err := os.Create(filepath.Join(b.dir, "scratch", "err"))
	if err != nil {
		return r, fmt.Errorf("making a file for errors: %w", err)
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	var in *group
	if b.cpu.parent != "" {
		if in, err = newGroup(b.cpu.parent); err != nil {
			return r, err
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(in.dir.Fd())
	}
	r.took, err = runTimed([]*exec.Cmd{cmd})
	r.took.cpu = r.took.rusage
	if in != nil {
		used, e := in.finish()
		if r.took.cpu = used; e != nil {
			return r, e
		}
	}
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		why, _ := os.ReadFile(stderr.Name())
		return r, fmt.Errorf("%w: %s", err, lastLines(why))
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return r, fmt.Errorf("reading the report: %w", err)
	}
	r.rows, err = parseMatrix(string(text))
	return r, errors.Join(err, os.Remove(report))
}
