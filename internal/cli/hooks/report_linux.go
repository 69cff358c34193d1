package hooks

import (
	"os"

	"holdfast.dev/holdfast/internal/agents/hooks"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/run"
)

// Report makes a known agent report its tool calls.
func Report(t *run.Task, argv []string) {
	program, err := hookProgram()
	if err != nil {
		return
	}
	agent := argv[0]
	if t.Plan.Agent != nil { // which knows the agent by another name too
		agent = t.Plan.Agent.Preset
	}
	_, add, known := hooks.Inside(agent, program, os.ReadFile)
	if !known {
		return
	}
	t.Tools.Program = program
	for _, f := range add.Files {
		t.Tools.Files = append(t.Tools.Files, boundary.File{Path: f.Path, Content: f.Content})
	}
}
