package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// presetOf is the preset that applies to a command by its name; "" for none. A
// program of the workspace gets none by its name: whoever wrote the workspace
// would choose who gets the credential.
func (a *app) presetOf(o policy.Options, program string) string {
	name := filepath.Base(program)
	if !policy.HasPreset(o.Host, name) {
		return ""
	}
	if !strings.Contains(program, "/") {
		return name
	}
	workspace := o.Workspace
	if workspace == "" {
		workspace = a.Dir
	}
	for _, path := range []*string{&workspace, &program} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(a.Dir, *path)
		}
		if real, err := filepath.EvalSymlinks(*path); err == nil {
			*path = real
		}
	}
	if paths.Within(workspace, program) {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(command.Yellow, "holdfast: warning:"),
			text.Safe(fmt.Sprintf("%s is a program of the workspace, and is run without the preset %s; if it is the agent, say so: --preset %s", program, name, name)))
		return ""
	}
	return name
}

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
