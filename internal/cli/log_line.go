package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// liner shows events in one line each. It remembers which program has which
// number, for only its execution says so.
type liner struct {
	a       *command.App
	session bool // name the session
	names   map[uint64]string
	runs    map[int]uint64 // program that a process runs: not every sensor knows it
}

// maxNames is how many programs a liner remembers.
const maxNames = 100_000

func newLiner(a *command.App) *liner {
	return &liner{a: a, names: map[uint64]string{}, runs: map[int]uint64{}}
}

// learn takes in what an event of a process says.
func (l *liner) learn(e event.Event) {
	p := e.Process
	if p.Exec == 0 || e.Error != "" || e.Action == event.ProcExit || len(l.names) >= maxNames || len(l.runs) >= maxNames {
		return
	}
	l.runs[p.PID] = p.Exec
	if e.Action == event.ProcExec {
		l.names[p.Exec] = programName(p.Executable, p.Argv, e.Object)
	}
}

// forget takes in that a process is gone.
func (l *liner) forget(e event.Event) {
	if e.Action == event.ProcExit {
		delete(l.runs, e.Process.PID)
	}
}

// programName is what a program is called in a line.
func programName(executable string, argv []string, object string) string {
	for _, name := range append([]string{executable, object}, argv...) {
		if name != "" {
			return path.Base(name)[:min(len(path.Base(name)), 64)]
		}
	}
	return "?"
}

// line shows an event in one line, with its end.
func (l *liner) line(e event.Event) string {
	var b strings.Builder
	if l.session {
		b.WriteString(text.Line(e.Session) + "  ")
	}
	fmt.Fprintf(&b, "%s  %s  %s", e.Time.Local().Format("15:04:05.000"), l.verdict(e), l.subject(e))
	if e.Resolved != "" && e.Resolved != e.Object {
		b.WriteString(" → " + words.Cut(e.Resolved, 400))
	}
	if to := e.Detail["to"]; to != "" {
		b.WriteString(" to " + words.Cut(to, 400))
	}
	if why := because(e); why != "" {
		b.WriteString("  [" + why + "]")
	}
	if rest := details(e); rest != "" {
		b.WriteString("  " + rest)
	}
	if who := l.who(e); who != "" {
		b.WriteString("  " + l.a.Tint(command.Grey, who))
	}
	fmt.Fprintf(&b, "  %s\n", l.a.Tint(command.Grey, fmt.Sprintf("#%d", e.Seq)))
	return b.String()
}

func (l *liner) verdict(e event.Event) string {
	switch e.Verdict {
	case event.Denied:
		return l.a.Tint(command.Red, "denied ")
	case event.Allowed:
		return "allowed"
	}
	kind, _, _ := strings.Cut(e.Action, ".")
	switch e.Action {
	case event.ApprovalRequest:
		return l.a.Tint(command.Yellow, "asked  ")
	case event.ApprovalRevoke, event.ApprovalExpire:
		return "-      "
	}
	switch kind {
	case "record", "alert", "session":
		return "-      " // it is no attempt
	}
	return l.a.Tint(command.Yellow, "unknown")
}

// subject is what was done to what.
func (l *liner) subject(e event.Event) string {
	object := ""
	if e.Object != "" {
		object = " " + words.Cut(e.Object, 400)
	}
	switch e.Action {
	case event.ApprovalRequest, event.ApprovalAnswer, event.ApprovalUse, event.ApprovalRule:
		if e.Detail["kind"] == string(event.KindExec) && len(e.Process.Argv) > 0 {
			object += ": " + words.CommandLine(e.Process.Argv, 0, 400)
		}
	case event.ProcExec:
		object += ": " + words.CommandLine(e.Process.Argv, 0, 400)
		if e.Process.Cwd != "" {
			object += "  in " + words.Cut(e.Process.Cwd, 200)
		}
	case event.AlertRaise:
		return l.a.Tint(command.Red, text.Word(e.Action)+object)
	}
	return text.Word(e.Action) + object
}

// because is what denied, which rule, and what the asker got.
func because(e event.Event) string {
	var parts []string
	for _, s := range []string{e.Layer, e.Error, e.Rule} {
		if s != "" {
			parts = append(parts, text.Word(s))
		}
	}
	return strings.Join(parts, ", ")
}

// details are those that the line does not show otherwise, sorted.
func details(e event.Event) string {
	var parts []string
	for k, v := range e.Detail {
		if k != "to" && k != "to_resolved" && v != "" {
			parts = append(parts, text.Word(k)+"="+words.Cut(v, 200))
		}
	}
	slices.Sort(parts)
	if len(parts) > 12 {
		parts = append(parts[:12], fmt.Sprintf("… (%d more)", len(parts)-12))
	}
	return strings.Join(parts, " ")
}

// who is the program and process that asked.
func (l *liner) who(e event.Event) string {
	p := e.Process
	if e.Action == event.ProcExec {
		return strings.TrimSuffix(fmt.Sprintf("pid %d, %s", p.PID, l.process(p.ParentExec, p.Parent)), ", ")
	}
	return l.process(p.Exec, p.PID)
}

func (l *liner) process(exec uint64, pid int) string {
	if exec == 0 {
		exec = l.runs[pid]
	}
	name := l.names[exec]
	switch {
	case pid == 0 && name == "":
		return ""
	case name == "":
		return fmt.Sprintf("by pid %d", pid)
	case pid == 0:
		return "by " + text.Word(name)
	}
	return fmt.Sprintf("by %s (pid %d)", text.Word(name), pid)
}

// always are names that nearly every program looks for when it starts, by the
// dynamic loader, libselinux or the runtime of Go, and that no ordinary view has.
// They say nothing about the program, and stand last among what was refused.
var always = map[string]bool{
	"/etc/ld.so.preload": true, "/etc/selinux/config": true, "/selinux": true, "/sys/fs/selinux": true,
	"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size": true,
}

// usual reports whether nearly every program is refused a name when it starts.
func usual(name string) bool { return always[name] }
