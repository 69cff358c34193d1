package realtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// reported is what the record must contain about one step of the work: the
// agent's own report of the call, and what was seen while the tool ran.
type reported struct {
	tool  string
	text  string // in one of the arguments
	below string // below the call in the story; "" where files are only read, which the record omits
}

// reports are the steps of the work as an agent's hooks report them. Codex has no
// tool that reads a file: that step is omitted.
var reports = map[string][]reported{
	"claude": {
		{"Bash", "git clone -q project work", "      git clone -q project work  (pid "},
		{"Read", "work/greet.js", ""},
		{"Edit", "Good morning, ", "./work/greet.js"},
		{"Write", "The greeting depends on the time of day.", "./work/NOTES.md"},
		{"Bash", "npm install --registry=", "      npm install --registry="},
		{"Bash", "git add -A && git commit", "      git add -A  (pid "},
		{"Agent", "-work-sub", ""},
		{"Bash", "git show --stat", "      git show --stat  (pid "},
		{"ToolSearch", "mcp__notes__note", ""},
		{"mcp__notes__note", "done", ""},
	},
	"codex": {
		{"Bash", "git clone -q project work", "      git clone -q project work  (pid "},
		{"apply_patch", "Good morning, ", "./work/greet.js"},
		{"apply_patch", "The greeting depends on the time of day.", "./work/NOTES.md"},
		{"Bash", "npm install --registry=", "      npm install --registry="},
		{"Bash", "git add -A && git commit", "      git add -A  (pid "},
		{"collaborationspawn_agent", "-work-sub", ""},
		{"collaborationwait_agent", "", ""},
		{"Bash", "git show --stat", "      git show --stat  (pid "},
		{"mcp__notes__note", "done", ""},
	},
}

// recorded compares the record of the last run with the work: it contains every
// tool call, and each is linked to what it started.
func (a worker) recorded(t *testing.T, p *fixture) {
	t.Helper()
	want, hooked := reports[a.name]
	if !hooked {
		return
	}
	lines := strings.Split(strings.TrimSpace(p.execute(testenv.Binary(t), "log", "query", `action == "tool.call"`, "--json")), "\n")
	calls := calledIn(p.execute(testenv.Binary(t), "log", "show"))
	if len(lines) != len(want) || len(calls) != len(want) {
		t.Fatalf("%d calls are reported and %d are in the story, of %d:\n%s\n%q", len(lines), len(calls), len(want), strings.Join(lines, "\n"), calls)
	}
	for _, w := range want { // a sub-agent works while its caller waits, so the order is not fixed
		i := slices.IndexFunc(lines, func(line string) bool {
			tool, arguments := callIn(t, line)
			return tool == w.tool && strings.Contains(arguments, w.text)
		})
		if i < 0 {
			t.Errorf("no call is %s with %q:\n%s", w.tool, w.text, strings.Join(lines, "\n"))
			continue
		}
		head, below, _ := strings.Cut(calls[i], "\n")
		if !strings.HasPrefix(head, "  "+w.tool+" ") || !strings.Contains(below, w.below) {
			t.Errorf("call %d: %q is not beneath %s in the story:\n%s", i, w.below, w.tool, calls[i])
		}
		lines, calls = slices.Delete(lines, i, i+1), slices.Delete(calls, i, i+1)
	}
}

// callIn reads a line of the record: the tool, and the text of its arguments.
func callIn(t *testing.T, line string) (tool, arguments string) {
	t.Helper()
	var event struct {
		Object string
		Detail struct{ Arguments string }
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var given map[string]any
	if err := json.Unmarshal([]byte(event.Detail.Arguments), &given); err != nil {
		t.Errorf("arguments %q: %v", event.Detail.Arguments, err)
	}
	for _, value := range given {
		if text, ok := value.(string); ok {
			arguments += text + "\n"
		}
	}
	return event.Object, arguments
}

// calledIn are the calls of a story, each with the lines below it.
func calledIn(story string) (calls []string) {
	_, rest, _ := strings.Cut(story, "\nTOOL CALLS\n")
	section, _, _ := strings.Cut(rest, "\n\n")
	for line := range strings.Lines(section) {
		switch {
		case !strings.HasPrefix(line, "    ") && strings.Contains(line, "  #"): // a call ends with its number in the record
			calls = append(calls, line)
		case len(calls) > 0:
			calls[len(calls)-1] += line
		}
	}
	return calls
}

// TestReadmeShowsTheWork: what the README shows is what TestAgentsAtWork does.
func TestReadmeShowsTheWork(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "```yaml\n"+workPolicy+"```\n", "holdfast run --policy work.yaml -- claude --dangerously-skip-permissions -p ")
}
