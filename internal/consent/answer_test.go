package consent

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

func TestAnswersThatAreNone(t *testing.T) {
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		asks   func(*event.Attempt)
		change func(*Answer)
		forge  func(*Signed)
		want   error
	}{
		{name: "signed by a stranger", forge: func(s *Signed) { *s = Sign(s.Answer, stranger) }, want: ErrForged},
		{name: "a stranger's signature under the approver's key", forge: func(s *Signed) { s.Signature = Sign(s.Answer, stranger).Signature }, want: ErrForged},
		{name: "not signed", forge: func(s *Signed) { s.Signature = nil }, want: ErrForged},
		{name: "no key", forge: func(s *Signed) { s.Key = nil }, want: ErrForged},
		{name: "changed after it was signed", forge: func(s *Signed) { s.Answer.Scope = Session }, want: ErrForged},
		{name: "of another run", change: func(a *Answer) { a.Session = "s2" }, want: ErrMismatch},
		{name: "to no request", change: func(a *Answer) { a.Request = "nothing" }, want: ErrUnknown},
		{name: "with the nonce of another", change: func(a *Answer) { a.Nonce = "x" }, want: ErrMismatch},
		{name: "about something else", change: func(a *Answer) { a.Digest = strings.Repeat("0", 64) }, want: ErrMismatch},
		{name: "that takes something back", change: func(a *Answer) { a.Grant = "x" }, want: ErrMismatch},
		{name: "by nobody", change: func(a *Answer) { a.By = "" }, want: ErrInvalid},
		{name: "without a scope", change: func(a *Answer) { a.Scope = "" }, want: ErrInvalid},
		{name: "of a scope that is none", change: func(a *Answer) { a.Scope = "always" }, want: ErrInvalid},
		{name: "once, twice", change: func(a *Answer) { a.Uses = 2 }, want: ErrInvalid},
		{name: "less than never", change: func(a *Answer) { a.Scope, a.Uses = Session, -1 }, want: ErrInvalid},
		{name: "for no time", change: func(a *Answer) { a.Scope = For }, want: ErrInvalid},
		{name: "for too long", change: func(a *Answer) { a.Scope, a.For = For, 25*time.Hour }, want: ErrInvalid},
		{name: "for less than a second", change: func(a *Answer) { a.Scope, a.For = For, time.Millisecond }, want: ErrInvalid},
		{name: "for the session, and a time", change: func(a *Answer) { a.Scope, a.For = Session, time.Second }, want: ErrInvalid},
		{name: "the directory of a program", change: func(a *Answer) { a.Scope, a.Directory = Session, true }, want: ErrInvalid},
		{name: "a denial with a scope", change: func(a *Answer) { a.Allow, a.Scope = false, Session }, want: ErrInvalid},
		{name: "a reason without end", change: func(a *Answer) { a.Reason = strings.Repeat("x", 1<<20) }, want: ErrInvalid},
		{name: "longer than once of a cut command line", asks: func(a *event.Attempt) { a.Cut = true }, change: func(a *Answer) { a.Scope = Session }, want: ErrInvalid},
		{name: "longer than once of an unknown content", asks: func(a *event.Attempt) { a.Process.SHA256 = "" }, change: func(a *Answer) { a.Scope = Session }, want: ErrInvalid},
		{name: "longer than once of an unknown script", asks: func(a *event.Attempt) { a.Script = "/x" }, change: func(a *Answer) { a.Scope = Session }, want: ErrInvalid},
		{name: "the whole system", asks: func(a *event.Attempt) { *a = write(); a.Path = "/x" }, change: func(a *Answer) { a.Scope, a.Directory = Session, true }, want: ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTestQueue(t, nil)
			a := push()
			if tt.asks != nil {
				tt.asks(&a)
			}
			o.ask(a)
			s := o.reply(o.waits(), true, tt.change)
			if tt.forge != nil {
				tt.forge(&s)
			}
			if err := o.Answer(s); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if len(o.Pending()) != 1 || len(o.Grants()) != 0 || len(o.book.says()) != 1 {
				t.Errorf("%d wait, %d approvals, recorded %q", len(o.Pending()), len(o.Grants()), o.book.says())
			}
		})
	}
}

func TestWithoutApproversNobodyIsAsked(t *testing.T) {
	o := newTestQueue(t, func(c *Config) { c.Approvers = nil })
	if r, _ := o.ask(push()); r.Verdict != event.Denied || len(o.Pending()) != 0 {
		t.Errorf("it is %v, and %d wait", r.Verdict, len(o.Pending()))
	}
}

