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

func example() *report {
	return &report{
		cpu: cpuMeter{trust: map[string]bool{bare: true, bwrap: true, holdfast: true}, found: "Counted."},
		outcomes: []outcome{
			{name: start, what: "`true`", samples: map[string][]sample{bare: ms(1, 1), bwrap: ms(5, 5), holdfast: ms(4, 6)}},
			{name: "work", what: "some work", limit: 1.03, samples: map[string][]sample{bare: ms(100, 100), bwrap: ms(105, 105), holdfast: ms(120, 120)}},
			{name: "rg", what: "a search", limit: 1.25, absent: "rg is not installed"},
			{name: "broken", what: "a failure", limit: 1.25, err: errors.New("exit status 1:\nno such file")},
		},
		memories: []memory{
			{contestant: holdfast, what: "an empty directory", supervisor: []float64{9000}, pss: []float64{8}, private: []float64{8}, processes: 2},
			{contestant: holdfast, what: "the repository", supervisor: []float64{16000}, pss: []float64{9}, private: []float64{8}, processes: 2},
			{contestant: bwrap, what: "an empty directory", supervisor: []float64{99000}, pss: []float64{900}, private: []float64{800}, processes: 2},
		},
	}
}

func TestReport(t *testing.T) {
	notes["work: processor time, times bare"] = "it was found."
	peak := notes["peak memory of the supervisor, KiB"]
	delete(notes, "peak memory of the supervisor, KiB")
	defer func() {
		delete(notes, "work: processor time, times bare")
		notes["peak memory of the supervisor, KiB"] = peak
	}()
	r := example()
	got := regexp.MustCompile(` +`).ReplaceAllString(r.markdown(), " ") // how cells are padded is no matter here
	for _, tt := range []struct{ name, want string }{
		{"a goal that is met needs no reason", "| start of true: wall time, times bwrap | ≤ 1.00 | 1.00 | met"},
		{"runc stands as not measured", "| start of true: wall time, times runc | ≤ 0.20 | – | not measured here |"},
		{"a goal that is missed has the reason that was found", "- **work: processor time, times bare**: it was found."},
		{"one without says so", "- **peak memory of the supervisor, KiB**: the reason has not been looked for yet."},
		{"the worst workspace counts", "| peak memory of the supervisor, KiB | ≤ 15360 | 16000 | MISSED"},
		{"bubblewrap's memory is not judged", "| memory of an idle run beyond the command, KiB | ≤ 32 | 9 | met"},
		{"what is absent is named", "- rg was not measured: rg is not installed."},
		{"what failed is named, in one line", "- broken FAILED: exit status 1: no such file\n"},
		{"processor time is shown without the start too", "| 1.160 (1.160–1.160) |"},
	} {
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, got)
		}
	}
	if n := r.failures(); n != 1 {
		t.Errorf("counts %d failures, want 1", n)
	}
}

func TestReportWithoutProcessorTime(t *testing.T) {
	r := example()
	r.cpu.trust[holdfast] = false
	for _, v := range r.verdicts() {
		if strings.Contains(v.goal, "processor time") && v.status != notMeasured {
			t.Errorf("%s is %s though the count misses a part", v.goal, v.status)
		}
	}
	if !strings.Contains(r.markdown(), "Not measured: the count misses a part of the tree.") {
		t.Error("the report does not say that processor time is missing")
	}
}

func TestReportWithoutProcessorTimeOfOne(t *testing.T) {
	r := example()
	r.cpu.trust[bwrap] = false
	if got, want := strings.Join(strings.Fields(r.cpus()), " "), "| some work | 100 | – | 120 | 1.200 (1.200–1.200) | – |"; !strings.Contains(got, want) {
		t.Errorf("no %q in %s", want, got)
	}
}
