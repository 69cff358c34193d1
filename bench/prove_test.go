package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseMatrix(t *testing.T) {
	for _, bad := range []string{"", "{", `{"rows":[]}`} {
		if rows, err := parseMatrix(bad); err == nil {
			t.Errorf("%q is read as %v", bad, rows)
		}
	}
	rows, err := parseMatrix(`{"rows":[{"id":"A","verdict":"held","took":0.04},{"id":"B","verdict":"inconclusive","missing":true,"took":0},{"id":"C","verdict":"ESCAPED","took":0.08}]}`)
	if err != nil {
		t.Fatal(err)
	}
	run := matrixRun{took: sample{wall: 2 * time.Second, cpu: 3 * time.Second}, rows: rows}
	core := matrixRuns{holdfast: {run}, proveNone: {{took: sample{wall: time.Second}, rows: rows}}}
	if got := core.row(holdfast).median; math.Abs(got-60) > 1e-9 {
		t.Errorf("the median of rows is %v, want 60: a row that lacks something is none", got)
	}
	if got := run.verdicts(); got != "1 held, 1 ESCAPED, 1 inconclusive" {
		t.Errorf("verdicts: %q", got)
	}
	if got := run.slowest(1); got != "C 0.1 s" {
		t.Errorf("slowest: %q", got)
	}
	table := core.table([]string{proveNone, bwrap, holdfast})
	if got := table.String(); !strings.Contains(got, "2.00") || strings.Contains(got, bwrap) {
		t.Errorf("got\n%s", got)
	}
	if got := core.wall(holdfast); got != 2 {
		t.Errorf("it took %v s, want 2", got)
	}
	if got := (matrixRuns{}).wall(holdfast); !math.IsNaN(got) {
		t.Errorf("what was not run took %v s", got)
	}
}