func TestAnAnswerIsTakenOnce(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(push())
	s := o.reply(o.waits(), true, nil)
	if err := o.Answer(s); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	if err := o.Answer(s); !errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), "allowed by alice") {
		t.Errorf("the second time: %v", err)
	}
	o.ask(push())
	if err := o.Answer(s); !errors.Is(err, ErrAnswered) {
		t.Errorf("the second time, while the same waits: %v", err)
	}
	s.Answer.Request = o.waits().ID
	if err := o.Answer(Sign(s.Answer, o.key)); !errors.Is(err, ErrMismatch) {
		t.Errorf("the old answer for the new request: %v", err)
	}
	// The same session again, as after a restart: earlier answers are void.
	second := newTestQueue(t, func(c *Config) { c.Approvers = []ed25519.PublicKey{o.key.Public().(ed25519.PublicKey)} })
	second.ask(push())
	if err := second.Answer(s); err == nil {
		t.Error("an answer of before the restart is taken")
	}
	if o.waits().Digest == second.waits().Digest {
		t.Error("two queues call the same attempt the same: whoever reads the record can try what a secret is")
	}
}

// TestExactlyOneOutcome lets answers, the timeout and the death of the asker
// decide at once.
func TestExactlyOneOutcome(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			o := newTestQueue(t, nil)
			_, end := o.ask(push())
			r := o.waits()
			var won atomic.Int32
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					time.Sleep(time.Minute) // exactly at the timeout
					if o.Answer(o.reply(r, i%2 == 0, nil)) == nil {
						won.Add(1)
					}
				})
			}
			got := <-end
			wg.Wait()
			answers, uses := o.book.count(event.ApprovalAnswer), o.book.count(event.ApprovalUse)
			if answers != 1 || won.Load() > 1 || (got.Verdict == event.Allowed) != (uses == 1) {
				t.Errorf("%v; %d answers won, %d are recorded, %d uses", got.Verdict, won.Load(), answers, uses)
			}
		})
	}
}

func TestTheSecondApproverIsToldWhoWasFirst(t *testing.T) {
	o := newTestQueue(t, nil)
	o.ask(push())
	r := o.waits()
	if err := o.Answer(o.reply(r, false, nil)); err != nil {
		t.Fatal(err)
	}
	err := o.Answer(o.reply(r, true, func(a *Answer) { a.By = "bob" }))
	if !errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), "denied by alice at ") {
		t.Error(err)
	}
}

func TestAGrantExpires(t *testing.T) {
	for name, step := range map[string]time.Duration{"the clock stays right": 0, "the clock is set back": -24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var set atomic.Int64
			o := newTestQueue(t, func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(set.Load())) } })
			_, end := o.ask(push())
			if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope, a.For = For, 10*time.Minute })); err != nil {
				t.Fatal(err)
			}
			verdictIn(t, end, event.Allowed, "")
			set.Store(int64(step))
			time.Sleep(10*time.Minute - time.Second)
			if r, _ := o.ask(push()); r.Verdict != event.Allowed {
				t.Errorf("%s: a second before it is %v", name, r.Verdict)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if r, _ := o.ask(push()); r.Verdict != event.Unknown || len(o.Grants()) != 0 {
				t.Errorf("%s: afterwards it is %v", name, r.Verdict)
			}
			if n := o.book.count(event.ApprovalExpire); n != 1 {
				t.Errorf("%s: the end is recorded %d times", name, n)
			}
		})
	}
}

// TestAClockThatGoesOnWhileTheMachineSleeps is the other case: the monotonic
// clock and every timer stood still.
func TestAClockThatGoesOnWhileTheMachineSleeps(t *testing.T) {
	var slept atomic.Int64
	o := newTestQueue(t, func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) } })
	_, end := o.ask(push())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope, a.For = For, time.Hour })); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	_, late := o.ask(changed(push(), func(a *event.Attempt) { a.Process.Argv[2] = "fork" }))
	r := o.waits()
	slept.Store(int64(2 * time.Hour))
	if got, _ := o.ask(push()); got.Verdict != event.Unknown {
		t.Errorf("an approval of an hour, after two, makes it %v", got.Verdict)
	}
	if err := o.Answer(o.reply(r, true, nil)); !errors.Is(err, ErrAnswered) {
		t.Errorf("an answer after the time: %v", err)
	}
	verdict(t, late, event.Denied, "in time")
}
