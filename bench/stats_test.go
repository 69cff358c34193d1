package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   spread
	}{
		{"one value is all of its spread", []float64{3}, spread{3, 3, 3}},
		{"order does not matter", []float64{3, 1, 2}, spread{1.2, 2, 2.8}},
		{"an even number has its median between the two in the middle", []float64{1, 2, 3, 10}, spread{1.3, 2.5, 7.9}},
		{"one wild value moves no median", []float64{1, 1, 1, 1, 1000}, spread{1, 1, 600.4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := spreadOf(tt.values)
			for _, d := range []float64{got.p10 - tt.want.p10, got.median - tt.want.median, got.p90 - tt.want.p90} {
				if math.Abs(d) > 1e-9 {
					t.Fatalf("got %v, want %v", got, tt.want)
				}
			}
		})
	}
	if got := spreadOf(nil); !math.IsNaN(got.median) || !math.IsNaN(got.p10) || !math.IsNaN(got.p90) {
		t.Errorf("no values have the spread %v, want NaN", got)
	}
}

func TestSpreadLeavesTheValuesAsTheyAre(t *testing.T) {
	values := []float64{3, 1, 2}
	spreadOf(values)
	if !slices.Equal(values, []float64{3, 1, 2}) {
		t.Errorf("sorted the caller's values: %v", values)
	}
}

func TestRatios(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b []float64
		want []float64
	}{
		{name: "rounds are divided by their own partner", a: []float64{2, 30}, b: []float64{1, 10}, want: []float64{2, 3}},
		{name: "a divisor of zero gives no ratio", a: []float64{2, 3}, b: []float64{0, 1}, want: []float64{3}},
		{name: "a round without a partner gives no ratio", a: []float64{2, 3}, b: []float64{1}, want: []float64{2}},
		{name: "a contestant that did not take part gives none", a: []float64{2, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ratios(tt.a, tt.b); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func ms(all ...int) []sample {
	var out []sample
	for _, n := range all {
		d := time.Duration(n) * time.Millisecond
		out = append(out, sample{wall: 2 * d, cpu: d, rusage: d})
	}
	return out
}

func TestOutcome(t *testing.T) {
	o := outcome{samples: map[string][]sample{bare: ms(100, 200, 100), holdfast: ms(110, 110, 220)}}
	got := o.cpu(holdfast, bare)
	for _, d := range []float64{got.median - 1.1, got.p10 - 0.66, got.p90 - 1.98} {
		if math.Abs(d) > 1e-9 {
			t.Fatalf("got %v, want the ratio of the medians 1.1 and percentiles of single rounds 0.66 and 1.98", got)
		}
	}
	if got := o.wall(holdfast, bwrap).median; !math.IsNaN(got) {
		t.Errorf("against one that is missing it is %v, want NaN", got)
	}
}
