package main

import (
	"math"
	"regexp"
	"strings"
	"testing"
)

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		name         string
		limit, found float64
		want         verdict
	}{
		{"above the limit is met", 0.45, 0.5, verdict{"g", "≥ 0.45", "0.50", met}},
		{"the limit itself is met", 4, 4, verdict{"g", "≥ 4.00", "4.00", met}},
		{"a little below is missed, however it is printed", 4, 3.999, verdict{"g", "≥ 4.00", "4.00", missed}},
		{"what was not measured is neither", 4, math.NaN(), verdict{"g", "≥ 4.00", "–", notMeasured}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := atLeast("g", tt.limit, tt.found, "%.2f"); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestEither(t *testing.T) {
	rate, cost := func(v float64) verdict { return atLeast("", 0.5, v, "%.2f") }, func(v float64) verdict { return judge("", 1.15, v, "%.2f") }
	for _, tt := range []struct {
		name       string
		rate, cost float64
		want       string
	}{
		{"one of them is enough", 0.3, 1.1, met},
		{"so is the other one", 0.6, 2, met},
		{"neither is missed", 0.3, 1.2, missed},
		{"what is half measured is not missed", 0.3, math.NaN(), notMeasured},
	} {
		if got := either("g", rate(tt.rate), cost(tt.cost)); got.status != tt.want || got.limit != "≥ 0.50 or ≤ 1.15" {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}

func exampleEgress() *egress {
	e := &egress{layouts: []string{direct, holdfast, socat}, missing: []string{"pasta, for not installed: [pasta]"}, failed: []string{"idle connections: socat:\nbroken"}, modules: []string{"example.org/m v1.2.3"}, bytes: 3 << 20}
	for round, disturbed := range []float64{1, 0.5, 1} { // disturbs all alike: cancels out
		e.add(bulkRate(1), direct, 2000*disturbed)
		e.add(bulkRate(1), holdfast, 1000*disturbed)
		e.add(bulkRate(1), socat, 300*disturbed)
		e.add(freshTypical, direct, 0.1+float64(round))
		e.add(freshTypical, holdfast, 0.3+float64(round))
	}
	return e
}

func TestEgressReport(t *testing.T) {
	got := regexp.MustCompile(` +`).ReplaceAllString(exampleEgress().markdown(), " ") // cell padding does not matter
	for _, tt := range []struct{ name, want string }{
		{"a share is that of the medians", "| download, connections: 1, times direct | ≥ 0.45 | 0.50 | met |"},
		{"a goal that is missed says so", "| download, connections: 1, times socat | ≥ 4.00 | 3.33 | MISSED |"},
		{"what is added is taken round by round", "| new connection, ms more than direct | ≤ 0.200 | 0.200 | met |"},
		{"what was not measured is named", "| download, connections: 256, times direct | ≥ 0.45 | – | not measured here |"},
		{"a layout that is missing is named", "- not measured: pasta, for not installed: [pasta]."},
		{"what failed is named, in one line", "- FAILED: idle connections: socat: broken\n"},
		{"the modules are listed", "3.0 MiB"},
		{"with their versions", "1 modules besides its own: example.org/m v1.2.3."},
	} {
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, got)
		}
	}
}

func TestEgressReportWhereNothingCanBeMeasured(t *testing.T) {
	if got, want := (&egress{absent: "a reason"}).markdown(), "\n# Connections\n\nWritten by `go run ./bench`, by itself with `-only egress`.\n\nNot measured here: a reason.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
