package main

import (
	"slices"
	"testing"
)

func TestChosenParts(t *testing.T) {
	names := func(o options) (names []string) {
		o.rounds = 1
		all, err := (&bench{options: o}).chosenParts()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			names = append(names, p.name)
		}
		return names
	}
	for _, tt := range []struct {
		name string
		o    options
		want []string
	}{
		{"a part alone", options{only: logPart}, []string{logPart}},
		{"a workload is of the part about workloads", options{only: "git status"}, []string{speedPart}},
	} {
		if got := names(tt.o); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	usual, all := names(options{}), names(options{all: true})
	for _, long := range []string{millionPart, proveWholePart} {
		if slices.Contains(usual, long) || !slices.Contains(all, long) {
			t.Errorf("%s is not left out by a usual run alone: %v, %v", long, usual, all)
		}
	}
	if _, err := (&bench{options: options{only: "nothing"}}).chosenParts(); err == nil {
		t.Error("a part that is none is measured")
	}
}
