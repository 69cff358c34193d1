package model

import (
	"context"
	"strings"
	"testing"
)

// with adds fields to a tool.
func with(tool map[string]any, more ...string) map[string]any {
	for i := 0; i < len(more); i += 2 {
		tool[more[i]] = more[i+1]
	}
	return tool
}

// execAbout is how Codex declares tools in code mode.
const execAbout = "Run JavaScript. ALL_TOOLS lists them.\n### `apply_patch`\n```ts\ndeclare const tools: { apply_patch(input: string): Promise<unknown>; };\n```\n" +
	"### `exec_command`\n```ts\ndeclare const tools: { exec_command(args: {\n  // Shell command: to execute.\n  cmd: string;\n  login?: boolean;\n" +
	"  nested?: {\n    cmd: string;\n  };\n  sandbox_permissions?: \"use_default\" | \"require_escalated\";\n}): Promise<{\n  output: string;\n}>; };\n```\n"

// TestResolve plays one step with the tools that some version of an agent offers.
// The names and arguments come from real agents.
func TestResolve(t *testing.T) {
	shell := Step{Op: Shell, Command: "id"}
	escalated := Step{Op: Shell, Command: "id", Escalate: true}
	background := Step{Op: Shell, Command: "id", Background: true}
	read := Step{Op: Read, Path: "/f"}
	write := Step{Op: Write, Path: "/f", Content: "a\nb\n"}
	edit := Step{Op: Edit, Path: "/f", Old: "a", New: "b"}
	fetch := Step{Op: Fetch, URL: "http://h/"}
	mcp := Step{Op: MCP, Server: "my-probe", Tool: "report", Arguments: object{"word": "x"}}
	spawn := Step{Op: Spawn, Script: "child"}
	patched := "*** Begin Patch|*** Update File: /f|@@|-a|+b|*** End Patch"
	none := func(what string) string { return "no tool for " + what }
	for _, tt := range []struct {
		name  string
		agent agent
		step  Step
		tools []map[string]any
		want  string
	}{
		{"Bash", anthropicAgent{}, shell, []map[string]any{offer("Bash", "command", "description", "timeout?:number")}, `Bash {"command":"id","description":"run a command","timeout":300000}`},
		{"shell of words", responsesAgent{}, shell, []map[string]any{offer("shell", "command:array", "timeout_ms?:number")}, `shell {"command":["bash","-lc","id"],"timeout_ms":300000}`},
		{"shell_command", responsesAgent{}, shell, []map[string]any{offer("shell_command", "command", "justification?")}, `shell_command {"command":"id"}`},
		{"exec_command", responsesAgent{}, shell, []map[string]any{offer("exec_command", "cmd", "yield_time_ms?:number")}, `exec_command {"cmd":"id","yield_time_ms":30000}`},
		{"local_shell", responsesAgent{}, shell, []map[string]any{with(offer(""), "kind", "local_shell")}, `local_shell {"command":["bash","-lc","id"],"env":{},"type":"exec"}`},
		{"run_commands", chatAgent{}, shell, []map[string]any{offer("run_commands", "commands:array")}, `run_commands {"commands":["id"]}`},
		{"run_shell_command", geminiAgent{}, background, []map[string]any{offer("run_shell_command", "command", "is_background?:boolean")}, `run_shell_command {"command":"id","is_background":true}`},
		{"asynchronous mode", chatAgent{}, background, []map[string]any{offer("bash", "command", "mode?:enum=sync|async")}, `bash {"command":"id","mode":"async"}`},
		{"a required argument that nobody knows", chatAgent{}, shell, []map[string]any{offer("bash", "command", "why", "n:integer", "ok:boolean", "l:array", "o:object", "e:enum=x|y")}, `bash {"command":"id","e":"x","l":[],"n":1,"o":{},"ok":false,"why":"done"}`},
		{"a tool without a schema", chatAgent{}, shell, []map[string]any{{"name": "bash"}}, `bash {"command":"id","description":"run a command"}`},
		{"a shell without a command", chatAgent{}, shell, []map[string]any{offer("bash", "words")}, none("shell")},
		{"no shell", chatAgent{}, shell, []map[string]any{offer("read", "path")}, none("shell")},

		{"dangerouslyDisableSandbox", anthropicAgent{}, escalated, []map[string]any{offer("Bash", "command", "dangerouslyDisableSandbox?:boolean")}, `Bash {"command":"id","dangerouslyDisableSandbox":true}`},
		{"sandbox_permissions", responsesAgent{}, escalated, []map[string]any{offer("exec_command", "cmd", "sandbox_permissions?", "justification?")}, `exec_command {"cmd":"id","justification":"The task needs it.","sandbox_permissions":"require_escalated"}`},
		{"with_escalated_permissions", responsesAgent{}, escalated, []map[string]any{offer("shell", "command:array", "with_escalated_permissions?:boolean")}, `shell {"command":["bash","-lc","id"],"with_escalated_permissions":true}`},
		{"no way out", chatAgent{}, escalated, []map[string]any{offer("bash", "command")}, none("shell with escalation")},

		{"Read", anthropicAgent{}, read, []map[string]any{offer("Read", "file_path", "limit?:integer")}, `Read {"file_path":"/f"}`},
		{"view", chatAgent{}, read, []map[string]any{offer("view", "path")}, `view {"path":"/f"}`},
		{"one tool for files, read", chatAgent{}, read, []map[string]any{offer("str_replace_editor", "command:enum=view|create", "path", "file_text?")}, `str_replace_editor {"command":"view","path":"/f"}`},
		{"one tool for files, write", chatAgent{}, write, []map[string]any{offer("str_replace_editor", "command:enum=view|create", "path", "file_text?")}, `str_replace_editor {"command":"create","file_text":"a\nb\n","path":"/f"}`},
		{"one tool for files that cannot edit", chatAgent{}, edit, []map[string]any{offer("str_replace_editor", "command:enum=view|create", "path", "old_str?", "new_str?")}, none("edit")},
		{"write_file", geminiAgent{}, write, []map[string]any{offer("write_file", "file_path", "content")}, `write_file {"content":"a\nb\n","file_path":"/f"}`},
		{"write by patch", responsesAgent{}, write, []map[string]any{with(offer("apply_patch"), "kind", "custom")}, `apply_patch *** Begin Patch|*** Add File: /f|+a|+b|*** End Patch`},
		{"edit by patch", responsesAgent{}, edit, []map[string]any{with(offer("apply_patch"), "kind", "custom")}, "apply_patch " + patched},
		{"patch over Chat Completions", chatAgent{}, edit, []map[string]any{with(offer("apply_patch"), "kind", "custom")}, "apply_patch " + patched},
		{"patch as an argument", responsesAgent{}, edit, []map[string]any{offer("apply_patch", "input")}, `apply_patch {"input":"` + strings.ReplaceAll(patched, "|", `\n`) + `"}`},
		{"a patch that is written out", responsesAgent{}, Step{Op: Patch, Text: "as it is"}, []map[string]any{with(offer("apply_patch"), "kind", "custom")}, "apply_patch as it is"},
		{"a patch that is written out, and no tool for patches", chatAgent{}, Step{Op: Patch, Text: "as it is"}, []map[string]any{offer("edit", "path", "old_str", "new_str")}, none("patch")},
		{"replace", geminiAgent{}, edit, []map[string]any{offer("replace", "file_path", "instruction", "old_string", "new_string")}, `replace {"file_path":"/f","instruction":"done","new_string":"b","old_string":"a"}`},

		{"WebFetch", anthropicAgent{}, fetch, []map[string]any{offer("WebFetch", "url", "prompt")}, `WebFetch {"prompt":"Say what http://h/ holds.","url":"http://h/"}`},
		{"web_fetch with a prompt alone", geminiAgent{}, fetch, []map[string]any{offer("web_fetch", "prompt")}, `web_fetch {"prompt":"Say what http://h/ holds."}`},
		{"webfetch", chatAgent{}, fetch, []map[string]any{offer("webfetch", "url", "format?:enum=text|html")}, `webfetch {"url":"http://h/"}`},

		{"MCP of Claude Code", anthropicAgent{}, mcp, []map[string]any{offer("mcp__my-probe__report", "word")}, `mcp__my-probe__report {"word":"x"}`},
		{"MCP of Gemini CLI", geminiAgent{}, mcp, []map[string]any{offer("mcp_my-probe_report", "word")}, `mcp_my-probe_report {"word":"x"}`},
		{"MCP of opencode", chatAgent{}, mcp, []map[string]any{offer("my-probe_report", "word")}, `my-probe_report {"word":"x"}`},
		{"MCP of Copilot", chatAgent{}, mcp, []map[string]any{offer("my-probe-report", "word")}, `my-probe-report {"word":"x"}`},
		{"MCP of older agents", geminiAgent{}, mcp, []map[string]any{offer("report", "word")}, `report {"word":"x"}`},
		{"MCP in a namespace", responsesAgent{}, mcp, []map[string]any{with(offer("report", "word"), "namespace", "mcp__my_probe__")}, `report {"word":"x"}`},
		{"MCP by one tool for all", chatAgent{}, mcp, []map[string]any{offer("use_mcp_tool", "server_name", "tool_name", "arguments")}, `use_mcp_tool {"arguments":"{\"word\":\"x\"}","server_name":"my-probe","tool_name":"report"}`},
		{"MCP of another server", chatAgent{}, mcp, []map[string]any{offer("other_report", "word"), offer("bash", "command")}, none("mcp my-probe report")},
		{"a server's tool that is called as an agent's", chatAgent{}, Step{Op: MCP, Server: "s", Tool: "read_file"}, []map[string]any{offer("read_file", "path")}, none("mcp s read_file")},
		{"a server's tool is not the agent's", responsesAgent{}, read, []map[string]any{with(offer("read_file", "path"), "namespace", "mcp__fs")}, none("read")},

		{"Agent", anthropicAgent{}, spawn, []map[string]any{offer("Agent", "description", "prompt", "subagent_type?", "run_in_background?:boolean")}, `Agent {"description":"part_child","prompt":"Do what follows. [[script:child]]","run_in_background":false}`},
		{"agent with a kind", chatAgent{}, spawn, []map[string]any{offer("task", "description", "prompt", "agent_type:enum=explore|general-purpose", "mode?:enum=sync|background")}, `task {"agent_type":"general-purpose","description":"part_child","mode":"sync","prompt":"Do what follows. [[script:child]]"}`},
		{"invoke_agent", geminiAgent{}, spawn, []map[string]any{with(offer("invoke_agent", "agent_name", "prompt"), "about", "x")}, `invoke_agent {"agent_name":"done","prompt":"Do what follows. [[script:child]]"}`},
		{"spawn_agent in a namespace", responsesAgent{}, spawn, []map[string]any{with(offer("spawn_agent", "message", "task_name", "fork_turns?"), "namespace", "collaboration")}, `spawn_agent {"fork_turns":"none","message":"Do what follows. [[script:child]]","task_name":"part_child"}`},

		{"what is not advertised", anthropicAgent{}, Step{Op: Unadvertised, Tool: "Hidden", Arguments: object{"x": 1}}, []map[string]any{offer("Bash", "command")}, `Hidden {"x":1}`},
		{"a custom tool that is not advertised", responsesAgent{}, Step{Op: Unadvertised, Tool: "apply_patch", Text: "p"}, []map[string]any{offer("exec_command", "cmd")}, `apply_patch p`},
		{"a tool by its name", chatAgent{}, Step{Op: Tool, Tool: "todo", Arguments: object{"x": 1}}, []map[string]any{offer("todo", "y")}, `todo {"x":1}`},
		{"a tool that is not there", chatAgent{}, Step{Op: Tool, Tool: "todo"}, []map[string]any{offer("bash", "command")}, none("tool todo")},

		{"code mode", responsesAgent{}, shell, []map[string]any{with(offer("exec"), "kind", "custom", "about", execAbout, "namespace", "functions")}, `exec ` + strings.ReplaceAll(program(`"exec_command"`, `{"cmd":"id"}`), "\n", "|")},
		{"code mode, out of the sandbox", responsesAgent{}, escalated, []map[string]any{with(offer("exec"), "kind", "custom", "about", execAbout)}, `exec ` + strings.ReplaceAll(program(`"exec_command"`, `{"cmd":"id","sandbox_permissions":"require_escalated"}`), "\n", "|")},
		{"code mode, patch", responsesAgent{}, edit, []map[string]any{with(offer("exec"), "kind", "custom", "about", execAbout)}, `exec ` + strings.ReplaceAll(program(`"apply_patch"`, jsonText(strings.ReplaceAll(patched, "|", "\n"))), "\n", "|")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Options{Scripts: []Script{{Name: "m", Steps: []Step{tt.step}}}})
			var missing string
			s.options.Turn = func(_ context.Context, turn Turn) error {
				if len(turn.Results) > 0 {
					missing = turn.Results[0].Missing
				}
				return nil
			}
			got := told([]exchange{ask(t, s, tt.agent, []string{Marker("m")}, nil, append(tt.tools, offer("glob", "pattern")), true)})[0]
			if missing != "" {
				got = missing
			}
			expect(t, []string{got}, []string{tt.want})
		})
	}
}
