// Package lines shows an event in one line, as log query and holdfast approve do:
// [New] makes a [Formatter], which remembers the programs that went by. It reads no
// record and prints nothing.
package lines

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Formatter shows events in one line each. It remembers which program has which number,
// because only the event of its execution says so.
type Formatter struct {
	a       *command.App
	tinted  bool // stdout shows colours: to ask a terminal for each line takes longer than the line
	Session bool // name the session
	names   map[uint64]string
	runs    map[int]uint64 // program that a process runs: not every sensor knows it
}

func (l *Formatter) tint(colour, s string) string {
	if !l.tinted {
		return s
	}
	return l.a.Tint(colour, s)
}

// maxNames is how many programs a Formatter remembers.
const maxNames = 100_000

// New makes a Formatter that colours by the streams of a.
func New(a *command.App) *Formatter {
	return &Formatter{a: a, tinted: a.Tint(command.Grey, "x") != "x", names: map[uint64]string{}, runs: map[int]uint64{}}
}

// Learn takes in what an event of a process says, and keeps copies of its texts alone.
func (l *Formatter) Learn(e event.Event) {
	p := e.Process
	if p.Exec == 0 || e.Error != "" || e.Action == event.ProcExit || len(l.names) >= maxNames || len(l.runs) >= maxNames {
		return
	}
	l.runs[p.PID] = p.Exec
	if e.Action == event.ProcExec {
		l.names[p.Exec] = strings.Clone(ProgramName(p.Executable, p.Argv, e.Object))
	}
}

// Forget takes in that a process is gone.
func (l *Formatter) Forget(e event.Event) {
	if e.Action == event.ProcExit {
		delete(l.runs, e.Process.PID)
	}
}

// ProgramName is what a program is called in a line.
func ProgramName(executable string, argv []string, object string) string {
	for _, name := range append([]string{executable, object}, argv...) {
		if name != "" {
			return path.Base(name)[:min(len(path.Base(name)), 64)]
		}
	}
	return "?"
}

// Line shows an event in one line, with its end.
func (l *Formatter) Line(e event.Event) string {
	var b strings.Builder
	b.Grow(256)
	if l.Session {
		b.WriteString(text.Line(e.Session) + "  ")
	}
	b.WriteString(e.Time.Local().Format("15:04:05.000") + "  " + l.Verdict(e) + "  " + l.Subject(e))
	if e.Resolved != "" && e.Resolved != e.Object {
		b.WriteString(" → " + words.Cut(e.Resolved, 400))
	}
	if to := e.Detail["to"]; to != "" {
		b.WriteString(" to " + words.Cut(to, 400))
	}
	if why := Because(e); why != "" {
		b.WriteString("  [" + why + "]")
	}
	if rest := Details(e); rest != "" {
		b.WriteString("  " + rest)
	}
	if who := l.subjectProcess(e); who != "" {
		b.WriteString("  " + l.tint(command.Grey, who))
	}
	b.WriteString("  " + l.tint(command.Grey, "#"+strconv.FormatUint(e.Seq, 10)) + "\n")
	return b.String()
}

// Verdict is what became of an event, in a word.
func (l *Formatter) Verdict(e event.Event) string {
	switch e.Verdict {
	case event.Denied:
		return l.tint(command.Red, "denied ")
	case event.Allowed:
		return "allowed"
	}
	kind, _, _ := strings.Cut(e.Action, ".")
	switch e.Action {
	case event.ApprovalRequest:
		return l.tint(command.Yellow, "asked  ")
	case event.ApprovalRevoke, event.ApprovalExpire:
		return "-      "
	}
	switch kind {
	case "record", "alert", "session":
		return "-      " // it is not an attempt
	}
	return l.tint(command.Yellow, "unknown")
}

// Subject is what was done to what.
func (l *Formatter) Subject(e event.Event) string {
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
		return l.tint(command.Red, text.Word(e.Action)+object)
	}
	return text.Word(e.Action) + object
}

// Because is what denied, which rule, and what the asker got.
func Because(e event.Event) string {
	var parts []string
	for _, s := range []string{e.Layer, e.Error, e.Rule} {
		if s != "" {
			parts = append(parts, text.Word(s))
		}
	}
	return strings.Join(parts, ", ")
}

// Details are those that the line does not show otherwise, sorted.
func Details(e event.Event) string {
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

// subjectProcess names the program and process that caused an event.
func (l *Formatter) subjectProcess(e event.Event) string {
	p := e.Process
	if e.Action == event.ProcExec {
		return strings.TrimSuffix(fmt.Sprintf("pid %d, %s", p.PID, l.process(p.ParentExec, p.Parent)), ", ")
	}
	return l.process(p.Exec, p.PID)
}

func (l *Formatter) process(exec uint64, pid int) string {
	if exec == 0 {
		exec = l.runs[pid]
	}
	name := l.names[exec]
	switch {
	case pid == 0 && name == "":
		return ""
	case name == "":
		return "by pid " + strconv.Itoa(pid)
	case pid == 0:
		return "by " + text.Word(name)
	}
	return "by " + text.Word(name) + " (pid " + strconv.Itoa(pid) + ")"
}

// startupNames are names that nearly every program looks for when it starts, by the
// dynamic loader, libselinux or the runtime of Go, and that no ordinary view has. They
// reveal nothing about the program, and are listed last among the refusals.
var startupNames = map[string]bool{
	"/etc/ld.so.preload": true, "/etc/selinux/config": true, "/selinux": true, "/sys/fs/selinux": true,
	"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size": true,
}

// Usual reports whether nearly every program is refused a name when it starts.
func Usual(name string) bool { return startupNames[name] }
