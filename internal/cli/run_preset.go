package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// presetOf is the preset that applies to a command by its name; "" for none. A
// program of the workspace gets none by its name: whoever wrote the workspace
// would choose who gets the credential.
func (a *app) presetOf(o policy.Options, command string) string {
	name := filepath.Base(command)
	if !policy.HasPreset(o.Host, name) {
		return ""
	}
	if !strings.Contains(command, "/") {
		return name
	}
	workspace := o.Workspace
	if workspace == "" {
		workspace = a.Dir
	}
	for _, path := range []*string{&workspace, &command} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(a.Dir, *path)
		}
		if real, err := filepath.EvalSymlinks(*path); err == nil {
			*path = real
		}
	}
	if paths.Within(workspace, command) {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(yellow, "holdfast: warning:"),
			printable(fmt.Sprintf("%s is a program of the workspace, and is run without the preset %s; if it is the agent, say so: --preset %s", command, name, name)))
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
	say := func(colour, kind, text string) {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(colour, "holdfast: "+kind+":"), printable(text))
	}
	text := fmt.Sprintf("%s runs with %s", agent.Title, agent.Origin)
	if agent.Sandbox != "" {
		text += "; " + agent.Sandbox
	}
	say(cyan, "agent", text)
	for _, m := range agent.Missing {
		say(yellow, "warning", m)
	}
}
