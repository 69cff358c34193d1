package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// speed measures the workloads, or only the requested one, and the memory of idle
// runs.
func (b *bench) speed() (*section, error) {
	s := b.newSection(speedPart, "Workloads", [][]string{{"bwrap", "--version"}, {"git", "--version"}, {"go", "version"}, {"node", "--version"}, {"npm", "--version"}, {"python3", "--version"}, {"tar", "--version"}, {"grep", "--version"}, {"rg", "--version"}})
	if err := b.opensFUSE(); err != nil {
		return nil, err
	}
	if err := b.calibrate(); err != nil {
		return nil, err
	}
	r := &speed{cpu: b.cpu}
	only := ""
	for _, w := range b.workloads() {
		if w.name == b.options.only {
			only = w.name
		}
	}
	for _, w := range b.workloads() {
		if only != "" && w.name != only {
			continue
		}
		b.logf("%s: %s", s.only, w.name)
		r.outcomes = append(r.outcomes, b.measureWorkload(w))
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
	}
	if only == "" {
		b.logf("%s: memory", s.only)
		if err := b.measureMemory(r); err != nil {
			return nil, err
		}
	}
	r.conclude(s)
	s.load[1] = load()
	return s, b.forgetRecords()
}

// logf reports progress on standard error: standard output is for the report.
func (b *bench) logf(format string, arg ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arg...)
}

// fixture makes a workspace and its content, once.
func (b *bench) fixture(w workload) error {
	dir := b.workspace(w.dir)
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("making a workspace: %w", err)
	}
	if err := b.user.chownTree(dir); err != nil {
		return err
	}
	if err := w.prepare(b, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir)) // a partial fixture is useless
	}
	return nil
}

// measureWorkload measures a workload. Errors go into the outcome, and the others are
// measured nevertheless.
func (b *bench) measureWorkload(w workload) outcome {
	o := outcome{name: w.name, what: w.what, goals: w.goals}
	for _, program := range w.needs {
		if _, err := b.lookup(program); err != nil {
			o.absent = program + " is not installed"
			return o
		}
	}
	dir := b.workspace(w.dir)
	if o.err = b.fixture(w); o.err != nil {
		return o
	}
	all, err := b.contestants(dir)
	if err != nil {
		o.err = err
		return o
	}
	o.samples, o.err = b.rounds(w, all)
	if o.err == nil && w.reset != nil {
		o.err = w.reset(dir)
	}
	return o
}

// measureMemory measures idle runs in an empty workspace and, if the repository was
// made, in that.
func (b *bench) measureMemory(r *speed) error {
	for _, at := range []struct{ dir, what string }{{"empty", "an empty directory"}, {"repo", "the repository"}} {
		dir := b.workspace(at.dir)
		if _, err := os.Stat(dir); err != nil {
			continue // the outcome has the error
		}
		all, err := b.contestants(dir)
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.name == bare || c.name == unrecorded || c.name == bwrap && at.dir != "empty" {
				continue
			}
			m, err := b.measureIdle(c, dir, at.what, b.options.rounds)
			if err != nil {
				return err
			}
			r.memories = append(r.memories, m)
		}
	}
	return nil
}

// knownLoad is a known load: two shell loops, one of which is not waited for before it
// has ended.
const knownLoad = "f() { i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; }; f & f; wait"

// calibrate checks that the processor time of a whole tree is counted, with a
// load that costs the same everywhere.
func (b *bench) calibrate() error {
	b.logf("calibrating the count of processor time")
	w := workload{name: "calibration", dir: "empty", prepare: noFixture, rounds: 5}
	if err := b.fixture(w); err != nil {
		return err
	}
	all, err := b.contestants(b.workspace(w.dir))
	if err != nil {
		return err
	}
	b.cpu = newCPUMeter()
	w.command = []string{"sh", "-c", knownLoad}
	samples, err := b.rounds(w, all)
	if err != nil {
		return err
	}
	b.cpu.trust = map[string]bool{bare: true}
	how := "wait4, for no control group could be made"
	if b.cpu.parent != "" {
		how = "a control group for each run"
	}
	b.cpu.found = "Processor time comes from " + how + ". For a load that costs the same everywhere it finds"
	for _, c := range all[1:] {
		counted := spreadOf(ratios(cpus(samples[c.name]), cpus(samples[bare]))).median
		waited := spreadOf(ratios(rusages(samples[c.name]), rusages(samples[bare]))).median
		b.cpu.found += fmt.Sprintf(" under %s %.0f %% of what it finds bare (wait4 alone %.0f %%),", c.name, 100*counted, 100*waited)
		b.cpu.trust[c.name] = counted > 0.95
	}
	b.cpu.found = strings.TrimSuffix(b.cpu.found, ",") + "."
	return nil
}
