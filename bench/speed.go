package main

import (
	"fmt"
	"math"
	"strings"
)

// speedPart is the name for -only of the part about the workloads.
const speedPart = "speed"

// The goals for memory, in KiB.
const (
	insideLimit = 32
	restLimit   = 12 * 1024
	peakLimit   = 15 * 1024
)

// speed are the results about the workloads.
type speed struct {
	cpu      cpuMeter
	outcomes []outcome
	memories []memory
}

// conclude writes it into a part of the report.
func (r *speed) conclude(s *section) {
	for _, o := range r.outcomes {
		if o.absent != "" {
			s.remarks = append(s.remarks, o.name+" was not measured: "+o.absent+".")
		}
		if o.err != nil {
			s.fail("%s: %v", o.name, o.err)
		}
		s.verdicts = append(s.verdicts, o.verdicts()...)
	}
	s.tables = append(s.tables,
		captioned{caption: "Wall time", table: r.table(walls, outcome.wall)},
		r.cpus())
	if len(r.memories) > 0 {
		s.verdicts = append(s.verdicts, r.memoryVerdicts()...)
		s.tables = append(s.tables, captioned{caption: "Memory", table: r.memory(),
			text: "Of an idle run of `sleep`. The peak is over the whole run, its start and its end."})
	}
	s.intro = append(s.intro, "Contestants in turn within each round. Values are medians, ratios are those of the medians, in brackets the 10th and 90th percentile of the ratios of one round each.", r.cpu.found)
	s.remarks = append(s.remarks, remarks...)
}

// memoryVerdicts judges the worst workspace.
func (r *speed) memoryVerdicts() []verdict {
	inside, rest, peak := math.NaN(), math.NaN(), math.NaN()
	for _, m := range r.memories {
		if m.contestant != holdfast {
			continue
		}
		inside = larger(inside, spreadOf(m.pss).median)
		rest = larger(rest, spreadOf(m.rest).median)
		peak = larger(peak, spreadOf(m.peak).median)
	}
	return []verdict{
		judge("memory of an idle run beyond the command, KiB", insideLimit, inside, "%.0f"),
		judge("memory of the supervisor at rest, KiB", restLimit, rest, "%.0f"),
		judge("peak memory of the supervisor, KiB", peakLimit, peak, "%.0f"),
	}
}

// larger is the larger of two numbers; NaN is ignored.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// table shows the workloads by one measure.
func (r *speed) table(values func([]sample) []float64, times func(o outcome, way, other string) spread) table {
	t := table{header: []string{"workload", "rounds", "bare ms", "bwrap ms", "no record ms", "holdfast ms", "no record × bwrap", "holdfast × bwrap", "holdfast × bare"}}
	for _, o := range r.outcomes {
		if !o.measured() {
			continue
		}
		of := func(way string) string { return number(spreadOf(values(o.samples[way])).median) }
		t.add(o.what, fmt.Sprint(len(o.samples[holdfast])), of(bare), of(bwrap), of(unrecorded), of(holdfast),
			times(o, unrecorded, bwrap).String(), times(o, holdfast, bwrap).String(), times(o, holdfast, bare).String())
	}
	return t
}

// cpus is the table of processor time, for contestants where the count can be
// trusted.
func (r *speed) cpus() captioned {
	c := captioned{caption: "Processor time of the whole tree"}
	var missing []string
	for _, way := range []string{bwrap, unrecorded, holdfast} {
		if trusted, counted := r.cpu.trust[way]; counted && !trusted {
			missing = append(missing, way)
		}
	}
	if len(missing) > 0 {
		c.text = "Not measured: the count misses a part of the tree under " + strings.Join(missing, ", ") + ". Run this as root, or where control groups may be made."
		return c
	}
	c.table = r.table(cpus, outcome.cpu)
	return c
}

func (r *speed) memory() table {
	t := table{header: []string{"", "workspace", "first process, at rest KiB", "its peak KiB", "processes around the command", "their PSS, KiB", "their private, KiB"}}
	for _, m := range r.memories {
		pss, private := kib(m.pss), kib(m.private)
		if m.unreadable != nil {
			pss, private = "not readable for this user", "–"
		}
		t.add(m.contestant, m.what, kib(m.rest), kib(m.peak), fmt.Sprint(m.processes), pss, private)
	}
	return t
}
