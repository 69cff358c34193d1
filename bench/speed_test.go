package main

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	tb := table{header: []string{"a", "größe"}}
	tb.add("x|y", "1")
	tb.add("only one cell")
	want := `| a             | größe |
| ------------- | ----- |
| x\|y          | 1     |
| only one cell |       |
`
	if got := tb.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name         string
		limit, found float64
		want         verdict
	}{
		{"below the limit is met", 1.03, 1.01, verdict{"g", "≤ 1.03", "1.01", met}},
		{"the limit itself is met", 1, 1, verdict{"g", "≤ 1.00", "1.00", met}},
		{"a little above is missed, however it is printed", 1, 1.001, verdict{"g", "≤ 1.00", "1.00", missed}},
		{"what was not measured is neither", 1, math.NaN(), verdict{"g", "≤ 1.00", "–", notMeasured}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := judge("g", tt.limit, tt.found, "%.2f"); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func example() *speed {
	return &speed{
		cpu: cpuMeter{trust: map[string]bool{bare: true, bwrap: true, unrecorded: true, holdfast: true}, found: "Counted."},
		outcomes: []outcome{
			{name: start, what: "`true`", goals: []goal{{holdfast, 1.5}, {unrecorded, 1.2}}, samples: map[string][]sample{bare: ms(1, 1), bwrap: ms(5, 5), unrecorded: ms(7, 7), holdfast: ms(4, 6)}},
			{name: "work", what: "some work", goals: []goal{{unrecorded, 1.05}}, samples: map[string][]sample{bare: ms(100, 100), bwrap: ms(105, 105), unrecorded: ms(120, 120), holdfast: ms(120, 120)}},
			{name: "rg", what: "a search", goals: []goal{{holdfast, 1.15}}, absent: "rg is not installed"},
			{name: "broken", what: "a failure", err: errors.New("exit status 1:\nno such file")},
		},
		memories: []memory{
			{contestant: holdfast, what: "an empty directory", rest: []float64{8000}, peak: []float64{9000}, pss: []float64{8}, private: []float64{8}, processes: 2},
			{contestant: holdfast, what: "the repository", rest: []float64{9000}, peak: []float64{16000}, pss: []float64{9}, private: []float64{8}, processes: 2},
			{contestant: bwrap, what: "an empty directory", peak: []float64{99000}, pss: []float64{900}, private: []float64{800}, processes: 2},
		},
	}
}

func TestSpeed(t *testing.T) {
	const found, none = "work, no record: wall time, times bwrap", "peak memory of the supervisor, KiB"
	peak := notes[none]
	notes[found] = "it was found."
	delete(notes, none)
	defer func() {
		delete(notes, found)
		notes[none] = peak
	}()
	s := &section{title: "Workloads", only: speedPart}
	example().conclude(s)
	got := regexp.MustCompile(` +`).ReplaceAllString(s.markdown(), " ") // cell padding does not matter
	for _, tt := range []struct{ name, want string }{
		{"a goal that is met needs no reason", "| start of true: wall time, times bwrap | ≤ 1.50 | 1.00 | met"},
		{"without record it is a goal of its own", "| start of true, no record: wall time, times bwrap | ≤ 1.20 | 1.40 | MISSED"},
		{"a goal that is missed has the reason that was found", "- **" + found + "**: it was found."},
		{"one without says so", "- **" + none + "**: the reason has not been looked for yet."},
		{"the worst workspace counts", "| peak memory of the supervisor, KiB | ≤ 15360 | 16000 | MISSED"},
		{"so it does at rest", "| memory of the supervisor at rest, KiB | ≤ 12288 | 9000 | met"},
		{"bubblewrap's memory is not judged", "| memory of an idle run beyond the command, KiB | ≤ 32 | 9 | met"},
		{"a goal whose program is absent is not measured", "| rg: wall time, times bwrap | ≤ 1.15 | – | not measured here"},
		{"what is absent is named", "- rg was not measured: rg is not installed."},
		{"what failed is named, in one line", "- FAILED: broken: exit status 1: no such file\n"},
		{"a ratio is that of the medians", "| `true` | 2 | 2.00 | 10.0 | 14.0 | 10.0 | 1.400 (1.400–1.400) | 1.000 (0.840–1.160) |"},
	} {
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, got)
		}
	}
	if n, _ := s.troubles(); n != 1 {
		t.Errorf("counts %d failures, want 1", n)
	}
}

func TestSpeedWithoutProcessorTime(t *testing.T) {
	r := example()
	r.cpu.trust[bwrap] = false
	if got := r.cpus(); !strings.Contains(got.text, "misses a part of the tree under bwrap") || len(got.table.rows) > 0 {
		t.Errorf("got %+v", got)
	}
}
