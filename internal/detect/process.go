package detect

import (
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Limits of what is remembered of programs: the last ones that were executed. A
// power of two.
const (
	programs      = 4096
	keptArguments = 16
	keptBytes     = 512 // of the arguments of one
	keptPath      = 256 // the last bytes of a path
)

// program is an executed program. Events of files and sockets name it only by
// its number.
type program struct {
	event.Process
	is trait
}

// table holds the last programs by their number, and those that a process runs
// for as long as it runs them: a process that executes others without end must
// not be forgotten because of them.
type table struct {
	kept []program         // by number modulo programs; grows as needed
	pids map[int][2]uint64 // what a process executed last, and before: an execution may fail
	held map[uint64]*heldProgram
}

// heldProgram is a program that processes run, or ran before what they run now.
type heldProgram struct {
	program
	by int
}

// keptProcesses is how many processes have a known program.
const keptProcesses = 8192

// addProgram notes a program and classifies it.
func (t *table) addProgram(place *Place, e *event.Event) *program {
	p := &e.Process
	is := t.below(place.program(p, e.Object), p.ParentExec)
	if before, _ := strconv.ParseUint(e.Detail["replaces"], 10, 64); before != p.ParentExec {
		is = t.below(is, before)
	}
	if parent := t.get(p.ParentExec); parent != nil {
		if parent.is&(installs|inInstall) != 0 {
			is |= inInstall
		}
		if parent.is&shell != 0 && slices.ContainsFunc(parent.Argv, func(a string) bool { return a == "ldd" || strings.HasSuffix(a, "/ldd") }) {
			is |= listed
		}
	}
	if p.Exec == 0 {
		return &program{Process: *p, is: is}
	}
	at := int(p.Exec & (programs - 1))
	for at >= len(t.kept) {
		t.kept = append(t.kept, make([]program, min(max(64, len(t.kept)), programs-len(t.kept)))...)
	}
	one := &t.kept[at]
	*one = program{*p, is}
	one.Argv, one.Executable, one.Cwd = shortenArgv(p.Argv), pathTail(p.Executable), pathTail(p.Cwd)
	if e.Error == "" {
		t.runs(p.PID, p.Exec)
	}
	return one
}

// below removes from a program the marks that it has only by name if an agent
// started it through something else: a command that starts an agent is a
// command. A forgotten program is not trusted.
func (t *table) below(is trait, exec uint64) trait {
	above := t.get(exec)
	switch {
	case exec == 0:
		return is
	case above == nil:
		return is &^ agent
	case above.is&underAgent != 0, above.is&agent != 0 && is&agent == 0:
		return is&^agent | underAgent
	}
	return is
}

// runs notes that a process executes a program from here on.
func (t *table) runs(pid int, exec uint64) {
	if t.pids == nil {
		t.pids, t.held = map[int][2]uint64{}, map[uint64]*heldProgram{}
	}
	old, known := t.pids[pid]
	if exec == 0 || old[0] == exec {
		return
	}
	if !known && len(t.pids) >= keptProcesses {
		for other := range t.pids {
			t.removeProcess(other)
			break
		}
	}
	if h := t.held[exec]; h != nil {
		h.by++
	} else if p := t.get(exec); p != nil {
		t.held[exec] = &heldProgram{*p, 1}
	} else {
		return
	}
	t.pids[pid] = [2]uint64{exec, old[0]}
	t.release(old[1])
}

func (t *table) release(exec uint64) {
	if h := t.held[exec]; h != nil {
		if h.by--; h.by == 0 {
			delete(t.held, exec)
		}
	}
}

func (t *table) get(exec uint64) *program {
	at := int(exec & (programs - 1))
	if exec != 0 && at < len(t.kept) && t.kept[at].Exec == exec {
		return &t.kept[at]
	}
	if h := t.held[exec]; h != nil {
		return &h.program
	}
	return nil
}

// processProgram is the program of a process, even if only the event knows it.
func (t *table) processProgram(place *Place, p *event.Process) *program {
	exec := p.Exec
	if exec == 0 {
		exec = t.pids[p.PID][0]
	}
	if known := t.get(exec); known != nil || p.Executable == "" {
		return known
	}
	return &program{*p, place.program(p, "")}
}

// removeProcess forgets a process: its number will be reused.
func (t *table) removeProcess(pid int) {
	for _, exec := range t.pids[pid] {
		t.release(exec)
	}
	delete(t.pids, pid)
}

// pathTail is the end of a long path, without keeping the whole in memory.
func pathTail(path string) string {
	if len(path) <= keptPath {
		return path
	}
	return strings.Clone(path[len(path)-keptPath:])
}

func shortenArgv(argv []string) []string {
	left := keptBytes
	for i, a := range argv {
		if left -= len(a); left < 0 || i == keptArguments {
			return slices.Clone(argv[:i]) // frees the rest
		}
	}
	return argv
}
