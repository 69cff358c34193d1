package detect

import (
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestProgramsThatRunAreNotForgotten has an install script execute programs
// without end, in order to be taken for something else afterwards.
func TestProgramsThatRunAreNotForgotten(t *testing.T) {
	exec := func(pid int, n, parent uint64, errno string, argv ...string) event.Event {
		return event.Event{Action: event.ProcExec, Object: argv[0], Error: errno,
			Process: event.Process{PID: pid, Exec: n, ParentExec: parent, Executable: "/usr/bin/" + argv[0], Argv: argv}}
	}
	key := func(pid int, n uint64) event.Event {
		return event.Event{Action: event.FileLookup, Object: "/home/bob/.ssh/id_rsa", Verdict: event.Denied, Layer: event.LayerView,
			Process: event.Process{PID: pid, Exec: n}}
	}
	for _, tt := range []struct {
		name string
		by   event.Event
		wait []event.Event // before the executions
	}{
		{"the script itself", key(11, 2), nil},
		{"a sensor that knows the process alone", key(11, 0), nil},
		{"a child that executed nothing", key(12, 2), []event.Event{
			{Action: event.ProcSeen, Process: event.Process{PID: 12, Exec: 2, Parent: 11, ParentExec: 2}}, {Action: event.ProcExit, Process: event.Process{PID: 11, Exec: 2}}}},
		{"after an execution that was foreseen to fail", key(11, 2), []event.Event{exec(11, 3, 1, "ENOENT", "none")}},
		{"after executions that came to nothing", key(11, 2), []event.Event{
			exec(11, 3, 1, "", "broken"), {Action: event.ProcSeen, Process: event.Process{PID: 11, Exec: 2}},
			exec(11, 4, 1, "", "broken"), {Action: event.ProcSeen, Process: event.Process{PID: 11, Exec: 2}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var raised []string
			e, err := New(Config{Raise: func(a Alert) { raised = append(raised, a.Rule) }, Place: Place{Home: "/home/you", Workspace: "/home/you/project"}})
			if err != nil {
				t.Fatal(err)
			}
			events := append([]event.Event{exec(10, 1, 0, "", "npm", "ci"), exec(11, 2, 1, "", "sh", "-c", "node x.js")}, tt.wait...)
			for i := range 3 * programs {
				pid, n := 100+i, uint64(10+i)
				events = append(events, exec(pid, n, 1, "", "true"), event.Event{Action: event.ProcExit, Process: event.Process{PID: pid, Exec: n}})
			}
			for _, ev := range append(events, tt.by) {
				e.Observe(ev)
			}
			found := false
			for _, r := range raised {
				found = found || r == "install-script"
			}
			if !found {
				t.Errorf("raised %v", raised)
			}
			if len(e.programs.held) > 6 || len(e.programs.pids) > 6 {
				t.Errorf("%d programs of %d processes are held", len(e.programs.held), len(e.programs.pids))
			}
		})
	}
}

// TestProcessesAreBounded has processes that never end.
func TestProcessesAreBounded(t *testing.T) {
	var all table
	for i := range 3 * keptProcesses {
		all.addProgram(&Place{}, &event.Event{Action: event.ProcExec, Process: event.Process{PID: i + 1, Exec: uint64(i + 1)}})
	}
	if len(all.pids) > keptProcesses || len(all.held) > 2*keptProcesses {
		t.Errorf("%d programs of %d processes are held", len(all.held), len(all.pids))
	}
}
