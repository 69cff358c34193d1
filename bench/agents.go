package main

import (
	"fmt"
	"math"
)

// agentsPart is the name for -only of the part about agent programs.
const agentsPart = "agents"

// The goals for agent programs, in milliseconds: what `holdfast run claude` adds
// to a start, and to the delay of a streamed token.
const (
	agentStartLimit = 50.0
	agentTokenLimit = 1.0
)

// The ways by which a token reaches an agent inside.
const (
	hostPort = "host port"
	ended    = "TLS ended"
	brokered = "TLS ended, with a credential"
)

// The two loops whose difference is the cost of a hook.
const (
	withHook    = "with the hook"
	withoutHook = "without"
)

// agentTask is a task for which an agent program is started.
type agentTask struct {
	name    string // as in the goal
	what    string // for the report
	samples map[string][]sample
}

// addedTime is the additional time inside compared with bare, round by round, in ms.
func (t agentTask) addedTime() spread {
	return differences(walls(t.samples[holdfast]), walls(t.samples[bare]))
}

func (t agentTask) goal() string { return t.name + ", ms more than bare" }

// differences subtracts round by round, as ratios divides.
func differences(a, b []float64) spread {
	var out []float64
	for i := range min(len(a), len(b)) {
		out = append(out, a[i]-b[i])
	}
	return spreadOf(out)
}

// agentFigures are the results about agent programs.
type agentFigures struct {
	tasks  []agentTask
	tokens *egress             // eventTypical and eventSlow, by the way of the token
	ways   []string            // of tokens, in the order of the report
	hooks  map[string][]sample // by loop
	calls  int                 // tool calls in that loop
}

func (f *agentFigures) verdicts() []verdict {
	var all []verdict
	for _, t := range f.tasks {
		all = append(all, judge(t.goal(), agentStartLimit, t.addedTime().median, "%.1f"))
	}
	for _, way := range []string{hostPort, brokered} {
		all = append(all, judge("streamed token, "+way+", ms more than direct", agentTokenLimit, f.tokens.difference(eventTypical, way, direct).median, "%.3f"))
	}
	return all
}

func (f *agentFigures) tables() []captioned {
	starts := table{header: []string{"", "bare, ms", "inside, ms", "times", "more, ms"}}
	for _, t := range f.tasks {
		a, b := walls(t.samples[bare]), walls(t.samples[holdfast])
		starts.add(t.what, formatSpread(spreadOf(a), "%.1f"), formatSpread(spreadOf(b), "%.1f"), formatSpread(spreadOf(ratios(b, a)), "%.2f"), formatSpread(t.addedTime(), "%.1f"))
	}
	tokens := table{header: []string{"", "ms", "99th percentile, ms", "more than direct, ms", "99th percentile, more"}}
	for _, way := range f.ways {
		tokens.add(way, formatSpread(spreadOf(f.tokens.found[eventTypical][way]), "%.3f"), formatSpread(spreadOf(f.tokens.found[eventSlow][way]), "%.3f"),
			formatSpread(f.tokens.difference(eventTypical, way, direct), "%.3f"), formatSpread(f.tokens.difference(eventSlow, way, direct), "%.3f"))
	}
	hook := table{header: []string{"", "a call, ms"}}
	hook.add("hook before a tool call, reported and answered", formatSpread(f.hook(), "%.2f"))
	return []captioned{
		{caption: "Start of an agent", text: "In brackets the 10th and 90th percentile; what is more or times is of one round each, and of that the median.", table: starts},
		{caption: "A streamed token", text: "From before the server's write to after the client's read, an event every " + eventPause.String() + ": the medians of all rounds' medians and 99th percentiles.", table: tokens},
		{caption: "A hook", table: hook},
	}
}

// hook is the cost of one call of it.
func (f *agentFigures) hook() spread {
	d := differences(walls(f.hooks[withHook]), walls(f.hooks[withoutHook]))
	n := float64(max(1, f.calls))
	return spread{d.p10 / n, d.median / n, d.p90 / n}
}

// formatSpread formats a median with its range.
func formatSpread(s spread, format string) string {
	if math.IsNaN(s.median) {
		return "–"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median, s.p10, s.p90)
}

var agentRemarks = []string{
	"The agent program is the one that tools/needs installed, in the same home bare and inside, against a scripted model on loopback that answers with a word of text, with a key that is none; inside by its preset, with the record and its hooks, as `holdfast run claude` is.",
	"The first runs, not counted, fill the cache of the digests of executables: that of an agent of several hundred megabytes takes as long as reading it.",
	"A token is an event of 30 bytes over HTTP/1.1 and TLS. Direct and through a host port the client speaks TLS with the server; where TLS is ended the supervisor speaks it with both.",
	"The hook is the program itself, started by a shell as an agent does, with a call of a tool on its standard input; inside, with the record.",
}
