package policy

import (
	"strings"
	"testing"
)

func denied(t *testing.T, text string) Plan {
	t.Helper()
	f, err := Parse("p.yaml", "/", []byte("version: 1\ntools:\n  deny:\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	var p Plan
	p.tools(Effective{Entries: f.Entries})
	return p
}

func TestDenyTool(t *testing.T) {
	p := denied(t, `    - WebFetch
    - "mcp__evil__*"
    - {tool: [Bash, run_shell_command], when: 'arguments.command.contains("sudo")', reason: there is no sudo here}
    - {server: github, tool: "*delete*"}
    - {agent: codex, when: 'arguments[""] != "" || int(arguments.n) > 3'}
`)
	for _, tt := range []struct {
		name string
		call ToolCall
		want string // beginning of the reason
		line string
	}{
		{"a name", ToolCall{Tool: "WebFetch"}, "the policy denies the tool WebFetch", ":4"},
		{"a name in other letters", ToolCall{Tool: "webfetch"}, "the policy denies", ":4"},
		{"no beginning of a name", ToolCall{Tool: "WebFetch2"}, "", ""},
		{"a pattern", ToolCall{Tool: "mcp__evil__x", Server: "evil"}, "the policy denies", ":5"},
		{"another server", ToolCall{Tool: "mcp__good__x", Server: "good"}, "", ""},
		{"a condition", ToolCall{Tool: "Bash", Arguments: `{"command":"a && sudo b"}`}, "there is no sudo here", ":6"},
		{"a condition that is false", ToolCall{Tool: "Bash", Arguments: `{"command":"id"}`}, "", ""},
		{"a condition on arguments that are cut", ToolCall{Tool: "Bash", Arguments: `{"command":"id"}`, Cut: true}, "there is no sudo here", ":6"},
		{"a condition on arguments that are none", ToolCall{Tool: "Bash"}, "", ""},
		{"an argument in other letters", ToolCall{Tool: "Bash", Arguments: `{"Command":"sudo id"}`}, "its condition cannot be evaluated", ":6"},
		{"a tool of a server", ToolCall{Tool: "mcp__github__delete_repo", Server: "github"}, "the policy denies", ":7"},
		{"that tool without the server", ToolCall{Tool: "delete_repo"}, "", ""},
		{"a condition that fails", ToolCall{Agent: "codex", Tool: "Read", Arguments: `{"n":"many"}`}, "its condition cannot be evaluated", ":8"},
		{"arguments that are no object", ToolCall{Agent: "codex", Tool: "Read", Arguments: `"text"`}, "the policy denies", ":8"},
		{"control characters", ToolCall{Tool: "mcp__evil__\x1b[2J"}, `the policy denies the tool mcp__evil__\x1b`, ":5"},
	} {
		reason, rule := p.DenyTool(tt.call)
		if !strings.HasPrefix(reason, tt.want) || (reason == "") != (tt.want == "") || !strings.HasSuffix(rule, tt.line) {
			t.Errorf("%s: %q by %q, want %q by %q", tt.name, reason, rule, tt.want, tt.line)
		}
	}
}

func TestRulesForToolsAreRefused(t *testing.T) {
	for _, tt := range []struct{ rule, want string }{
		{`{}`, "needs tool, server, agent or when"},
		{`{reason: x}`, "needs tool, server, agent or when"},
		{`{tool: Bash, wen: x}`, `unknown key "wen" in a rule for tools, did you mean "when"?`},
		{`{tool: Bash, when: 'argument.command == ""'}`, `did you mean "arguments"?`},
		{`{tool: Bash, when: tool}`, "a condition is true or false"},
		{`{tool: []}`, "is an empty list"},
		{`[Bash]`, "is a list"},
		{`" Bash"`, "begins or ends with a space"},
		{`{tool: Bash, tool: Read}`, "is repeated"},
		{`{tool: "` + strings.Repeat("x", 501) + `"}`, "longer than"},
		{`null`, "is empty"},
	} {
		_, err := Parse("p.yaml", "/", []byte("version: 1\ntools:\n  deny:\n    - "+tt.rule+"\n"))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "p.yaml:4") {
			t.Errorf("%s: %v, want %q", tt.rule, err, tt.want)
		}
	}
}

func TestStars(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "x", true}, {"a*", "a", true}, {"*a", "ba", true}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"a*b*c", "axxbxxc", true}, {"a*b*c", "axxcxxb", false}, {"**", "x", true}, {"a*b*b", "ab", false}, {"", "", true}, {"", "x", false},
	} {
		if got := matchesAny([]string{tt.pattern}, tt.name); got != tt.want {
			t.Errorf("%q, %q: %t", tt.pattern, tt.name, got)
		}
	}
}

// A project's file may deny more, and not less.
func TestProjectsOnlyAddRulesForTools(t *testing.T) {
	e := Effective{}
	if e.widens(Entry{Key: "tools.deny", Value: "Bash", Tool: &ToolRule{Tools: []string{"Bash"}}}) {
		t.Error("a rule more widens")
	}
	if !e.widens(Entry{Key: "tools.deny", Clear: true}) {
		t.Error("no rules at all do not widen")
	}
}
