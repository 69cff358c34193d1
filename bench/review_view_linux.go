package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// reviewPart is the name for -only of the part about the view of mode review.
const reviewPart = "review"

// reviewLimit is the limit for work on a view, as a multiple of direct work.
const reviewLimit = 1.10

// reviewFirst has no goal: it is mostly a start.
const reviewFirst = "git status once"

// The ways to see the workspace.
const (
	directly  = "direct"
	asOverlay = "overlay"
	asCopy    = "copy"
)

// measureReview measures what mode review costs.
func (b *bench) measureReview() (*section, error) {
	s := b.newSection(reviewPart, "Review", [][]string{{"git", "--version"}, {"go", "version"}, {"node", "--version"}, {"npm", "--version"}})
	if b.cpu.parent == "" {
		b.cpu.parent = newCPUMeter().parent
	}
	s.intro = []string{
		"Processor time, user and system, of the whole tree with the supervisor, each way in turn within a round. A ratio is that of the medians; the start and the end of a run, which are what `true` takes in the same way in the same directory, are taken off.",
		"`git status` and `npm ci` write to the workspace: what is kept of that at the end of a run is counted. A start in mode review lists the files of the workspace, and with a copy makes that.",
	}
	policy, err := b.copyPolicy()
	if err != nil {
		return nil, err
	}
	work := table{header: []string{"workload", "direct, ms", "overlay", "copy"}}
	starts := table{header: []string{"directory", "direct, ms", "overlay, ms", "copy, ms"}}
	for _, w := range b.reviewWorkloads() {
		b.logf("review: %s", w.name)
		whole, start, err := b.reviewOf(w, policy)
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if err != nil {
			s.fail("%s: %v", w.name, err)
			continue
		}
		median := func(of map[string][]float64, way string) float64 { return spreadOf(of[way]).median }
		net := func(way string) float64 { return median(whole, way) - median(start, way) }
		ratio := func(way string) float64 { return net(way) / net(directly) }
		work.add(w.what, fmt.Sprintf("%.0f", net(directly)), fmt.Sprintf("%.2f", ratio(asOverlay)), fmt.Sprintf("%.2f", ratio(asCopy)))
		starts.add(w.dir, fmt.Sprintf("%.0f", median(start, directly)), fmt.Sprintf("%.0f", median(start, asOverlay)), fmt.Sprintf("%.0f", median(start, asCopy)))
		if w.name != reviewFirst {
			s.verdicts = append(s.verdicts, judge("review: "+w.name+", overlay, times direct", reviewLimit, ratio(asOverlay), "%.2f"))
		}
	}
	s.tables = append(s.tables, captioned{caption: "Work on a view", table: work}, captioned{caption: "Start and end on a view", table: starts})
	s.load[1] = load()
	return s, nil
}

// reviewWorkloads use the fixtures of the other workloads. Nothing that they do
// in a view is visible outside, so only their output can be checked.
func (b *bench) reviewWorkloads() []workload {
	var out []workload
	for _, w := range b.workloads() {
		switch w.name {
		case "git status":
			once := w
			once.name, once.what = reviewFirst, "`git status` once: every file is looked up for the first time"
			w.what, w.command = "`git status` 20 times, 20,000 files", repeatCommand(20, "git status --porcelain")
			out = append(out, w, once)
		case "go build":
			w.what, w.command = "`go build` 3 times, warm cache, linked anew", repeatCommand(3, "rm -f app; go build -o app .")
			out = append(out, w)
		case "npm ci":
			out = append(out, w)
		}
	}
	return out
}

// copyPolicy is a policy that requests a copy.
func (b *bench) copyPolicy() (string, error) {
	path := filepath.Join(b.home(), "copy.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nworkspace: {mode: review, view: copy}\n"), 0o644); err != nil {
		return "", fmt.Errorf("writing a policy: %w", err)
	}
	return path, nil
}

// reviewOf measures one workload in every way, and a start.
func (b *bench) reviewOf(w workload, policy string) (whole, start map[string][]float64, err error) {
	for _, program := range w.needs {
		if _, err := b.lookup(program); err != nil {
			return nil, nil, fmt.Errorf("%s is not installed", program)
		}
	}
	if err := b.fixture(w); err != nil {
		return nil, nil, err
	}
	dir := b.workspace(w.dir)
	ways := []contestant{
		{name: directly, program: b.holdfast, before: []string{"run", "--"}, env: b.env},
		{name: asOverlay, program: b.holdfast, before: []string{"run", "--review", "--"}, env: b.env},
		{name: asCopy, program: b.holdfast, before: []string{"run", "--policy", policy, "--"}, env: b.env},
	}
	whole, start = map[string][]float64{}, map[string][]float64{}
	for round := range max(2, b.options.rounds/3) + 1 {
		for _, way := range ways {
			if err := b.reviewOnce(w, way, dir, round > 0, whole, start); err != nil {
				return nil, nil, err
			}
		}
	}
	if w.reset != nil {
		err = w.reset(dir)
	}
	return whole, start, errors.Join(err, b.forgetRecords())
}

func (b *bench) reviewOnce(w workload, way contestant, dir string, keep bool, whole, start map[string][]float64) error {
	if w.reset != nil {
		if err := w.reset(dir); err != nil {
			return fmt.Errorf("preparing a round: %w", err)
		}
	}
	_, all, err := b.runCopies(way, dir, w.command, 1)
	if err != nil {
		return err
	}
	if w.check != nil && way.name == directly {
		if err := w.check(dir); err != nil {
			return err
		}
	}
	if w.reset != nil {
		if err := w.reset(dir); err != nil {
			return fmt.Errorf("preparing a start: %w", err)
		}
	}
	_, launch, err := b.runCopies(way, dir, []string{"true"}, 1)
	if err != nil {
		return err
	}
	if keep {
		whole[way.name] = append(whole[way.name], float64(all.cpu)/float64(time.Millisecond))
		start[way.name] = append(start[way.name], float64(launch.cpu)/float64(time.Millisecond))
	}
	if err := os.RemoveAll(filepath.Join(b.state(), "reviews")); err != nil {
		return fmt.Errorf("removing reviews: %w", err)
	}
	return nil
}
