//go:build linux

package probe

import (
	"os"
	"path/filepath"
	"time"
)

// hookRows are of the hooks of an agent, by which a launcher hears of calls before
// they are made.
func hookRows() []Row {
	return []Row{{ID: "HST-424", Class: classSupervisor, Kind: Sandbox, Promise: "P9",
		Title: "connections that say nothing keep the hook of an agent from being heard, and a call that is denied goes on",
		Refs:  []string{"code.claude.com/docs/en/hooks", "CWE-636", "CWE-400"}, Timeout: time.Minute, Timed: true,
		Setup: namedLikeAnAgent, Absent: []string{"W/went"}, Drive: deniedTool,
		Action: "starved-hook", Trace: ran("hook")}}
}

// namedLikeAnAgent has the command be called as an agent is that has hooks.
func namedLikeAnAgent(w *World) error {
	agent := filepath.Join(filepath.Dir(w.prober), "claude")
	if err := os.Rename(w.prober, agent); err != nil {
		return err
	}
	w.prober = agent
	w.made(agent)
	return nil
}

// deniedTool plays the row under a policy that denies a call.
func deniedTool(s *Session) {
	if t, ok := s.Target.(Flagger); ok {
		path := s.World.B + "/tools.yaml"
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\ntools: {deny: [{tool: Bash, when: 'arguments.command.contains(\"sudo\")'}]}\n"), 0o600); err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
	}
	s.Run(Command{})
}
