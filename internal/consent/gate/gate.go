//go:build linux

package gate

import (
	"crypto/ed25519"
	"fmt"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Config is what a gate needs.
type Config struct {
	Plan       policy.Plan
	Session    string
	State      string                // directory of Holdfast's state
	Keys       string                // directory of the keys; "" for no questions
	Version    string                // of Holdfast
	Executable string                // this program, for pop-ups; "" for none
	Sink       event.Sink            // of what is asked and answered
	Mask       func(string) string   // masks secrets
	Asks       func(id, what string) // called with what begins to wait for an answer; may be nil
	Intercepts func() bool           // whether connections to every address arrive
}

// Gate joins the rules of consent, which say what needs an answer, and the queue,
// in which it waits. Its methods may be called on nil, which has no rules.
type Gate struct {
	config  Config
	rules   *policy.Consent
	queue   *consent.Queue
	notes   *notifier // nil when nothing is ever asked
	summary *summary
}

// Open makes the gate of a run; nil if no rule of its policy asks, denies or is
// about programs.
func Open(c Config) (*Gate, error) {
	if len(c.Plan.Ask) == 0 && len(c.Plan.Deny) == 0 && c.Plan.Programs.Else == "" {
		return nil, nil
	}
	if err := observable(c.Plan); err != nil {
		return nil, err
	}
	rules, err := c.Plan.Consent()
	if err != nil {
		return nil, err
	}
	g := &Gate{config: c, rules: rules, summary: &summary{sink: c.Sink, secrets: c.Mask}}
	q := consent.Config{
		Session: c.Session, Sink: g.summary, Timeout: c.Plan.Approvals.Timeout, Chain: processChain,
		Writable: func(path string) bool { return workspace.Writable(c.Plan, path) },
	}
	if g.asksHumans() {
		if err := g.addApprovers(&q); err != nil {
			return nil, err
		}
	}
	if g.queue, err = consent.New(q); err != nil {
		g.notes.close()
		return nil, err
	}
	g.notes.attach(g.queue)
	return g, nil
}

// asksHumans reports whether anything is ever asked, rather than denied at once.
func (g *Gate) asksHumans() bool {
	return len(g.config.Plan.Ask) > 0 && g.config.Plan.Approvals.Timeout > 0 && g.config.Keys != ""
}

// addApprovers makes the queue accept answers with the user's key, and with a
// key of this run alone, which signs the answers of webhooks.
func (g *Gate) addApprovers(q *consent.Config) error {
	user, err := consent.ApproverKey(g.config.Keys)
	if err != nil {
		return err
	}
	if g.notes, err = newNotifier(g.config, g.summary); err != nil {
		return err
	}
	q.Approvers = append(q.Approvers, user.Public().(ed25519.PublicKey), g.notes.key.Public().(ed25519.PublicKey))
	q.Notify = g.notes.begin
	return nil
}

// Queue takes answers; nil if nothing is ever asked.
func (g *Gate) Queue() *consent.Queue {
	if g == nil || g.notes == nil {
		return nil
	}
	return g.queue
}

// Close denies what waits, and returns when no work is in progress. It may be
// called more than once.
func (g *Gate) Close() {
	if g == nil {
		return
	}
	if g.notes != nil {
		g.notes.stop()
	}
	g.queue.Close()
	g.notes.close()
}

// Outcomes are the outcomes of what was asked and denied.
type Outcomes []consent.Outcome

// Report returns the outcomes of what was asked and denied.
func (g *Gate) Report() Outcomes {
	if g == nil {
		return nil
	}
	return g.summary.report()
}

// Rules returns the rules that what carries something out has to ask.
func (g *Gate) Rules() Rules {
	if g == nil {
		return Rules{}
	}
	return Rules{Gate: g, Wants: g.rules.Wants, CanAsk: g.canAsk, MayConcern: g.mayConcern, CanAskHosts: g.canAskHosts}
}

// observable refuses rules that nothing would ask: executions and changes
// outside are held by what observes system calls. A rule that asks only while
// somebody is there may remain unused.
func observable(plan policy.Plan) error {
	if plan.Record.Level != policy.RecordOff {
		return nil
	}
	if plan.Programs.Else != "" {
		return &UnobservedError{event.KindExec}
	}
	rules, err := plan.Consent()
	if err != nil {
		return err
	}
	for _, k := range []event.Kind{event.KindExec, event.KindFile} {
		if rules.Firm(k) {
			return &UnobservedError{k}
		}
	}
	return nil
}

// UnobservedError says that a rule of consent could not be kept.
type UnobservedError struct{ Kind event.Kind }

func (e *UnobservedError) Error() string {
	return fmt.Sprintf("a rule under ask, deny or programs is about attempts of kind %s, which nothing would see without the record of system calls", e.Kind)
}

// Hint is what to change.
func (e *UnobservedError) Hint() string {
	return "leave out '--without record', or the rules ('holdfast policy show' says where they come from)"
}

// Judge implements event.Gate. A rule that asks only while somebody is there
// has no effect otherwise: the boundary decides as it would without it.
func (g *Gate) Judge(a event.Attempt) event.Ruling {
	j := g.rules.Judge(a)
	r := g.rule(a, j)
	r.Unlisted = j.Unlisted
	return r
}

func (g *Gate) rule(a event.Attempt, j policy.Judgement) event.Ruling {
	rule := j.Rule.Origin
	switch {
	case j.Verdict == event.Allowed:
		return event.Ruling{Verdict: event.Allowed}
	case j.Verdict == event.Denied:
		return g.queue.Deny(a, rule, j.Reason)
	case j.Rule.Attended && !g.attended():
		return event.Ruling{Verdict: event.Allowed}
	}
	return g.queue.Ask(a, rule, j.Reason)
}

// mayConcern reports whether a rule could be about an attempt that is not fully
// known. It asks no human.
func (g *Gate) mayConcern(a event.Attempt) bool {
	return g.rules.Judge(a).Verdict != event.Allowed
}

// canAsk reports whether a human could be asked about a kind at this moment.
func (g *Gate) canAsk(k event.Kind) bool {
	if k == event.KindConnect && !g.config.Intercepts() {
		return false // an address would lead nowhere
	}
	return g.couldAsk(k)
}

// canAskHosts reports whether a run that is about to begin may ask about hosts
// that its policy does not name, so that connections have to be intercepted for
// it. A rule that asks only while somebody is there counts if somebody is there
// now: an unattended run has no way out, not even one that leads to a refusal.
func (g *Gate) canAskHosts() bool { return g.couldAsk(event.KindConnect) }

// couldAsk reports whether a rule about a kind could ask a human now. Whether a
// human is there costs a look at a file, and matters to few rules.
func (g *Gate) couldAsk(k event.Kind) bool {
	return g.Queue() != nil && (g.rules.Asks(k, false) || g.rules.Asks(k, true) && g.attended())
}

// attended reports whether somebody is there to answer. A process that follows
// what runs ask finds a new run within a moment, and counts before that.
func (g *Gate) attended() bool {
	return g.queue.Attended() || consent.Present(g.config.State)
}
