package consent

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// How a request ends, and why something is denied without one: detail outcome.
const (
	outcomeAnswer  = "answer"
	outcomeTimeout = "timeout"
	outcomeGone    = "gone"
	outcomeClosed  = "closed"
	outcomeRecord  = "record"
	outcomeRule    = "rule"
	outcomeNobody  = "nobody"
	outcomeLimit   = "limit"
)

const (
	reasonClosed  = "the run ended before there was an answer"
	reasonGone    = "the asking program is gone"
	reasonTimeout = "nobody answered in time"
)

// event begins an event about an attempt: its texts are as they came, and the
// sink masks what is secret in them.
func (q *Queue) event(action string, a event.Attempt, rule string) event.Event {
	detail := map[string]string{"kind": string(a.Kind)}
	for key, value := range map[string]string{
		"operation": a.Operation, "to": a.To, "method": a.Method, "path": a.URLPath, "credential": a.Name,
		"agent": a.Agent, "server": a.Server, "arguments": a.Arguments, "script": a.Script, "started_by": a.ParentExecutable,
		"environment": variableNames(a.Environment),
	} {
		if value != "" {
			detail[key] = value
		}
	}
	return event.Event{
		Time: q.config.Now(), Session: q.config.Session, Sensor: event.Approve, Action: action,
		Object: object(a), Rule: rule, Process: a.Process, Detail: detail,
	}
}

// object is what an attempt is about, as its event names it.
func object(a event.Attempt) string {
	switch a.Kind {
	case event.KindConnect, event.KindRequest, event.KindCredential:
		return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	case event.KindTool:
		return a.Tool
	case event.KindExec:
		if a.Path == "" {
			return a.Process.Executable
		}
	}
	return a.Path
}

func (q *Queue) recordRequest(r Request) error {
	e := q.event(event.ApprovalRequest, r.Attempt, r.Rule)
	e.Detail["id"], e.Detail["digest"], e.Detail["expires"] = r.ID, r.Digest, stamp(r.Expires)
	if r.Reason != "" {
		e.Detail["reason"] = r.Reason
	}
	return q.config.Sink.Emit(e)
}

func (q *Queue) recordAnswer(r Request, v decision, g *grant) error {
	e := q.event(event.ApprovalAnswer, r.Attempt, r.Rule)
	e.Verdict, e.Layer = event.Denied, event.LayerConsent
	e.Detail["id"], e.Detail["digest"], e.Detail["outcome"] = r.ID, r.Digest, v.outcome
	if v.reason != "" {
		e.Detail["reason"] = v.reason
	}
	if r.Count > 1 {
		e.Detail["count"] = strconv.Itoa(r.Count)
	}
	if v.answer != nil {
		e.Detail["by"], e.Detail["via"], e.Detail["key"] = v.answer.By, v.answer.Via, fingerprint(v.key)
	}
	if g != nil {
		e.Verdict, e.Layer = event.Allowed, ""
		e.Detail["grant"], e.Detail["scope"], e.Detail["uses"] = g.ID, string(g.Scope), amount(g.Uses, g.Uses)
		if !g.Expires.IsZero() {
			e.Detail["expires"] = stamp(g.Expires)
		}
		if g.Covers.Directory {
			e.Detail["directory"] = g.Covers.Path
		}
	}
	return q.config.Sink.Emit(e)
}

func (q *Queue) recordUse(asked question, g Grant) error {
	e := q.event(event.ApprovalUse, asked.attempt, asked.rule)
	e.Verdict = event.Allowed
	e.Detail["grant"], e.Detail["left"], e.Detail["digest"], e.Detail["by"] = g.ID, g.usesLeft(), asked.digest, g.By
	return q.config.Sink.Emit(e)
}

// attempt is what a grant covers, for the record of its end.
func (c Covers) attempt() event.Attempt {
	return event.Attempt{
		Kind: c.Kind, Process: event.Process{Executable: c.Executable, SHA256: c.SHA256, Argv: slices.Clone(c.Argv), Cwd: c.Cwd},
		ParentExecutable: c.Parent, Path: c.Path, Script: c.Script, ScriptSHA256: c.ScriptSHA256, Interpreted: slices.Clone(c.Interpreted), Environment: slices.Clone(c.Environment), Operation: c.Operation, To: c.To,
		Host: c.Host, Port: c.Port, Protocol: c.Protocol, Method: c.Method, URLPath: c.URLPath, Name: c.Name,
		Agent: c.Agent, Server: c.Server, Tool: c.Tool,
	}
}

