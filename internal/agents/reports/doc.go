// Package reports takes the tool calls that agents inside report through their hooks,
// records them and answers: what the policy says of a call, and what a human says
// where a rule of consent asks one.
//
// A run calls Tools.AddTo for a launch and Listen when the view is complete, and gives
// Server.Watch the events of processes, so that a hook which ends without a report is
// recorded. How many reports come the inside decides: they are bounded.
//
// A report is the agent's own word. This package looks at no file that one names, and
// knows no agent program: package hooks makes their settings.
package reports
