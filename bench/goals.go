package main

import (
	"fmt"
	"math"
)

// verdict is a goal and how far it was reached.
type verdict struct {
	goal   string // also the key of its note
	limit  string
	found  string
	status string // met, MISSED or not measured
}

const (
	met         = "met"
	missed      = "MISSED"
	notMeasured = "not measured here"
)

// judge compares a number with its limit; NaN was not measured.
func judge(goal string, limit, found float64, format string) verdict {
	v := verdict{goal: goal, limit: "≤ " + fmt.Sprintf(format, limit), found: "–", status: notMeasured}
	if math.IsNaN(found) {
		return v
	}
	v.found, v.status = fmt.Sprintf(format, found), missed
	if found <= limit {
		v.status = met
	}
	return v
}

// The goals that are no workload's own. Memory in KiB.
const (
	startLimit      = 1.0
	runcLimit       = 0.2
	insideLimit     = 32
	supervisorLimit = 15 * 1024
)

// verdicts judges every goal of the project in the order of the report.
func (r *report) verdicts() []verdict {
	var all []verdict
	for _, o := range r.outcomes {
		if o.name == start || o.name == atOnce {
			all = append(all, judge(o.name+": wall time, times bwrap", startLimit, o.wall(bwrap).median, "%.2f"))
		}
		if o.name == start {
			all = append(all, judge(o.name+": wall time, times runc", runcLimit, math.NaN(), "%.2f"))
		}
	}
	for _, o := range r.outcomes {
		if o.limit > 0 {
			found := o.cpu(bare).median
			if !r.cpu.trust[holdfast] {
				found = math.NaN()
			}
			all = append(all, judge(o.name+": processor time, times bare", o.limit, found, "%.3f"))
		}
	}
	if r.partial {
		return all
	}
	inside, supervisor := math.NaN(), math.NaN()
	for _, m := range r.memories {
		if m.contestant != holdfast {
			continue
		}
		inside = worse(inside, spreadOf(m.pss).median)
		supervisor = worse(supervisor, spreadOf(m.supervisor).median)
	}
	return append(all,
		judge("memory of an idle run beyond the command, KiB", insideLimit, inside, "%.0f"),
		judge("peak memory of the supervisor, KiB", supervisorLimit, supervisor, "%.0f"))
}

// worse is the larger of two numbers of which NaN is none.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}
