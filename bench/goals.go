package main

import (
	"fmt"
	"math"
	"strings"
)

// verdict is a goal and whether it was reached.
type verdict struct {
	goal   string // also the key of its note
	limit  string
	found  string
	status string // met, MISSED or not measured
}

const (
	met         = "met"
	missed      = "MISSED"
	notMeasured = "not measured here"
)

// judge compares a number with its limit; NaN was not measured.
func judge(goal string, limit, found float64, format string) verdict {
	v := verdict{goal: goal, limit: "≤ " + fmt.Sprintf(format, limit), found: "–", status: notMeasured}
	if math.IsNaN(found) {
		return v
	}
	v.found, v.status = fmt.Sprintf(format, found), missed
	if found <= limit {
		v.status = met
	}
	return v
}

// atLeast is judge for a lower limit.
func atLeast(goal string, limit, found float64, format string) verdict {
	v := judge(goal, -limit, -found, format)
	v.limit = "≥ " + fmt.Sprintf(format, limit)
	if v.status != notMeasured {
		v.found = fmt.Sprintf(format, found)
	}
	return v
}

// either is a goal that is met by one of two measures.
func either(goal string, a, b verdict) verdict {
	v := verdict{goal: goal, limit: a.limit + " or " + b.limit, found: a.found + ", " + b.found, status: missed}
	switch {
	case a.status == met || b.status == met:
		v.status = met
	case a.status == notMeasured || b.status == notMeasured:
		v.status = notMeasured
	}
	return v
}

// noteOf says why a goal is missed.
func noteOf(goal string) string {
	if why, ok := notes[goal]; ok {
		return why
	}
	return "the reason has not been looked for yet."
}

// goalTable shows goals, and below them the reasons for the missed ones and the
// other remarks.
func goalTable(verdicts []verdict, remarks []string) string {
	t := table{header: []string{"goal", "limit", "found", ""}}
	var reasons []string // in the order of the goals, each once
	goals := map[string][]string{}
	for _, v := range verdicts {
		t.add(v.goal, v.limit, v.found, v.status)
		if v.status == missed {
			why := noteOf(v.goal)
			if goals[why] == nil {
				reasons = append(reasons, why)
			}
			goals[why] = append(goals[why], "**"+v.goal+"**")
		}
	}
	below := ""
	for _, why := range reasons {
		below += "- " + strings.Join(goals[why], "; ") + ": " + why + "\n"
	}
	for _, r := range remarks {
		below += "- " + r + "\n"
	}
	if below != "" {
		below = "\n" + below
	}
	return t.String() + below
}
