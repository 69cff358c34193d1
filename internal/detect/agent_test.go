package detect

import (
	"fmt"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// started is an execution: by which parent, and which program the process ran before.
func started(n, parent, before uint64, executable string, argv ...string) event.Event {
	e := event.Event{Action: event.ProcExec, Object: executable, Verdict: event.Allowed,
		Process: event.Process{PID: int(n) + 100, Exec: n, ParentExec: parent, Executable: executable, Argv: argv}}
	if before != 0 {
		e.Detail = map[string]string{"replaces": fmt.Sprint(before)}
	}
	return e
}

// TestListsOfProcesses: ps reads the environment of each process, also where it prints none.
func TestListsOfProcesses(t *testing.T) {
	for _, tt := range []struct {
		by    event.Event
		raise bool
	}{
		{started(1, 0, 0, "/usr/bin/ps", "ps", "aux"), false},
		{started(1, 0, 0, "/usr/bin/ps", "ps", "-ef"), false},
		{started(1, 0, 0, "/usr/bin/ps", "ps", "-A", "-o", "pid=", "-o", "lstart="), false},
		{started(1, 0, 0, "/usr/bin/ps", "ps", "auxe"), true},
		{started(1, 0, 0, "/usr/bin/ps", "ps", "-auxe"), true},
		{started(1, 0, 0, "/usr/bin/ps", "ps", "a", "e"), true},
		{started(1, 0, 0, "/usr/bin/ps"), true},
		{started(1, 0, 0, "/home/you/project/ps", "ps", "aux"), true},
		{started(1, 0, 0, "/usr/bin/cat", "ps", "aux"), true},
	} {
		events := []event.Event{tt.by}
		for n := range 9 {
			events = append(events, event.Event{Action: event.FileOpen, Object: fmt.Sprintf("/proc/%d/environ", n+1), Verdict: event.Allowed, Process: event.Process{PID: 101, Exec: 1}})
		}
		alerts, err := Replay(Config{Place: here}, events)
		if err != nil {
			t.Fatal(err)
		}
		if (len(alerts) > 0) != tt.raise {
			t.Errorf("%s %q raised %s", tt.by.Object, tt.by.Process.Argv, short(alerts))
		}
	}
}

// TestAgentsOwnLogin: an agent that the user started looks for its own login,
// and a program that imitates it raises an alert.
func TestAgentsOwnLogin(t *testing.T) {
	const native, script = "/opt/claude/claude", "/opt/gemini/node_modules/.bin/gemini"
	agent := started(1, 0, 0, native, "claude")
	shell := started(2, 1, 1, "/usr/bin/dash", "sh", "-c", "x")
	for _, tt := range []struct {
		name   string
		events []event.Event // the last one asks
		want   Severity
	}{
		{"the agent that the user started", []event.Event{agent}, Low},
		{"the name that npm gives it", []event.Event{started(1, 0, 0, "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", "claude")}, Low},
		{"a version that its installer keeps", []event.Event{started(1, 0, 0, "/home/you/.local/share/claude/versions/2.1.330", "claude")}, Low},
		{"a script", []event.Event{started(1, 0, 0, "/usr/bin/env", "gemini"), started(2, 0, 1, "/usr/bin/node", "node", script)}, Low},
		{"a script of a package", []event.Event{started(1, 0, 0, "/usr/bin/node", "node", "--expose-gc", "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js")}, Low},
		{"below a shell of the user's", []event.Event{started(1, 0, 0, "/usr/bin/dash", "sh", "run.sh"), started(2, 1, 1, native, "claude")}, Low},
		{"once more by itself", []event.Event{agent, started(2, 1, 1, native, "claude")}, Low},
		{"cat below it", []event.Event{agent, shell, started(3, 2, 2, "/usr/bin/cat", "cat")}, Medium},
		{"an interpreter below it", []event.Event{agent, shell, started(3, 2, 2, "/usr/bin/python3.12", "python3", "-c", "x")}, Medium},
		{"a client below it", []event.Event{agent, shell, started(3, 2, 2, "/usr/bin/curl", "curl")}, Medium},
		{"cat alone", []event.Event{started(1, 0, 0, "/usr/bin/cat", "cat")}, Medium},
		{"a copy of it", []event.Event{agent, shell, started(3, 2, 2, "/home/you/project/claude", "claude")}, Medium},
		{"it again, by a command", []event.Event{agent, shell, started(3, 2, 2, native, "claude")}, Medium},
		{"it again, by a shell that it becomes", []event.Event{agent, shell, started(3, 0, 2, native, "claude")}, Medium},
		{"it again, by what is not known any more", []event.Event{agent, started(3, 2, 0, native, "claude")}, Medium},
		{"a name of another program", []event.Event{started(1, 0, 0, "/usr/bin/cat", "claude")}, Medium},
		{"a script of the workspace", []event.Event{started(1, 0, 0, "/usr/bin/node", "node", "/home/you/project/node_modules/.bin/gemini")}, Medium},
		{"a script that is loaded before it", []event.Event{started(1, 0, 0, "/usr/bin/node", "node", "--require=/tmp/x", script)}, Medium},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := event.Event{Action: event.FileLookup, Object: "/home/you/.claude/.credentials.json", Verdict: event.Denied, Layer: event.LayerView,
				Process: event.Process{PID: tt.events[len(tt.events)-1].Process.PID, Exec: tt.events[len(tt.events)-1].Process.Exec}}
			alerts, err := Replay(Config{Place: here}, append(tt.events, e))
			if err != nil {
				t.Fatal(err)
			}
			if len(alerts) != 1 || alerts[0].Severity != tt.want {
				t.Errorf("raised %s, want one that is %s", short(alerts), tt.want)
			}
		})
	}
}
