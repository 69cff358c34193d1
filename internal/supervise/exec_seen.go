//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// recordProcess records a process at its first event that is not an execution, or that
// runs something other than was recorded; detail says which.
func (s *Supervisor) recordProcess(p *proc, detail map[string]string) {
	p.known = true
	s.running.Store(p.pid, p.now.exec)
	e := event.Event{Action: event.ProcSeen, Object: p.now.path, Verdict: event.Allowed, Process: p.full(), Detail: detail}
	if text, errno := s.resolver.linkOf(p, p.pid, "cwd"); errno == 0 {
		e.Process.Cwd = string(text)
	}
	if p.now.exec == 0 {
		// Nothing was seen of its beginning: it was there before, or its parent
		// died before it did anything.
		e.Process.Argv = s.commandLine(p)
		if p.parents.exec == 0 && e.Detail == nil {
			e.Detail = map[string]string{"unknown": "exec: which program started it"}
		}
	}
	s.observe(&e)
}

// commandLine is the command line that a process reports.
func (s *Supervisor) commandLine(p *proc) []string {
	return split(p.readEntry(p.pid, "cmdline", s.path[:]))
}

// split splits arguments, each of which ends in a zero byte.
func split(b []byte) (argv []string) {
	for len(b) > 0 {
		arg, rest, _ := bytes.Cut(b, []byte{0})
		argv = append(argv, string(arg))
		b = rest
	}
	return argv
}

// confirmExec finds out what became of the last execution of p, at its next call.
func (s *Supervisor) confirmExec(c *call, p *proc) {
	gated := s.gated(event.KindExec)
	if c.tid != p.pid && !gated {
		return // the thread that executed bears the number of the process after that
	}
	was := p.pending
	is, errno := s.resolver.running(p)
	if errno != 0 {
		if forbids(errno) {
			s.killHidden(c, p)
		}
		return
	}
	if c.tid != p.pid && is.file(was.before.is) {
		return // it may not have come to it yet; the same program again is nothing worse
	}
	if was.tid != p.pid && c.now-was.at < int64(time.Second) && is.file(was.before.is) && !is.file(was.is) {
		return // the first thread may still run what it ran, until the other is through
	}
	p.pending = nil
	switch {
	case was.is == is && !was.doomed && (was.untraced == 0 || s.runsWith(p, was)):
		p.now.is, p.apart = is, p.apart || !is.file(was.before.is)
	case is.file(was.before.is) && (was.doomed || !is.file(was.is)):
		p.now = was.before
		s.running.Store(p.pid, p.now.exec)
		if !was.doomed {
			s.recordProcess(p, map[string]string{"not_executed": strconv.FormatUint(was.exec, 10)})
		}
	default:
		s.recordMismatch(c, p, was, is)
	}
}

// recordMismatch records that a process runs something else than it asked for when
// it was looked at: the file was changed in between, or its name was, or what
// it is called with. False means that the rules of consent do not allow that,
// and that it was killed.
func (s *Supervisor) recordMismatch(c *call, p *proc, was *execution, is identity) bool {
	s.execs++
	next := program{exec: s.execs, is: is}
	if text, errno := s.resolver.linkOf(p, p.pid, "exe"); errno == 0 {
		next.path = string(text)
	}
	if was.doomed {
		p.runs(next)
	} else {
		p.now = next
	}
	p.known = true
	s.running.Store(p.pid, p.now.exec)
	e := event.Event{Action: event.ProcExec, Object: next.path, Verdict: event.Allowed, Process: p.full(),
		Detail: map[string]string{"instead_of": strconv.FormatUint(was.exec, 10)}}
	if text, whole := s.readList(p, "cmdline", argvKept); len(text) > 0 {
		e.Process.Argv = split(text)
		if !whole {
			e.Detail["argc"] = ">" + strconv.Itoa(len(e.Process.Argv))
		}
	}
	var err error
	if e.Process.SHA256, err = s.hashes.running(p, is); err != nil {
		e.Detail["unknown"] = "sha256: " + err.Error()
	}
	allowed := s.judgeRunning(c, p, &e)
	s.observe(&e)
	return allowed
}

// Exec returns the number of the program that a process runs, 0 if it is not known. Any
// goroutine may call it at any time, even one whose answer this receiver waits for: it
// waits for no call under way.
func (s *Supervisor) Exec(pid int) uint64 {
	if n, ok := s.running.Load(pid); ok {
		return n.(uint64)
	}
	return 0
}

// collect records the processes that have ended.
func (s *Supervisor) collect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failIf(s.watch.collect(s.ended))
}

// ended records the end of p and forgets it.
func (s *Supervisor) ended(p *proc) {
	if s.table.procs[p.pid] == p && p.known {
		e := event.Event{Action: event.ProcExit, Object: p.now.path, Verdict: event.Allowed, Process: p.eventProcess()}
		if ws, ok := s.watch.status(p); ok {
			e.Detail = exitDetail(ws)
		} else {
			e.Detail = map[string]string{"unknown": "status"}
		}
		s.observe(&e)
	}
	s.table.drop(p)
	s.running.Delete(p.pid)
	delete(s.inFlight, p.pid)
}

// exitDetail reports how a process ended, as a shell does.
func exitDetail(ws syscall.WaitStatus) map[string]string {
	if !ws.Signaled() {
		return map[string]string{"status": strconv.Itoa(ws.ExitStatus())}
	}
	name := unix.SignalName(ws.Signal())
	if name == "" {
		name = "signal " + strconv.Itoa(int(ws.Signal()))
	}
	return map[string]string{"status": strconv.Itoa(128 + int(ws.Signal())), "signal": name}
}
