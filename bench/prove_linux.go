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

// provePart is the name of the part about the escape matrix for -only.
const provePart = "prove"

// proveTime bounds one run of the matrix, on a machine that has much else to do.
const proveTime = 4 * time.Minute

// proving measures the escape matrix.
func (b *bench) proving() (s *section, err error) {
	s = b.newSection(provePart, "Prove", [][]string{{"git", "--version"}, {"bwrap", "--version"}})
	if b.cpu.parent == "" {
		b.cpu.parent = newCPUMeter().parent
	}
	s.intro = []string{"`holdfast prove --quick`, and the same with `--core`, against each target in turn within each round; wall and processor time are those of the whole tree, medians of the rounds."}
	prober, err := b.buildProber()
	if err != nil {
		return nil, err
	}
	worlds, err := b.worlds()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(worlds)) }()
	order := []string{proveNone, holdfast}
	if b.bwrap != "" {
		order = []string{proveNone, bwrap, holdfast}
	}
	common := []string{"--prober", prober, "--dir", worlds, "--quick"}
	rounds, what := 3, []string{"--core"}
	if b.options.quick {
		rounds, what = 1, []string{"--core", "--class", "fs"}
	}
	core := b.matrices(s, rounds, order, slices.Concat(common, what))
	whole := matrixRuns{}
	if !b.options.quick {
		whole = b.matrices(s, 1, order, common)
	}
	if b.ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	s.verdicts = proveVerdicts(whole, core)
	s.tables = []captioned{{caption: "The headline cases", table: core.table(order)}}
	if runs := whole[holdfast]; len(runs) > 0 {
		s.tables = append(s.tables, captioned{caption: "The whole matrix", text: "The rows that took longest against Holdfast: " + runs[0].slowest(10) + ".", table: whole.table(order)})
	}
	s.load[1], s.remarks = load(), proveRemarks
	return s, nil
}

// worlds makes a directory of the user's where homes are: below the one for
// temporary files, which Holdfast and bubblewrap replace, what a row finds there
// would be no file of the user.
func (b *bench) worlds() (string, error) {
	home := "/home"
	if os.Geteuid() != 0 {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("finding the home: %w", err)
		}
	}
	dir, err := os.MkdirTemp(home, ".holdfast-bench-")
	if err != nil {
		return "", fmt.Errorf("making a directory to probe in: %w", err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), b.user.own(dir)); err != nil {
		return "", errors.Join(fmt.Errorf("giving the directory to probe in to %s: %w", b.user.name, err), os.RemoveAll(dir))
	}
	return dir, nil
}

// buildProber builds the program that runs inside, as the released program
// carries it.
func (b *bench) buildProber() (string, error) {
	path := filepath.Join(b.dir, "bin", "prober")
	build := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./internal/prove/inside/prober")
	build.Dir, build.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the prober: %w: %s", err, out)
	}
	return path, nil
}

// matrices runs prove against each target in turn.
func (b *bench) matrices(s *section, rounds int, order, args []string) matrixRuns {
	all := matrixRuns{}
	for range rounds {
		for _, target := range order {
			if b.ctx.Err() != nil {
				return all
			}
			b.say("prove: %s", target)
			r, err := b.matrix(target, args)
			if err != nil {
				s.fail("prove against %s: %v", target, err)
				continue
			}
			all[target] = append(all[target], r)
		}
	}
	return all
}

// matrix runs prove once. Status 1 says that something escaped, which is for the
// report to tell.
func (b *bench) matrix(target string, args []string) (r matrixRun, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, proveTime)
	defer cancel()
	report := filepath.Join(b.home(), "prove.json")
	cmd := exec.CommandContext(ctx, b.holdfast, append([]string{"prove", "--target", target, "--format", "json", "-o", report}, args...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = b.home(), b.env, b.user.attr()
	// It removes what it has made.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 20*time.Second
	said, err := os.Create(filepath.Join(b.dir, "scratch", "err"))
	if err != nil {
		return r, fmt.Errorf("making a file for errors: %w", err)
	}
	defer said.Close()
	cmd.Stderr = said
	var in *group
	if b.cpu.parent != "" {
		if in, err = newGroup(b.cpu.parent); err != nil {
			return r, err
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(in.dir.Fd())
	}
	r.took, err = timed([]*exec.Cmd{cmd})
	r.took.cpu = r.took.rusage
	if in != nil {
		used, e := in.finish()
		if r.took.cpu = used; e != nil {
			return r, e
		}
	}
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		why, _ := os.ReadFile(said.Name())
		return r, fmt.Errorf("%w: %s", err, lastLines(why))
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return r, fmt.Errorf("reading the report: %w", err)
	}
	r.rows, err = parseMatrix(string(text))
	return r, errors.Join(err, os.Remove(report))
}
