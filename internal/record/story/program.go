package story

import (
	"cmp"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

const (
	maxArgv = 64      // arguments of a program that are kept
	maxRuns = 100_000 // processes that are followed at a time
)

// process takes executions and ends.
func (b *Builder) process(e *event.Event) {
	p := e.Process
	switch e.Action {
	case event.ProcExec:
		b.addProgram(e)
	case event.ProcSeen:
		if of := b.programs[p.Exec]; of != nil && b.runs[p.PID] != p.Exec && len(b.runs) < maxRuns {
			of.Forks++
			b.runs[p.PID] = p.Exec
		}
	case event.ProcExit:
		of := b.programOf(e)
		delete(b.runs, p.PID)
		if of == nil || of.PID != p.PID {
			return
		}
		of.End = e.Time
		of.Status, of.Signal = b.retain(e.Detail["status"]), b.retain(e.Detail["signal"])
	}
}

// addProgram adds an execution. One that was denied or failed makes no program:
// it is an attempt of the calling program.
func (b *Builder) addProgram(e *event.Event) {
	p := e.Process
	by := b.parentOf(e)
	if e.Verdict == event.Denied || e.Error != "" {
		if of := b.programs[by]; of != nil {
			b.addFailedExec(of, e)
		}
		return
	}
	if p.Exec == 0 || b.programs[p.Exec] != nil {
		return
	}
	replaces := b.programs[b.runs[p.PID]]
	if len(b.programs) >= b.limits.Programs || !b.admit(len(p.Cwd)+len(p.Argv), ofPrograms) {
		b.s.Left.Programs++
		delete(b.runs, p.PID) // what it does must not count for the one before
		return
	}
	of := &Program{
		Exec: p.Exec, Parent: by, PID: p.PID, Asked: b.retain(e.Object), Executable: b.retain(p.Executable), SHA256: b.retain(p.SHA256), Cwd: b.retain(p.Cwd),
		Seq: e.Seq, Begin: e.Time,
	}
	of.Argv, of.ArgvLeft = b.arguments(p.Argv)
	if replaces != nil && replaces.PID == p.PID {
		replaces.Replaced = true
	}
	b.programs[p.Exec], b.runs[p.PID] = of, p.Exec
	b.s.Programs = append(b.s.Programs, of)
	b.addStarted(of)
}

// arguments are the first ones of a command line, and how many there are besides.
func (b *Builder) arguments(argv []string) (kept []string, left int) {
	for _, a := range argv[:min(len(argv), maxArgv)] {
		kept = append(kept, b.retain(a))
	}
	return kept, len(argv) - len(kept)
}

// parentOf is the calling program: the one that the process ran before, or else
// its parent's.
func (b *Builder) parentOf(e *event.Event) uint64 {
	if before, known := b.runs[e.Process.PID]; known && before != e.Process.Exec {
		return before
	}
	if b.programs[e.Process.ParentExec] != nil {
		return e.Process.ParentExec
	}
	if e.Process.Exec != 0 && b.programs[e.Process.Exec] != nil { // the event names the calling program
		return e.Process.Exec
	}
	return 0
}

// execOf is the number of the program that an event belongs to, which not every
// sensor knows. 0 is none.
func (b *Builder) execOf(e *event.Event) uint64 {
	if e.Process.Exec != 0 || e.Process.PID == 0 {
		return e.Process.Exec
	}
	return b.runs[e.Process.PID]
}

// programOf is the program that an event belongs to; nil when it is not in the story.
func (b *Builder) programOf(e *event.Event) *Program { return b.programs[b.execOf(e)] }

func (b *Builder) addFailedExec(of *Program, e *event.Event) {
	if e.Verdict == event.Denied {
		b.addObject(of, (*Program).refusedList, foundPath(e), "", refusedAs(e))
		return
	}
	of.Failed++ // a search along PATH tries many that are not there
}

// listOf picks one list of a program.
type listOf func(*Program) (*Touched, byte)

func (p *Program) read() (*Touched, byte)        { return &p.Read, 'r' }
func (p *Program) wrote() (*Touched, byte)       { return &p.Wrote, 'w' }
func (p *Program) renamedList() (*Touched, byte) { return &p.Renamed, 'm' }
func (p *Program) removedList() (*Touched, byte) { return &p.Removed, 'd' }
func (p *Program) changedList() (*Touched, byte) { return &p.Changed, 'c' }
func (p *Program) reachedList() (*Touched, byte) { return &p.Reached, 's' }
func (p *Program) boundList() (*Touched, byte)   { return &p.Bound, 'b' }
func (p *Program) refusedList() (*Touched, byte) { return &p.Refused, 'x' }

// addTouch adds an object to a list of the program of an event.
func (b *Builder) addTouch(e *event.Event, w listOf, name, to, what string) {
	if of := b.programOf(e); of != nil {
		b.addObject(of, w, name, to, what)
	}
}

// touch identifies an object in the lists of a program.
type touch struct {
	list     byte
	name, to string
	what     string
}

func (b *Builder) addObject(of *Program, w listOf, name, to, what string) {
	list, letter := w(of)
	if len(b.open) > 0 {
		b.addOwn(of, letter, name, to)
	}
	key := touch{letter, cutText(name), cutText(to), what}
	if i, known := of.touched[key]; known {
		list.Objects[i].Count++
		return
	}
	if len(list.Objects) >= b.limits.Each || !b.admit(len(name)+len(to), ofFiles) {
		list.More++
		return
	}
	if of.touched == nil {
		of.touched = map[touch]int{}
	}
	key.name, key.to, key.what = b.retain(name), b.retain(to), b.retain(what)
	of.touched[key] = len(list.Objects)
	list.Objects = append(list.Objects, Object{Name: key.name, To: key.to, Count: 1, What: key.what})
}

// refusedAs says in a few words what was refused.
func refusedAs(e *event.Event) string {
	return strings.Join(slices.DeleteFunc([]string{e.Action, e.Layer, e.Error}, func(w string) bool { return w == "" }), " ")
}

// foundPath is the object of an event as found, or else as requested.
func foundPath(e *event.Event) string { return cmp.Or(e.Resolved, e.Object) }
