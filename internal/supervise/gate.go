//go:build linux

package supervise

import (
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// gated reports whether a rule of consent can be about attempts of a kind. Where
// none is, nothing else in this file is reached.
func (s *Supervisor) gated(k event.Kind) bool {
	return s.config.Gate != nil && s.config.Wants != nil && s.config.Wants(k)
}

// refuse makes the answer of a call this error, as a rule of consent wants it.
func (c *call) refuse(r event.Ruling) {
	c.refused, c.refusal, c.layer, c.rule = true, unix.EACCES, event.LayerConsent, r.Rule
	c.noteUnlisted(r)
	if r.Reason != "" {
		c.add("reason", r.Reason)
	}
}

// noteUnlisted notes the file that the policy's list of programs does not have.
func (c *call) noteUnlisted(r event.Ruling) {
	if r.Unlisted != "" {
		c.add("unlisted", r.Unlisted)
	}
}

// refusedBy writes into an event that the call was refused.
func (c *call) refusedBy(e *event.Event) {
	e.Verdict, e.Layer, e.Rule, e.Error = event.Denied, event.LayerFilter, c.rule, unix.ErrnoName(c.refusal)
	if c.layer != "" {
		e.Layer = c.layer
	}
}

// attempt is l as the rules of consent see it.
func (l *execCall) attempt() event.Attempt {
	a := event.Attempt{Kind: event.KindExec, Process: l.event.Process, ParentExecutable: l.call.proc.now.path,
		Path: l.event.Object, Cut: l.cut}
	a.Process.PID, a.Process.Parent, a.Process.ParentExec = l.call.proc.pid, l.call.proc.parent, l.call.proc.parents.exec
	for _, im := range l.images[min(1, len(l.images)):max(1, len(l.images)-1)] {
		a.Between = append(a.Between, im.path)
	}
	if len(l.images) > 1 {
		a.Script, a.Interpreted = l.images[0].path, l.interpreted()
		if l.images[0].have {
			a.ScriptSHA256 = l.images[0].sum.hex()
		}
	}
	a.EnvironmentUnknown = true
	return a
}

// interpreted is what the kernel puts between the executable and the arguments
// that a script was given (execve(2)).
func (l *execCall) interpreted() []string {
	argv := l.commandLine()
	return argv[1 : len(argv)-max(len(l.event.Process.Argv), 1)+1]
}

// consent asks the rules of consent about an execution. It waits when a human has
// to say: then nothing is answered yet.
func (s *Supervisor) consent(l *execCall) (waits bool) {
	c := &l.call
	switch {
	case c.refused || s.failed.err() != nil:
		return false
	case l.doomed && l.event.Error == "ENOENT":
		// It will find nothing: what it may find in a moment was not judged.
		l.errno = unix.ENOENT
		return false
	case l.doomed || !l.isJudgeable():
		l.trace = true // the result is judged, if it succeeds
		return false
	case l.was != nil:
		if l.was.env != nil {
			s.environment(l)
		}
		if what := l.findDifference(l.was); what != "" {
			c.refuse(event.Ruling{Rule: l.ruling.Rule, Reason: "what it would execute changed while it waited: " + what})
			return false
		}
		l.trace = true
		return false
	}
	if r, just := l.recentRefusal(); just {
		c.refuse(r)
		return false
	}
	a := l.attempt()
	a.Command = c.proc.now.is == s.first // the boundary's own first program executes nothing else
	about := s.about(a)
	if about {
		s.environment(l)
		s.baseEnv.writeTo(&a, l.env.list, l.env.isComplete())
	}
	r := s.config.Gate.Judge(a)
	c.noteUnlisted(r)
	switch {
	case r.Verdict == event.Allowed:
		l.trace = r.Granted || about
		return false
	case r.Verdict == event.Unknown && r.Wait != nil:
		rest := event.Ruling{Rule: r.Rule}
		if s.holdCall(c, r, func(r event.Ruling) { s.resumed(l, r, rest) }) {
			return true
		}
		r.Reason = tooMany
	}
	c.refuse(r)
	return false
}

// retried is how long a refusal applies to the same process.
const retried = 2 * time.Second

// remember keeps l for again, when a rule of consent refuses it.
func (l *execCall) remember(now int64) {
	if c := &l.call; c.layer == event.LayerConsent && c.refusal == unix.EACCES {
		c.now, c.proc.refused = now, l
	}
}

// recentRefusal returns a recent refusal if l is the same execution again, by another path:
// a search along PATH (execvp) finds the same program in several directories, and
// continues after EACCES.
func (l *execCall) recentRefusal() (event.Ruling, bool) {
	was := l.call.proc.refused
	if was == nil || l.call.now-was.call.now > int64(retried) || !slices.Equal(l.event.Process.Argv, was.event.Process.Argv) ||
		l.cut || l.event.Process.Cwd != was.event.Process.Cwd || len(l.images) != len(was.images) {
		return event.Ruling{}, false
	}
	for i, im := range l.images {
		if im.is != was.images[i].is {
			return event.Ruling{}, false
		}
	}
	return event.Ruling{Rule: was.call.rule, Reason: was.call.detail["reason"], Unlisted: was.call.detail["unlisted"]}, true
}

// about reports whether a rule could match the program of a with other arguments: then
// these are checked again when it runs.
func (s *Supervisor) about(a event.Attempt) bool {
	if s.config.About == nil {
		return true
	}
	a.Process.Argv, a.Cut = nil, true
	return s.config.About(a)
}

// isJudgeable reports whether it is known what will be executed.
func (l *execCall) isJudgeable() bool {
	return l.event.Verdict == event.Allowed && len(l.images) > 0 && !l.unread
}

// resumed continues an execution that waited. The lock is held.
func (s *Supervisor) resumed(l *execCall, r, asked event.Ruling) {
	if r.Rule == "" {
		r.Rule = asked.Rule
	}
	c := &l.call
	if r.Verdict != event.Allowed || !s.listener.valid(c.id) {
		c.refuse(r)
		s.conclude(l)
		return
	}
	// Everything is read again: what the human saw must still be the case.
	now := call{notification: c.notification, now: s.now(), tid: c.tid, info: c.info}
	if now.proc = s.caller(&now); now.killed {
		s.forgetHeld(c)
		s.listener.answer(c.id, unix.EPERM)
		return
	}
	now.noteUnlisted(event.Ruling{Unlisted: c.detail["unlisted"]})
	next := &execCall{call: now, event: event.Event{Action: event.ProcExec, Verdict: event.Allowed}, was: l, ruling: r}
	s.prepare(next)
}

// findDifference says what in l has changed.
func (l *execCall) findDifference(was *execCall) string {
	a, b := &l.event, &was.event
	switch {
	case a.Object != b.Object || a.Resolved != b.Resolved:
		return "the path"
	case !slices.Equal(a.Process.Argv, b.Process.Argv) || l.cut != was.cut:
		return "its arguments"
	case a.Process.Cwd != b.Process.Cwd:
		return "the working directory"
	case was.env != nil && !l.env.same(was.env):
		return "its environment"
	case len(l.images) != len(was.images):
		return "the executable"
	case l.call.proc.now.path != was.call.proc.now.path:
		return "the program that asks"
	}
	for i, im := range l.images {
		if o := was.images[i]; im.path != o.path || im.is != o.is || im.sum != o.sum || im.have != o.have || im.line != o.line {
			return "the executable"
		}
	}
	return ""
}

// judgeRunning asks the rules about what runs already, or is about to, though
// something else was judged. No human is asked about it: it is allowed or killed.
func (s *Supervisor) judgeRunning(c *call, p *proc, e *event.Event) bool {
	if !s.gated(event.KindExec) {
		return true
	}
	a := event.Attempt{Kind: event.KindExec, Process: e.Process, ParentExecutable: p.parents.path, Path: e.Object, Cut: e.Detail["argc"] != ""}
	env, whole := s.readList(p, "environ", argvKept)
	s.baseEnv.writeTo(&a, split(env), whole)
	r := s.config.Gate.Judge(a)
	if r.Unlisted != "" {
		e.Detail["unlisted"] = r.Unlisted
	}
	if r.Verdict == event.Allowed {
		return true
	}
	if r.Wait != nil { // withdraw the question
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		go r.Wait(ctx)
	}
	reason := "it is not what was judged"
	if r.Reason != "" {
		reason += ": " + r.Reason
	}
	e.Verdict, e.Layer, e.Rule = event.Denied, event.LayerConsent, r.Rule
	e.Detail["reason"] = reason
	s.kill(c, p)
	return false
}

// judgeUnseen asks the rules about a process of whose program nothing was seen: its
// parent runs something else, or ended before it did anything. That one may have
// executed something else than was judged, and left all the rest to a child.
func (s *Supervisor) judgeUnseen(c *call, p *proc) {
	if s.first == (identity{}) {
		s.first = p.now.is // before anything that was asked for runs
	}
	if !s.gated(event.KindExec) {
		return
	}
	p.looked = true
	if p.parent == s.table.self || p.pid == s.config.Root || p.now.is == s.first || s.judged[p.now.is] {
		return
	}
	e := event.Event{Action: event.ProcExec, Object: p.now.path, Verdict: event.Allowed, Process: p.full(), Detail: map[string]string{"unknown": "exec: it was not seen"}}
	e.Process.Argv = s.commandLine(p)
	e.Process.SHA256, _ = s.hashes.running(p, p.now.is) // without it the rules take the program for anything
	if !s.judgeRunning(c, p, &e) {
		s.execs++
		p.known, p.now.exec, e.Process.Exec = true, s.execs, s.execs
		s.observe(&e)
	}
}

// allow remembers that the rules of consent let an executable run.
func (s *Supervisor) allow(is identity) {
	if !s.gated(event.KindExec) {
		return
	}
	if s.judged == nil || len(s.judged) >= maxHashes {
		s.judged = map[identity]bool{}
	}
	s.judged[is] = true
}

// kill ends the process of a call that waits for its answer, or is traced.
func (s *Supervisor) kill(c *call, p *proc) {
	c.killed = true
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	} else {
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

// tooMany is why something is refused without a question.
var tooMany = "more than " + strconv.Itoa(maxHeld) + " calls already wait for an answer"
