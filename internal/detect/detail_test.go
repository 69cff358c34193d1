package detect

import (
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

func TestDetailOf(t *testing.T) {
	for condition, want := range map[string]string{
		`detail.came_to != ""`:                     "came_to",
		`detail.came_to == ""`:                     "",
		`detail.a != "" || detail.b != ""`:         "",
		`detail.a != "" && object != ""`:           "",
		`object != ""`:                             "",
		`detail.a.endsWith("x") && detail.b != ""`: "",
		"": "",
	} {
		if got := detailOf(condition); got != want {
			t.Errorf("%q asks for %q, want %q", condition, got, want)
		}
	}
}

// What every run does at its start must not compile a condition: that costs
// more than recording all the rest.
func TestAnOrdinaryExecutionCompilesNothing(t *testing.T) {
	e, err := New(Config{Place: Place{Workspace: "/home/you/project", Home: "/home/you"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"true", "ls", "sh", "bash"} {
		e.Observe(event.Event{Action: event.ProcExec, Object: name, Verdict: event.Allowed,
			Process: event.Process{PID: 2, Exec: 1, Executable: "/usr/bin/" + name, Cwd: "/home/you/project", Argv: []string{name}}})
	}
	for _, all := range e.index {
		for _, m := range all {
			if m.program != nil {
				t.Errorf("%s compiles %s", m.rule.ID, m.condition)
			}
		}
	}
}
