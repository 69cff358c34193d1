package cli

import (
	"fmt"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// announce says before the start which preset applies and what is missing.
func (a *app) announce(plan policy.Plan) {
	agent := plan.Agent
	if agent == nil {
		return
	}
	say := func(colour, kind, line string) {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(colour, "holdfast: "+kind+":"), text.Safe(line))
	}
	line := fmt.Sprintf("%s runs with %s", agent.Title, agent.Origin)
	if agent.Sandbox != "" {
		line += "; " + agent.Sandbox
	}
	say(command.Cyan, "agent", line)
	for _, m := range agent.Missing {
		say(command.Yellow, "warning", m)
	}
}
