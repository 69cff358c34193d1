package main

import (
	"math"
	"slices"
	"time"
)

// sample is the cost of one run.
type sample struct {
	wall   time.Duration // from the start of the first process to the end of the last one waited for
	cpu    time.Duration // user and system, of the whole tree
	rusage time.Duration // the part that wait4 reports
}

// spread is the median of some values with their range. All are NaN if there are
// no values.
type spread struct {
	p10, median, p90 float64
}

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{quantile(sorted, 0.1), quantile(sorted, 0.5), quantile(sorted, 0.9)}
}

// quantile interpolates between the two neighbours of q in ascending values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// ratios divides round by round: a disturbance that lasts longer than a round
// affects both and cancels out. Rounds whose divisor is 0, and rounds that only
// one side has, are left out.
func ratios(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// ratioOf is the ratio of the medians, with the 10th and 90th percentile of the
// ratios of one round each.
func ratioOf(a, b []float64) spread {
	s := spreadOf(ratios(a, b))
	s.median = spreadOf(a).median / spreadOf(b).median
	return s
}

// walls and cpus are in milliseconds.
func walls(all []sample) []float64 {
	return column(all, func(s sample) time.Duration { return s.wall })
}

func cpus(all []sample) []float64 {
	return column(all, func(s sample) time.Duration { return s.cpu })
}

func rusages(all []sample) []float64 {
	return column(all, func(s sample) time.Duration { return s.rusage })
}

func column(all []sample, of func(sample) time.Duration) []float64 {
	out := make([]float64, len(all))
	for i, s := range all {
		out[i] = float64(of(s)) / float64(time.Millisecond)
	}
	return out
}
