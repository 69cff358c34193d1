package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// runCopies runs copies of a command at the same time in a contestant's way, and
// returns their output and their cost. A status other than 0 is an error.
func (b *bench) runCopies(c contestant, dir string, command []string, copies int) (string, sample, error) {
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	out, err := os.Create(filepath.Join(b.dir, "scratch", "out"))
	if err != nil {
		return "", sample{}, fmt.Errorf("making a file for output: %w", err)
	}
	defer out.Close()
	stderr, err := os.Create(filepath.Join(b.dir, "scratch", "err"))
	if err != nil {
		return "", sample{}, fmt.Errorf("making a file for errors: %w", err)
	}
	defer stderr.Close()
	var in *group
	if b.cpu.parent != "" {
		if in, err = newGroup(b.cpu.parent); err != nil {
			return "", sample{}, err
		}
	}
	cmds, closeAll, err := b.commands(ctx, c, dir, command, copies)
	defer closeAll()
	if err != nil {
		return "", sample{}, errors.Join(err, in.discard())
	}
	for _, cmd := range cmds {
		// A file, not /dev/null: grep detects /dev/null, and then stops at the
		// first match.
		cmd.Stdout, cmd.Stderr = out, stderr
		if in != nil {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(in.dir.Fd())
		}
	}
	s, err := runTimed(cmds)
	if in != nil {
		used, e := in.finish()
		s.cpu = used
		err = errors.Join(err, e)
	} else {
		s.cpu = s.rusage
	}
	text, e := os.ReadFile(out.Name())
	if err != nil {
		why, _ := os.ReadFile(stderr.Name())
		err = fmt.Errorf("%s under %s: %w: %s", command[0], c.name, err, lastLines(why))
	}
	return string(text), s, errors.Join(err, e)
}

// discard removes a group in which nothing was started.
func (g *group) discard() error {
	if g == nil {
		return nil
	}
	return g.remove()
}

// finish waits until the group is empty and returns its processor time.
func (g *group) finish() (time.Duration, error) {
	err := g.drain()
	used, e := g.cpuTime()
	return used, errors.Join(err, e, g.remove())
}

// commands prepares copies of a command, so that they only need to be started.
// Each inherited file has its own offset.
func (b *bench) commands(ctx context.Context, c contestant, dir string, command []string, copies int) (_ []*exec.Cmd, closeAll func(), err error) {
	var open []*os.File
	closeAll = func() {
		for _, f := range open {
			f.Close() // read-only: nothing is lost
		}
	}
	program, args := c.program, append(append([]string{}, c.before...), command...)
	if program == "" {
		if program, err = b.lookup(command[0]); err != nil {
			return nil, closeAll, err
		}
		args = command[1:]
	}
	var cmds []*exec.Cmd
	for range copies {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, c.env, b.user.attr()
		if c.root {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		for _, name := range c.files {
			f, err := os.Open(name)
			if err != nil {
				return nil, closeAll, fmt.Errorf("opening the files that %s inherits: %w", c.name, err)
			}
			open = append(open, f)
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
		cmds = append(cmds, cmd)
	}
	return cmds, closeAll, nil
}

// runTimed starts the commands one right after the other and waits for all.
func runTimed(cmds []*exec.Cmd) (sample, error) {
	var err error
	var s sample
	started := cmds[:0:0]
	begin := time.Now()
	for _, cmd := range cmds {
		if e := cmd.Start(); e != nil {
			err = errors.Join(err, e)
			continue
		}
		started = append(started, cmd)
	}
	for _, cmd := range started {
		err = errors.Join(err, cmd.Wait())
	}
	s.wall = time.Since(begin)
	for _, cmd := range started {
		if p := cmd.ProcessState; p != nil {
			s.rusage += p.UserTime() + p.SystemTime()
		}
	}
	return s, err
}

// rounds runs a workload in every contestant's way in turn, once to warm up and
// to check that all do the same, then as often as the workload requires.
func (b *bench) rounds(w workload, all []contestant) (map[string][]sample, error) {
	samples := map[string][]sample{}
	printed := -1 // bytes, of the first run
	dir := b.workspace(w.dir)
	for i := range w.rounds + 1 {
		for _, c := range all {
			if w.reset != nil {
				if err := w.reset(dir); err != nil {
					return nil, fmt.Errorf("preparing a round: %w", err)
				}
			}
			out, s, err := b.runCopies(c, dir, w.command, max(1, w.copies))
			if err != nil {
				return nil, err
			}
			if printed < 0 {
				printed = len(out)
			}
			if len(out) != printed {
				return nil, fmt.Errorf("%s under %s printed %d bytes, and %d in earlier rounds", w.name, c.name, len(out), printed)
			}
			if w.check != nil {
				if err := w.check(dir); err != nil {
					return nil, fmt.Errorf("under %s: %w", c.name, err)
				}
			}
			if i > 0 {
				samples[c.name] = append(samples[c.name], s)
			}
		}
	}
	return samples, nil
}
