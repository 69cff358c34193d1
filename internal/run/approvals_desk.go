//go:build linux

package run

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
)

// desk is where a run asks a human. Its methods do nothing on a nil desk, which
// is that of a run whose policy has no rule of consent.
type desk struct {
	*consent.Queue
	notes *notifier
	told  *told
}

// newDesk makes the desk of a run; nil when no rule of its policy asks, denies or
// is about programs.
// The record must be open. c says what only the caller knows: Chain and Writable.
func (t *Task) newDesk(c consent.Config) (*desk, error) {
	if len(t.Plan.Ask) == 0 && len(t.Plan.Deny) == 0 && t.Plan.Programs.Else == "" {
		return nil, nil
	}
	d := &desk{told: &told{sink: t.bus.Sensor(event.Approve), secrets: t.bus.Secrets().String}}
	c.Session, c.Sink, c.Timeout = t.bus.Session(), d.told, t.Plan.Approvals.Timeout
	if d.asks(t) {
		own, err := consent.ApproverKey(t.Keys)
		if err != nil {
			return nil, err
		}
		c.Approvers = append(c.Approvers, own.Public().(ed25519.PublicKey))
		if d.notes, err = t.newNotifier(d.told); err != nil {
			return nil, err
		}
		c.Approvers = append(c.Approvers, d.notes.key.Public().(ed25519.PublicKey))
		c.Notify = d.notes.begin
	}
	var err error
	if d.Queue, err = consent.New(c); err != nil {
		d.notes.close()
		return nil, err
	}
	d.notes.attach(d.Queue)
	return d, nil
}

// asks reports whether anything is ever asked, and not denied at once.
func (d *desk) asks(t *Task) bool {
	return len(t.Plan.Ask) > 0 && t.Plan.Approvals.Timeout > 0 && t.Keys != ""
}

// approvals is the queue as the control socket needs it; nil when nothing is ever
// asked.
func (d *desk) approvals() *consent.Queue {
	if d == nil || d.notes == nil {
		return nil
	}
	return d.Queue
}

// close ends what waits, and returns when nothing of the desk is under way. It
// may be called more than once.
func (d *desk) close() {
	if d == nil {
		return
	}
	if d.notes != nil {
		d.notes.stop()
	}
	d.Queue.Close()
	d.notes.close()
}

// report is what was asked and denied.
func (d *desk) report() []Consent {
	if d == nil {
		return nil
	}
	return d.told.report()
}

// Consent is what became of something that a rule of consent was about.
type Consent struct {
	What    string // would have happened, or did
	Allowed bool
	Outcome string // answer, timeout, nobody, limit and so on; "" of a rule that denied without asking
	By      string // who answered
	Reason  string // in words
	Rule    string // as file:line
	Count   int    // how often
}

// Why is how it came about, in words.
func (c Consent) Why() string {
	text := outcomeWords(c.Outcome)
	switch {
	case c.Outcome == "answer" && c.Reason != "":
		return "by " + c.By + ": " + c.Reason
	case c.Outcome == "answer":
		return "by " + c.By
	case text != "":
		return text
	case c.Reason != "":
		return c.Reason
	}
	return "by a rule"
}

// outcomeWords says how a request ended that nobody answered; "" for the rest.
func outcomeWords(outcome string) string {
	switch outcome {
	case "timeout":
		return "nobody answered in time"
	case "nobody":
		return "this run asks nobody"
	case "gone":
		return "whoever asked did not wait"
	case "closed":
		return "the run ended first"
	case "limit":
		return "too much was asked"
	case "record":
		return "it could not be recorded"
	case "more":
		return "not listed"
	case outcomeIgnored:
		return "an answer that counts for nothing"
	}
	return ""
}

// Denied reports whether it did not happen for it.
func (c Consent) Denied() bool { return !c.Allowed && c.Outcome != outcomeIgnored }

// mostConsents is how many different ones a summary can name.
const mostConsents = 100

// told records what a desk does, and keeps what a summary says of it.
type told struct {
	sink    event.Sink
	secrets func(string) string // masks them

	mu  sync.Mutex
	all []Consent
}

// Emit is that of the sink.
func (t *told) Emit(e event.Event) error {
	if err := t.sink.Emit(e); err != nil {
		return err
	}
	switch e.Action {
	case event.ApprovalAnswer, event.ApprovalRule:
		t.keep(Consent{
			What: t.secrets(consent.Summary(attempted(e))), Allowed: e.Verdict == event.Allowed, Outcome: e.Detail["outcome"],
			By: e.Detail["by"], Reason: e.Detail["reason"], Rule: e.Rule,
		})
	}
	return nil
}

// attempted is what an event of a desk is about, as far as a summary needs it.
func attempted(e event.Event) event.Attempt {
	a := event.Attempt{
		Kind: event.Kind(e.Detail["kind"]), Process: e.Process, Path: e.Object, Operation: e.Detail["operation"], To: e.Detail["to"],
		Method: e.Detail["method"], URLPath: e.Detail["path"], Name: e.Detail["credential"],
		Agent: e.Detail["agent"], Server: e.Detail["server"], Tool: e.Object, Arguments: e.Detail["arguments"],
	}
	if host, port, err := net.SplitHostPort(e.Object); err == nil {
		a.Host = host
		a.Port, _ = strconv.Atoi(port)
	}
	return a
}

func (t *told) keep(c Consent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(o Consent) bool {
		o.Count = 0
		return o == c
	})
	switch {
	case i >= 0:
		t.all[i].Count++
	case len(t.all) < mostConsents:
		c.Count = 1
		t.all = append(t.all, c)
	default: // the last one stands for all that there is no room for
		t.all[mostConsents-1] = Consent{What: "more, see the record", Outcome: "more", Count: t.all[mostConsents-1].Count + 1}
	}
}

func (t *told) report() []Consent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// ownKey is a key of this run alone, for answers that came with a signature of
// another kind.
func ownKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key for answers: %w", err)
	}
	return key, nil
}
