package main

import (
	"strings"
	"testing"
)

// TestPathGoals: each goal is judged by the agent that does worst, and none is met
// where nothing was played.
func TestPathGoals(t *testing.T) {
	done := []pathAction{{"read", "works"}, {"fetch", "says why"}, {"commit", "works"}}
	good := agentPath{Name: "a", Typed: []string{"holdfast", "run", "a"}, Asked: map[string]int{"onboarding": 2, "permission": 9}, Actions: done}
	flag, asks, silent, without := good, good, good, good
	flag.Typed = []string{"holdfast", "run", "--allow", "x", "a"}
	asks.Asked = map[string]int{"holdfast": 1, "onboarding": 2}
	silent.Actions = []pathAction{{"read", "does not say why"}, {"fetch", "lost"}, {"commit", "works"}}
	without.Actions = []pathAction{{"read", "works"}, {"fetch", "works"}, {"commit", "says why"}}
	for _, tt := range []struct {
		name   string
		agents []agentPath
		want   string // of the four goals
	}{
		{"nothing was played", nil, "–––– " + strings.Repeat(notMeasured, 4)},
		{"all is well", []agentPath{good, good}, "0200 " + strings.Repeat(met, 4)},
		{"a flag", []agentPath{flag, good}, "2200 " + missed + met + met + met},
		{"a question", []agentPath{good, asks}, "0300 " + met + missed + met + met},
		{"failures", []agentPath{silent, silent}, "0240 " + met + met + missed + met},
		{"no commit", []agentPath{without, good}, "0201 " + met + met + met + missed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, status := "", ""
			for _, v := range (&pathFigures{agents: tt.agents}).verdicts() {
				found, status = found+v.found, status+v.status
			}
			if got := found + " " + status; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPathTables: what was not played has no column, and one sandbox more is one.
func TestPathTables(t *testing.T) {
	f := &pathFigures{sandboxes: []sandboxActions{{Name: "none", Actions: []pathAction{{"read", "works"}}}, {Name: "srt", Version: "1.0", Actions: []pathAction{{"read", "does not say why"}}}}}
	tables := f.tables()
	if got := len(tables); got != 3 || len(tables[1].table.rows) != 0 {
		t.Fatalf("%d tables, %v", got, tables)
	}
	text := tables[2].table.String()
	for _, want := range []string{"| read     | works | does not say why |", "| **work** | 1     | 0                |", "srt 1.0"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
