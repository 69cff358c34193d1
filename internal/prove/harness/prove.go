//go:build linux

package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// Options say what is to be proved, about which target, and how.
type Options struct {
	Target  probe.Target
	Select  Selection
	Workers int    // rows at a time; 0 for as many as the machine has room for
	Place   *Place // where worlds are made
	// Worker is the command line that runs Worker, for rows that need a network;
	// without one they are inconclusive.
	Worker []string
	World  World // the zero value is the default one
	// Machine is the command line of MachineCommand, for worlds that change the
	// machine.
	Machine []string
	Tool    string // version of this program
	Strict  bool   // inconclusive rows fail
	Again   string // the command line that plays against Target, to which --id is added; "" is one that names only the target

	// Progress is called with each result; may be nil.
	Progress func(done, total int, r probe.Result)
}

// Selection chooses rows; the zero value chooses all of them.
type Selection struct {
	Classes []string // names of classes, or the part before or after the dot
	IDs     []string // IDs, or patterns of path.Match
	Core    bool     // headline cases only
	Quick   bool     // without rows that are slow by design
}

// ErrSelection is wrapped by errors about a selection without rows.
var ErrSelection = errors.New("no such row")

// Rows returns the rows that s selects, in the order of the catalogue.
func (s Selection) Rows(all []probe.Row) ([]probe.Row, error) {
	for _, want := range slices.Concat(s.Classes, s.IDs) {
		if !slices.ContainsFunc(all, func(r probe.Row) bool { return ofClass(r, want) || ofID(r, want) }) {
			return nil, fmt.Errorf("%w: %q is neither a class nor an ID", ErrSelection, want)
		}
	}
	var out []probe.Row
	for _, r := range all {
		named := len(s.Classes)+len(s.IDs) == 0 ||
			slices.ContainsFunc(s.Classes, func(c string) bool { return ofClass(r, c) }) ||
			slices.ContainsFunc(s.IDs, func(id string) bool { return ofID(r, id) })
		if named && (!s.Core || r.Core) && (!s.Quick || !r.Timed) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the selection is empty", ErrSelection)
	}
	return out, nil
}

func ofClass(r probe.Row, want string) bool {
	area, name, _ := strings.Cut(r.Class, ".")
	return r.Class == want || area == want || name == want
}

func ofID(r probe.Row, want string) bool {
	ok, err := path.Match(want, r.ID)
	return ok && err == nil
}

func (s Selection) String() string {
	var words []string
	for _, c := range s.Classes {
		words = append(words, "--class "+c)
	}
	for _, id := range s.IDs {
		words = append(words, "--id "+id)
	}
	if s.Core {
		words = append(words, "--core")
	}
	if s.Quick {
		words = append(words, "--quick")
	}
	return strings.Join(words, " ")
}

// Known returns an error if no row has one of these IDs or patterns.
func Known(all []probe.Row, ids []string) error {
	for _, want := range ids {
		if !slices.ContainsFunc(all, func(r probe.Row) bool { return ofID(r, want) }) {
			return fmt.Errorf("%w: %q is not an ID", ErrSelection, want)
		}
	}
	return nil
}

// ErrNothingRan means that the target could not run anything at all, so that
// nothing was proved.
var ErrNothingRan = errors.New("the target runs nothing")

// ErrChanged means that the results are not of one program.
var ErrChanged = errors.New("the program was replaced during the test, so the results belong to neither version")

// Prove plays the rows of o against its target. The error is about what could not
// be started; the results of the rows are in the run.
func Prove(ctx context.Context, o Options) (report.Run, error) {
	rows, err := o.Select.Rows(probe.All())
	if err != nil {
		return report.Run{}, err
	}
	if o.World.Name == "" {
		o.World = Worlds()[0]
	}
	rows = slices.DeleteFunc(rows, func(r probe.Row) bool { return o.World.Except(r) != "" })
	if len(rows) == 0 {
		return report.Run{}, fmt.Errorf("world %s: %w", o.World.Name, ErrMeaningless)
	}
	identity, err := targets.Identify(ctx, o.Target)
	if err != nil {
		return report.Run{}, fmt.Errorf("target %s: %w", o.Target.Name(), err)
	}
	begun := time.Now()
	ready := probe.Runner{Prober: o.Place.Prober, Dir: o.Place.Dir}
	if err := targets.Ready(ctx, ready, o.Target); err != nil {
		if ctx.Err() != nil { // not the target's fault
			return report.Run{}, errors.Join(ctx.Err(), targets.Release(context.WithoutCancel(ctx), o.Target))
		}
		return report.Run{}, errors.Join(fmt.Errorf("%w: %w", ErrNothingRan, err), targets.Release(ctx, o.Target))
	}
	results, err := o.play(ctx, rows)
	if err = errors.Join(err, targets.Release(context.WithoutCancel(ctx), o.Target)); err != nil {
		return report.Run{}, err
	}
	if ctx.Err() == nil && !identity.Same(o.Target) {
		return report.Run{}, fmt.Errorf("target %s: %s: %w", o.Target.Name(), identity.Path, ErrChanged)
	}
	run := report.Run{
		Tool: "holdfast", Version: o.Tool, Started: begun, Took: report.Seconds(time.Since(begun)),
		World: o.World.Name, Strict: o.Strict, Selection: o.Select.String(), Host: thisHost(),
		Target: report.Target{Name: identity.Name, Version: identity.Version, Path: identity.Path, SHA256: identity.SHA256,
			Flags: identity.Flags, Policy: policyOf(ctx, o.Target, o.Place)},
	}
	again := cmp.Or(o.Again, "holdfast prove --target "+o.Target.Name())
	if o.World.Name != DefaultWorld {
		again += " --world " + o.World.Name
	}
	for _, res := range results {
		run.Rows = append(run.Rows, rowOf(res, o.Target, again))
	}
	return run, ctx.Err()
}

// play plays rows in the world of o.
func (o Options) play(ctx context.Context, rows []probe.Row) ([]probe.Result, error) {
	if o.World.made != "" {
		return o.playInMachine(ctx, rows)
	}
	return o.playHere(ctx, rows)
}

// workers returns one and a half times the number of processors, plus one: a row
// waits for a third of its time.
func (o Options) workers() int { return cmp.Or(o.Workers, runtime.NumCPU()*3/2+1) }

// playHere plays rows in this process, and those that need a network in processes that
// have one.
func (o Options) playHere(ctx context.Context, rows []probe.Row) (results []probe.Result, err error) {
	done := 0
	runner := o.World.runner(o.Place)
	runner.Workers, runner.Done = o.workers(), func(r probe.Result) {
		if r.Row.ID != probe.SmokeID && o.Progress != nil {
			done++
			o.Progress(done, len(rows), r)
		}
	}
	if len(o.Worker) > 0 && slices.ContainsFunc(rows, Needs) {
		pool := NewPool(o.Worker, o.Place.Dir, o.Place.Prober, o.workers())
		pool.World = o.World
		defer func() { err = errors.Join(err, pool.Close()) }()
		runner.Networked = pool.Play
	}
	all := runner.Run(ctx, o.Target, rows)
	if smoke := all[0]; smoke.Verdict != probe.Held && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %s", ErrNothingRan, smoke.Reason)
	}
	return all[1:], nil
}
