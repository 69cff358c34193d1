package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// all measures everything that was asked for.
func (b *bench) all() (*report, error) {
	work := b.workloads()
	if b.options.only != "" {
		var names []string
		for _, w := range work {
			names = append(names, w.name)
		}
		work = slices.DeleteFunc(work, func(w workload) bool { return w.name != b.options.only })
		if len(work) == 0 {
			return nil, fmt.Errorf("no workload is named %q, there are: %s", b.options.only, strings.Join(append(names, egressPart, recordPart, logPart, detectionPart, provePart, agentsPart, reviewPart, reviewDiffPart, gatePart), ", "))
		}
	}
	rep := &report{quick: b.options.quick, partial: b.options.only != "", date: time.Now().UTC(), machine: machine(), versions: b.versions(), user: b.userKind(), runc: b.runc()}
	rep.loadBefore = load()
	if err := b.calibrate(); err != nil {
		return nil, err
	}
	rep.cpu = b.cpu
	for _, w := range work {
		b.say("%s", w.name)
		o := b.one(w)
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		rep.outcomes = append(rep.outcomes, o)
	}
	if b.options.only == "" {
		b.say("memory")
		if err := b.memories(rep); err != nil {
			return nil, err
		}
		var err error
		if rep.egress, err = b.connections(); err != nil {
			return nil, err
		}
		for _, measure := range []func() (*section, error){b.recording, b.logging, b.detection, b.proving, b.agents, b.reviewing, b.reviewDiff, b.gates} {
			s, err := measure()
			if err != nil {
				return nil, err
			}
			rep.sections = append(rep.sections, s)
		}
	}
	rep.loadAfter = load()
	return rep, nil
}

// say tells what is going on, on the error output: the report goes to the
// other one.
func (b *bench) say(format string, arg ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arg...)
}

// fixture makes a workspace and what lies in it, once.
func (b *bench) fixture(w workload) error {
	dir := b.workspace(w.dir)
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("making a workspace: %w", err)
	}
	if err := b.user.own(dir); err != nil {
		return err
	}
	if err := w.prepare(b, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir)) // half of a fixture is none
	}
	return nil
}

// one measures a workload. What goes wrong stands in the outcome, and the
// others are measured all the same.
func (b *bench) one(w workload) outcome {
	o := outcome{name: w.name, what: w.what, limit: w.limit}
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
	o.samples, o.err = b.rounds(w, all, b.options.rounds*w.times)
	if o.err == nil && w.reset != nil {
		o.err = w.reset(dir)
	}
	return o
}

// memories looks at idle runs in an empty workspace and, where the repository
// was made, in that.
func (b *bench) memories(rep *report) error {
	for _, at := range []struct{ dir, what string }{{"empty", "an empty directory"}, {"repo", "the repository"}} {
		dir := b.workspace(at.dir)
		if _, err := os.Stat(dir); err != nil {
			continue // the failure to make it stands in the outcome
		}
		all, err := b.contestants(dir)
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.name == bare || c.name == bwrap && at.dir != "empty" {
				continue
			}
			m, err := b.idle(c, dir, at.what, b.options.rounds)
			if err != nil {
				return err
			}
			rep.memories = append(rep.memories, m)
		}
	}
	return nil
}

// burn is a known load: two loops of a shell, one of which nobody inside waits
// for before it has ended.
const burn = "f() { i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; }; f & f; wait"

// calibrate finds out whether the processor time of a whole tree arrives where
// we read it, by a load that costs the same everywhere.
func (b *bench) calibrate() error {
	b.say("calibrating the count of processor time")
	w := workload{name: "calibration", dir: "empty", prepare: noFixture}
	if err := b.fixture(w); err != nil {
		return err
	}
	all, err := b.contestants(b.workspace(w.dir))
	if err != nil {
		return err
	}
	b.cpu = newCPUMeter()
	w.command = []string{"sh", "-c", burn}
	samples, err := b.rounds(w, all, 5)
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