func (q *Queue) recordRevoke(g Grant, s Signed) error {
	e := q.event(event.ApprovalRevoke, g.Covers.attempt(), g.Rule)
	e.Detail["grant"], e.Detail["left"] = g.ID, g.usesLeft()
	e.Detail["by"], e.Detail["via"], e.Detail["key"] = s.Answer.By, s.Answer.Via, fingerprint(s.Key)
	if s.Answer.Reason != "" {
		e.Detail["reason"] = s.Answer.Reason
	}
	return q.config.Sink.Emit(e)
}

func (q *Queue) recordExpire(g Grant) error {
	e := q.event(event.ApprovalExpire, g.Covers.attempt(), g.Rule)
	e.Detail["grant"], e.Detail["left"] = g.ID, g.usesLeft()
	return q.config.Sink.Emit(e)
}

// Refusals without a request are recorded one by one up to some number a
// minute; those beyond are counted, and the count is recorded a minute later or
// at the end. What is denied anyway must not fill the record.
var recordedPerMinute = map[string]int{outcomeLimit: 1, outcomeRule: 30, outcomeNobody: 30, outcomeClosed: 1}

// tally counts the refusals of one kind.
type tally struct {
	since   time.Duration // when the minute began
	n       int           // recorded in it
	counted int           // not recorded yet
	last    event.Event
}

// maxTallies is how many kinds are counted separately: rules are few.
const maxTallies = 256

// refuse denies without asking. The record of it changes nothing: it is denied
// either way.
func (q *Queue) refuse(asked question, outcome, reason string) event.Ruling {
	ruling := event.Ruling{Verdict: event.Denied, Rule: asked.rule, Reason: reason}
	e := q.event(event.ApprovalRule, asked.attempt, asked.rule)
	e.Verdict, e.Layer = event.Denied, event.LayerConsent
	e.Detail["outcome"], e.Detail["digest"], e.Detail["reason"] = outcome, asked.digest, reason
	now := q.clock.moment().mono
	q.mu.Lock()
	t := q.limits.tally(outcome + " " + asked.rule)
	if t.n == 0 || now-t.since >= time.Minute {
		t.since, t.n = now, 0
	}
	if t.n >= recordedPerMinute[outcome] {
		t.counted++
		t.last = e
		q.mu.Unlock()
		return ruling
	}
	t.n++
	if t.counted > 0 {
		e.Detail["count"] = strconv.Itoa(t.counted + 1)
		t.counted = 0
	}
	q.mu.Unlock()
	q.config.Sink.Emit(e) // it is denied in any case
	return ruling
}

// flush records what was counted and not recorded.
func (q *Queue) flush() {
	q.mu.Lock()
	var events []event.Event
	for _, t := range q.limits.tallies {
		if t.counted > 0 {
			t.last.Detail["count"] = strconv.Itoa(t.counted)
			events = append(events, t.last)
			t.counted = 0
		}
	}
	q.mu.Unlock()
	for _, e := range events {
		q.config.Sink.Emit(e) // it was denied in any case
	}
}

// requestEnd is how a request ended.
type requestEnd struct {
	outcome string
	allow   bool
	by      string
	at      time.Time // zero: at this moment
}

func (e requestEnd) String() string {
	when := ""
	if !e.at.IsZero() {
		when = " at " + e.at.UTC().Format(time.TimeOnly) + " UTC"
	}
	switch {
	case e.outcome == outcomeAnswer && e.allow:
		return fmt.Sprintf("allowed by %s%s", Visible(e.by), when)
	case e.outcome == outcomeAnswer:
		return fmt.Sprintf("denied by %s%s", Visible(e.by), when)
	case e.outcome == outcomeTimeout:
		return reasonTimeout
	case e.outcome == outcomeGone:
		return reasonGone
	}
	return "the run ended"
}

// recent holds how the last requests ended, for late answers.
type recent struct {
	of    map[string]requestEnd
	order []string
}

const maxRecent = 1000

func (p *recent) add(id string, e requestEnd) {
	if p.of == nil {
		p.of = map[string]requestEnd{}
	}
	if len(p.order) >= maxRecent {
		delete(p.of, p.order[0])
		p.order = p.order[1:]
	}
	p.of[id] = e
	p.order = append(p.order, id)
}

func (p *recent) has(id string) bool {
	_, ok := p.of[id]
	return ok
}

func (p *recent) endText(id string) string { return p.of[id].String() }
