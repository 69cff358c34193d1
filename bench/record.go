package main

import (
	"fmt"
	"math"
)

// The names of the additional ways in which the cost of the record is measured.
const (
	standard = "standard"
	full     = "full"
	fuseless = "standard without /dev/fuse"
	traced   = "strace"
)

// recordGoal is the limit of the record's cost, as a multiple of the same run
// without it; 0 for no goal.
type recordGoal struct{ standard, full, fuseless float64 }

// cost is the cost of one workload in every way, in ms of processor time. Round i
// of one way belongs to round i of the others; strace has fewer rounds.
type cost struct {
	name, what string
	goal       recordGoal
	whole      map[string][]float64 // including the start
	start      map[string][]float64 // of `true` in the same directory
	wall       map[string][]float64 // the same as wall time
}

func newCost(name string) *cost {
	return &cost{name: name, whole: map[string][]float64{}, start: map[string][]float64{}, wall: map[string][]float64{}}
}

// withoutStart is the cost of a workload without the start of its way. The median of
// the starts is subtracted, because single ones vary much.
func (c *cost) withoutStart(way string) []float64 {
	launch := spreadOf(c.start[way]).median
	var out []float64
	for _, v := range c.whole[way] {
		out = append(out, v-launch)
	}
	return out
}

// ratioTo is the ratio of one way's cost to another's, without the starts.
func (c *cost) ratioTo(way, other string) spread {
	return ratioOf(c.withoutStart(way), c.withoutStart(other))
}

// verdicts judges one workload.
func (c *cost) verdicts() []verdict {
	var all []verdict
	for _, g := range []struct {
		way   string
		limit float64
	}{{standard, c.goal.standard}, {full, c.goal.full}, {fuseless, c.goal.fuseless}} {
		if g.limit > 0 {
			all = append(all, judge(fmt.Sprintf("record %s, %s: processor time, times no record", g.way, c.name), g.limit, c.ratioTo(g.way, unrecorded).median, "%.2f"))
		}
	}
	return all
}

// recordTable shows all of it.
func recordTable(all []*cost) table {
	t := table{header: []string{"workload", "rounds", "bare ms", "no record ms", "standard ms", "full ms", "standard without /dev/fuse ms", "strace ms", "standard × no record", "full × no record", "without /dev/fuse × no record", "strace × bare"}}
	for _, c := range all {
		of := func(way string) string { return number(spreadOf(c.withoutStart(way)).median) }
		ratio := func(way, other string) string {
			if s := c.ratioTo(way, other); !math.IsNaN(s.median) {
				return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.p10, s.p90)
			}
			return "–"
		}
		t.add(c.what, fmt.Sprint(len(c.whole[full])), of(bare), of(unrecorded), of(standard), of(full), of(fuseless), of(traced),
			ratio(standard, unrecorded), ratio(full, unrecorded), ratio(fuseless, unrecorded), ratio(traced, bare))
	}
	return t
}

// startTable shows what the record costs at the start and the end of a run, in
// processor time and wall time.
func startTable(all []*cost) table {
	t := table{header: []string{"`true` beside", "no record ms", "standard ms", "full ms", "no record, wall ms", "standard, wall ms", "standard without /dev/fuse, wall ms"}}
	for _, c := range all {
		of := func(what map[string][]float64, way string) string { return number(spreadOf(what[way]).median) }
		t.add(c.name, of(c.start, unrecorded), of(c.start, standard), of(c.start, full), of(c.wall, unrecorded), of(c.wall, standard), of(c.wall, fuseless))
	}
	return t
}
