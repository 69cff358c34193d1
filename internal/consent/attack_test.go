package consent

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// slowBook delays the record of one action until it is released.
type slowBook struct {
	book
	action      string
	begun, goOn chan struct{}
}

func (b *slowBook) Emit(e event.Event) error {
	if e.Action == b.action {
		b.begun <- struct{}{}
		<-b.goOn
	}
	return b.book.Emit(e)
}

// TestTheAskerDiesWhileItIsAllowed: what was allowed once, for an asker that has died
// by then, is not available to the next; a use of a longer approval is not consumed.
func TestTheAskerDiesWhileItIsAllowed(t *testing.T) {
	for _, scope := range []Scope{Once, Session} {
		slow := &slowBook{action: event.ApprovalAnswer, begun: make(chan struct{}), goOn: make(chan struct{})}
		o := newTestQueue(t, func(c *Config) { c.Sink = slow })
		r := o.Ask(push(), "", "")
		answered := make(chan error)
		go func() { answered <- o.Answer(o.reply(o.Pending()[0], true, func(a *Answer) { a.Scope = scope })) }()
		<-slow.begun
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if got := r.Wait(ctx); got.Verdict != event.Denied {
			t.Errorf("%s: who is gone gets %v", scope, got.Verdict)
		}
		close(slow.goOn)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if n := slow.count(event.ApprovalUse); n != 0 {
			t.Errorf("%s: %d uses of nobody", scope, n)
		}
		if n := len(o.Grants()); n != map[Scope]int{Once: 0, Session: 1}[scope] {
			t.Errorf("%s: %d approvals", scope, n)
		}
		slow.action = ""
	}
}

// TestWhatIsAskedWhileItIsDecided is a request of its own, or covered, but never
// lost.
func TestWhatIsAskedWhileItIsDecided(t *testing.T) {
	slow := &slowBook{action: event.ApprovalAnswer, begun: make(chan struct{}), goOn: make(chan struct{})}
	o := newTestQueue(t, func(c *Config) { c.Sink = slow })
	_, first := o.ask(push())
	answered := make(chan error)
	asked := o.waits()
	go func() { answered <- o.Answer(o.reply(asked, true, nil)) }()
	<-slow.begun
	_, second := o.ask(push())
	if r := o.waits(); r.ID == asked.ID || r.Count != 1 {
		t.Errorf("the second waits as %+v", r)
	}
	slow.goOn <- struct{}{}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	verdict(t, first, event.Allowed, "")
	go func() { <-slow.begun; slow.goOn <- struct{}{} }()
	if err := o.Answer(o.reply(o.waits(), false, nil)); err != nil {
		t.Error(err)
	}
	verdict(t, second, event.Denied, "alice")
}

// TestCallersCannotChangeWhatIsCovered alters what they handed in and got back.
func TestCallersCannotChangeWhatIsCovered(t *testing.T) {
	o := newTestQueue(t, nil)
	a := push()
	a.Script, a.ScriptSHA256, a.Interpreted = "/x", "cd", []string{"/x"}
	elsewhere := changed(a, func(a *event.Attempt) { a.Process.Argv[2] = "elsewhere" })
	kept := changed(a, func(a *event.Attempt) { a.Interpreted = []string{"/x"} })
	o.ask(a)
	a.Process.Argv[2], a.Interpreted[0] = "elsewhere", "/y"
	r := o.waits()
	if r.Attempt.Process.Argv[2] != "origin" || r.Attempt.Interpreted[0] != "/x" {
		t.Errorf("what is asked changed to %q %q", r.Attempt.Process.Argv, r.Attempt.Interpreted)
	}
	if err := o.Answer(o.reply(r, true, func(a *Answer) { a.Scope = Session })); err != nil {
		t.Fatal(err)
	}
	g := o.Grants()[0]
	g.Covers.Argv[2], g.Covers.Interpreted[0], g.Signature[0] = "elsewhere", "/y", g.Signature[0]+1
	if r, _ := o.ask(kept); r.Verdict != event.Allowed {
		t.Errorf("what was allowed is %v", r.Verdict)
	}
	if r, _ := o.ask(elsewhere); r.Verdict != event.Unknown {
		t.Errorf("what was not is %v", r.Verdict)
	}
}

// TestAGrantThatWasTamperedWithCoversNothing reaches into the queue itself.
func TestAGrantThatWasTamperedWithCoversNothing(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(push())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope = Session })); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	o.grants[0].Covers.Argv[2] = "elsewhere"
	if r, _ := o.ask(changed(push(), func(a *event.Attempt) { a.Process.Argv[2] = "elsewhere" })); r.Verdict != event.Unknown {
		t.Errorf("it is %v", r.Verdict)
	}
}

func TestAMomentIsOverByEitherClock(t *testing.T) {
	wall := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	end := moment{wall, 0}.add(time.Minute)
	for _, tt := range []struct {
		name string
		now  moment
		want bool
	}{
		{"before", moment{wall.Add(59 * time.Second), 59 * time.Second}, false},
		{"then", moment{wall.Add(time.Minute), time.Minute}, true},
		{"the clock was set back", moment{wall.Add(-time.Hour), time.Minute}, true},
		{"the machine slept", moment{wall.Add(time.Hour), time.Second}, true},
	} {
		if got := end.reached(tt.now); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
