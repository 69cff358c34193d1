package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The goals of the escape matrix against Holdfast, in seconds: for all of it, and
// for the headline cases without the rows that take long by design.
const (
	proveLimit     = 90.0
	proveCoreLimit = 20.0
)

// matrixRun is one run of `holdfast prove`.
type matrixRun struct {
	took sample
	rows []matrixRow
}

// matrixRow is the part of a report's row that is used here.
type matrixRow struct {
	ID      string
	Verdict string
	Missing bool
	Took    float64 // seconds
}

// parseMatrix reads a report in JSON.
func parseMatrix(text string) ([]matrixRow, error) {
	var report struct{ Rows []matrixRow }
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return nil, fmt.Errorf("reading what prove printed: %w", err)
	}
	if len(report.Rows) == 0 {
		return nil, errors.New("prove played no row")
	}
	return report.Rows, nil
}

// playedTimes are the durations, in milliseconds, of the rows for which the host and
// the target have what they need.
func (r matrixRun) playedTimes() (ms []float64) {
	for _, row := range r.rows {
		if !row.Missing {
			ms = append(ms, 1000*row.Took)
		}
	}
	return ms
}

// verdicts counts them, as text.
func (r matrixRun) verdicts() string {
	count := map[string]int{}
	for _, row := range r.rows {
		count[row.Verdict]++
	}
	var words []string
	for _, v := range []string{"held", "residual", "unseen", "ESCAPED", "inconclusive"} {
		if count[v] > 0 {
			words = append(words, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	return strings.Join(words, ", ")
}

// slowest names the rows that took longest.
func (r matrixRun) slowest(n int) string {
	rows := slices.Clone(r.rows)
	slices.SortStableFunc(rows, func(a, b matrixRow) int { return -cmp.Compare(a.Took, b.Took) })
	var words []string
	for _, row := range rows[:min(n, len(rows))] {
		words = append(words, fmt.Sprintf("%s %.1f s", row.ID, row.Took))
	}
	return strings.Join(words, ", ")
}

// matrixRuns are the runs of one selection by target.
type matrixRuns map[string][]matrixRun

// wall is the median of the wall time, in seconds; NaN if there is no run.
func (m matrixRuns) wall(target string) float64 {
	var all []sample
	for _, r := range m[target] {
		all = append(all, r.took)
	}
	return spreadOf(walls(all)).median / 1000
}

// row is the spread of a row's duration, in milliseconds, over all runs.
func (m matrixRuns) row(target string) spread {
	var ms []float64
	for _, r := range m[target] {
		ms = append(ms, r.playedTimes()...)
	}
	return spreadOf(ms)
}

// table shows the runs of one selection.
func (m matrixRuns) table(order []string) table {
	t := table{header: []string{"target", "rows", "wall s", "processor s", "processor ms a row", "a row ms: median (10th–90th)", "times the wall of none", "verdicts"}}
	for _, target := range order {
		runs := m[target]
		if len(runs) == 0 {
			continue
		}
		var all []sample
		for _, r := range runs {
			all = append(all, r.took)
		}
		last, cpu := runs[len(runs)-1], spreadOf(cpus(all)).median
		of := m.row(target)
		t.add(target, fmt.Sprint(len(last.rows)), fmt.Sprintf("%.1f", m.wall(target)), fmt.Sprintf("%.1f", cpu/1000), number(cpu/float64(len(last.rows))),
			fmt.Sprintf("%s (%s–%s)", number(of.median), number(of.p10), number(of.p90)), ratioText(m.wall(target)/m.wall(proveNone)), last.verdicts())
	}
	return t
}

func ratioText(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// proveNone is the target without any sandbox.
const proveNone = "none"

// proveRemarks are always printed.
var proveRemarks = []string{
	"A row is a world of its own (a workspace, a home, files and listeners), one or more runs of the target in it, and a look at all of it from outside; its time is all of that while other rows are played beside it, one more at a time than there are processors. Rows for which the host or the target lacks something are not in the median.",
	"The rows that take their time by intention (races and floods) are left out by `--quick`.",
	"Against none nothing is started but the probe itself, and most rows end at their first success: what Holdfast takes above that is starts of Holdfast with their record, and reading the record.",
}
