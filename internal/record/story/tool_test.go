package story

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// play plays events a second apart.
func play(events ...event.Event) *Story {
	b := New(Default)
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for i, e := range events {
		e.Seq, e.Time = uint64(i+1), at.Add(time.Duration(i)*time.Second)
		if e.Verdict == event.Unknown {
			e.Verdict = event.Allowed
		}
		b.Add(e)
	}
	return b.Story()
}

func executes(pid int, exec, parent uint64, argv ...string) event.Event {
	return event.Event{Sensor: event.Syscall, Action: event.ProcExec, Object: argv[0],
		Process: event.Process{PID: pid, Exec: exec, ParentExec: parent, Executable: argv[0], Argv: argv}}
}

func report(action, tool string, by uint64, detail ...string) event.Event {
	e := event.Event{Sensor: event.Agent, Action: action, Object: tool, Process: event.Process{Exec: by}, Detail: map[string]string{"agent": "claude"}}
	for i := 0; i+1 < len(detail); i += 2 {
		e.Detail[detail[i]] = detail[i+1]
	}
	return e
}

func wrote(exec uint64, path string) event.Event {
	return event.Event{Sensor: event.Syscall, Action: event.FileWrite, Object: path, Process: event.Process{Exec: exec}}
}

func TestToolsHaveWhatTheyStarted(t *testing.T) {
	hook := []string{"/opt/holdfast", "hook", "claude", "call"}
	s := play(
		executes(10, 1, 0, "/opt/claude"),
		executes(11, 2, 1, "/bin/sh", "-c", "/opt/holdfast hook claude call"),
		executes(12, 3, 2, hook...),
		report(event.ToolCall, "Bash", 3, "id", "a", "arguments", `{"command":"make x"}`),
		report(event.ToolCall, "Bash", 3, "id", "a", "arguments", `{"command":"make x"}`), // reported twice
		wrote(1, "/w/notes"),
		executes(13, 4, 1, "/usr/bin/git", "status"),
		executes(14, 5, 1, "/bin/bash", "-c", "eval 'make x'"),
		executes(15, 6, 5, "/usr/bin/make", "x"),
		executes(16, 7, 2, "/opt/holdfast", "hook", "claude", "result"),
		report(event.ToolResult, "Bash", 7, "id", "a", "outcome", "ok"),
		wrote(1, "/w/later"),
		executes(17, 8, 1, "/usr/bin/later"),
	)
	if len(s.Tools) != 1 {
		t.Fatalf("%d calls", len(s.Tools))
	}
	c := s.Tools[0]
	if c.By != 1 || c.Main != 5 || !slices.Equal(c.Programs, []uint64{4, 5, 6}) || c.Status != "ok" || c.End.IsZero() || c.Among != 0 {
		t.Errorf("%+v", c)
	}
	if len(c.Own) != 1 || c.Own[0].Name != "/w/notes" || c.Own[0].What != "wrote" {
		t.Errorf("%+v", c.Own)
	}
}

// TestToolsFindTheirCommandInQuotes: an agent's command is found in the command line of
// the shell that it starts, however it is quoted there.
func TestToolsFindTheirCommandInQuotes(t *testing.T) {
	for _, tt := range []struct{ name, command, line string }{
		{"as it is", `echo 'it is' done`, `echo 'it is' done`},
		{"in single quotes, by a backslash", `echo 'it is' done`, `eval 'echo '\''it is'\'' done' < /dev/null`},
		{"in single quotes, by double ones", `echo 'it is' done`, `eval 'echo '"'"'it is'"'"' done' \< /dev/null && pwd -P >| /tmp/cwd`},
		{"in double quotes", `echo "$HOME" 'x' \ done`, `eval "echo \"\$HOME\" 'x' \\ done"`},
		{"with dollar quotes", "printf 'a\nb'\techo", `eval $'printf \'a\nb\'\techo'`},
		{"over two lines", "cat <<'END'\nit's\nEND", "cat <<'END'\nit's\nEND"},
		{"with spaces around", "  make 'x'\n", `bash -c "make 'x'"`},
	} {
		arguments, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		s := play(
			executes(10, 1, 0, "/opt/claude"),
			executes(12, 3, 1, "/opt/holdfast", "hook", "claude", "call"),
			report(event.ToolCall, "Bash", 3, "id", "a", "arguments", string(arguments)),
			executes(13, 4, 1, "/usr/bin/git", "status"),
			executes(14, 5, 1, "/bin/bash", "-c", tt.line),
		)
		if got := s.Tools[0].Main; got != 5 {
			t.Errorf("%s: joined to program %d, want 5", tt.name, got)
		}
	}
}

func TestToolsAtTheSameTimeSaySo(t *testing.T) {
	s := play(
		executes(10, 1, 0, "/opt/claude"),
		executes(12, 3, 1, "/opt/holdfast", "hook", "claude", "call"),
		report(event.ToolCall, "Bash", 3, "id", "a"),
		report(event.ToolCall, "Read", 3, "id", "b"),
		executes(14, 5, 1, "/bin/bash"),
		report(event.ToolResult, "Read", 3, "id", "b"),
		report(event.ToolResult, "Bash", 3, "id", "a"),
	)
	if len(s.Tools) != 2 || s.Tools[0].Among != 1 || s.Tools[1].Among != 1 || len(s.Tools[0].Programs) != 1 || len(s.Tools[1].Programs) != 1 {
		t.Errorf("%+v %+v", s.Tools[0], s.Tools[1])
	}
	if s.Tools[1].End.After(s.Tools[0].End) {
		t.Error("results went to the wrong calls")
	}
}

func TestDeniedToolsHaveNothing(t *testing.T) {
	denied := report(event.ToolCall, "Bash", 3, "id", "a", "reason", "no")
	denied.Verdict, denied.Rule = event.Denied, "p.yaml:3"
	lost := event.Event{Sensor: event.Agent, Action: event.ToolLost, Object: "claude", Detail: map[string]string{"reason": "x"}}
	s := play(executes(10, 1, 0, "/opt/claude"), executes(12, 3, 1, "/opt/holdfast", "hook", "claude", "call"), denied, executes(13, 4, 1, "/usr/bin/x"), lost)
	if c := s.Tools[0]; !c.Denied || c.Rule != "p.yaml:3" || c.Reason != "no" || len(c.Programs) != 0 {
		t.Errorf("%+v", c)
	}
	if len(s.Notes) != 1 || len(s.Refusals) != 1 {
		t.Errorf("%+v %+v", s.Notes, s.Refusals)
	}
}

// An agent outside has no process in the record.
func TestToolsOfAnAgentOutside(t *testing.T) {
	s := play(report(event.ToolCall, "shell", 0), report(event.ToolCall, "shell", 0), report(event.ToolResult, "shell", 0))
	if len(s.Tools) != 2 || s.Tools[0].End.IsZero() || !s.Tools[1].End.IsZero() {
		t.Errorf("%+v", s.Tools)
	}
}
