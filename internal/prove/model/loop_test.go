package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestEveryPlayEnds plays random scripts against agents that offer random tools,
// some only on request, and that randomly fail, lose and repeat results. Every
// play must end, and no step may be requested twice.
func TestEveryPlayEnds(t *testing.T) {
	tools := []map[string]any{
		offer("bash", "command"), offer("read", "path"), offer("write", "path", "content"), offer("webfetch", "url"),
		offer("edit", "path", "old_str", "new_str"), offer("ToolSearch", "query"), offer("tool_search", "query"), offer("tool_call", "name", "arguments:object"),
		offer("task", "prompt"), offer("wait_agent", "targets:array"), offer("wait", "cell_id"), offer("write_stdin", "session_id:number"), offer("complete_task", "result"),
		offer("mcp__s__t", "x"),
	}
	results := []string{"", "ok", "Process running with session ID 7", "Script running with cell ID 3", `{"agent_id":"a"}`, "WebFetch mcp__s__t Agent", "No matching tools",
		"<functions><function>{\"name\":\"WebFetch\",\"parameters\":{}}</function></functions>", "holdfast: no tool for mcp s t", Marker("m")}
	steps := []Step{{Op: Shell, Command: "a"}, {Op: Shell, Command: "b", Parallel: true}, {Op: Shell, Command: "c", Escalate: true}, {Op: Read, Path: "p"},
		{Op: Fetch, URL: "u"}, {Op: Fetch, URL: "v", Parallel: true}, {Op: MCP, Server: "s", Tool: "t"}, {Op: Spawn, Script: "none"}, {Op: Unadvertised, Tool: "x"},
		{Op: Tool, Tool: "read"}, {Op: Patch, Path: "p", Old: "a", New: "b"}, {Op: Edit, Path: "p", Old: "a", New: "b", Parallel: true}}
	agents := allAgents()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		script := Script{Name: "m", Steps: []Step{{Op: Shell, Command: "a"}}}
		for range r.IntN(8) {
			script.Steps = append(script.Steps, steps[r.IntN(len(steps))])
		}
		var offered []map[string]any
		for _, tool := range tools {
			if r.IntN(2) == 0 {
				offered = append(offered, tool)
			}
		}
		name := []string{"anthropic", "chat", "gemini", "responses"}[r.IntN(4)]
		keeps, loses := r.IntN(2) == 0, r.IntN(4) == 0
		steps := 0
		s := New(Options{Scripts: []Script{script}, Turn: func(_ context.Context, turn Turn) error {
			if turn.Step < steps || turn.Step > len(script.Steps) || len(turn.Results) != turn.Step {
				t.Errorf("seed %d: step %d with %d results after step %d", seed, turn.Step, len(turn.Results), steps)
			}
			steps = turn.Step
			return nil
		}})
		asked := map[string]int{}
		history := run(t, s, agents[name], []string{"WebFetch Agent " + Marker("m")}, offered, true, func(e exchange) exchange {
			for i := range e.calls {
				asked[e.calls[i].ID]++
				e.calls[i].Result = results[r.IntN(len(results))]
				if !keeps {
					e.calls[i].ID = fmt.Sprint("x", len(asked))
				}
			}
			if loses && len(e.calls) > 1 {
				e.calls = e.calls[:1]
			}
			return e
		})
		for id, n := range asked {
			if n > 1 && !loses { // a step without a result may be requested again
				t.Errorf("seed %d (%s, IDs kept: %v): %s was asked for %d times: %q", seed, name, keeps, id, n, told(history))
			}
		}
	}
}
