// Package references prints the tables that this program has: keys of a policy,
// rules, events, protected names and system calls. Each room makes its own text; the
// verb only finds it ([Command]).
package references

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/consent/rules"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/export"
)

// Command is holdfast reference.
func Command(a *command.App) *cobra.Command { return command.NewReference(a, "holdfast", topics()) }

// topics are the tables of holdfast.
func topics() []command.Topic {
	return append([]command.Topic{
		{Name: "policy", About: "every key of a policy", Text: command.Always(policy.Reference)},
		{Name: "rule-sets", About: "the rule sets of ask and deny, and what a condition can name", Text: rules.Reference},
		{Name: "rules", About: "the detection rules, and how to write one", Text: command.Always(detect.Reference)},
		{Name: "events", About: "fields, actions and details of events, and their names in OCSF and OpenTelemetry", Text: command.Always(export.Reference)},
	}, systemTopics()...)
}
