package consent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

func TestOnceIsOneUse(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(push())
	r := o.waits()
	if err := o.Answer(o.reply(r, true, func(a *Answer) { a.Reason = "a release" })); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "alice")
	if got := o.Grants(); len(got) != 0 {
		t.Errorf("what was allowed once is still allowed: %v", got)
	}
	if again, _ := o.ask(push()); again.Verdict != event.Unknown {
		t.Errorf("the second time it is %v", again.Verdict)
	}
	same(t, o.book.says("by", "via", "scope", "uses", "left", "outcome", "reason"),
		"request unknown reason=pushes leave the machine",
		"answer allowed by=alice via=terminal scope=once uses=1 outcome=answer reason=a release",
		"use allowed by=alice left=0",
		"request unknown reason=pushes leave the machine")
}

func TestASessionGrantCoversTheSameAgain(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(push())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope, a.Uses = Session, 3 })); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	again, _ := o.ask(push())
	if again.Verdict != event.Allowed || !again.Granted {
		t.Errorf("covered it is %+v", again)
	}
	if g := o.Grants(); len(g) != 1 || g[0].Used != 2 || !g[0].Verify(o.GrantKey()) {
		t.Errorf("the grant is %+v", g)
	}
	o.ask(push())
	if last, _ := o.ask(push()); last.Verdict != event.Unknown || len(o.Grants()) != 0 {
		t.Errorf("used up it is %v", last.Verdict)
	}
	same(t, o.book.says("left"), "request unknown", "answer allowed", "use allowed left=2", "use allowed left=1", "use allowed left=0", "request unknown")
}

func TestAUseThatIsNotRecordedIsDenied(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(push())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope, a.Uses = Session, 3 })); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	o.book.breaks(event.ApprovalUse)
	if r, _ := o.ask(push()); r.Verdict != event.Denied {
		t.Errorf("without a record it is %v", r.Verdict)
	}
	o.book.breaks("")
	if g := o.Grants(); len(g) != 1 || g[0].Used != 2 {
		t.Errorf("the use was given back: %+v", g)
	}
}

func TestWhatCannotBeRecordedIsDenied(t *testing.T) {
	for _, action := range []string{event.ApprovalRequest, event.ApprovalAnswer, event.ApprovalUse} {
		o := newTestQueue(t, nil)
		o.book.breaks(action)
		_, end := o.ask(push())
		if action == event.ApprovalRequest {
			verdict(t, end, event.Denied, "recorded")
			if len(o.Pending()) != 0 {
				t.Error("a request that is not in the record is shown")
			}
			continue
		}
		err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope = Session }))
		if (action == event.ApprovalAnswer) != errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", action, err)
		}
		verdict(t, end, event.Denied, "recorded")
		if action == event.ApprovalAnswer && len(o.Grants()) != 0 {
			t.Error("an answer that is not in the record holds")
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTestQueue(t, nil)
		_, end := o.ask(push())
		begun := time.Now()
		verdictIn(t, end, event.Denied, "nobody answered in time")
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		same(t, o.book.says("outcome"), "request unknown", "answer denied outcome=timeout")
		if len(o.Pending()) != 0 {
			t.Error("it still waits")
		}
	})
}

// verdictIn is verdict without a time limit, which the time of a test would reach.
func verdictIn(t *testing.T, got <-chan event.Ruling, want event.Verdict, reason string) {
	t.Helper()
	r := <-got
	if r.Verdict != want || !strings.Contains(r.Reason, reason) {
		t.Errorf("it is %v: %q, want %v: %q", r.Verdict, r.Reason, want, reason)
	}
}

func TestWithoutTimeNobodyIsAsked(t *testing.T) {
	o := newTestQueue(t, func(c *Config) { c.Timeout = 0 })
	r, _ := o.ask(push())
	if r.Verdict != event.Denied || r.Reason == "" || r.Rule == "" {
		t.Errorf("it is %+v", r)
	}
	same(t, o.book.says("outcome"), "rule denied outcome=nobody")
}

func TestADeadAskerTakesItsRequestAlong(t *testing.T) {
	o := newTestQueue(t, nil)
	r := o.Ask(push(), "", "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	asked := o.waits()
	if got := r.Wait(ctx); got.Verdict != event.Denied {
		t.Errorf("it is %v", got.Verdict)
	}
	if len(o.Pending()) != 0 {
		t.Error("it still waits")
	}
	if err := o.Answer(o.reply(asked, true, nil)); !errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("an answer to it: %v", err)
	}
	same(t, o.book.says("outcome"), "request unknown", "answer denied outcome=gone")
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTestQueue(t, nil)
		_, end := o.ask(push())
		changed := o.Watch(context.Background())
		asked := o.waits()
		o.Close()
		verdictIn(t, end, event.Denied, "run ended")
		for range changed { // it is closed
		}
		if err := o.Answer(o.reply(asked, true, nil)); !errors.Is(err, ErrClosed) {
			t.Errorf("an answer afterwards: %v", err)
		}
		if r, _ := o.ask(push()); r.Verdict != event.Denied {
			t.Errorf("asked afterwards it is %v", r.Verdict)
		}
		o.Close()
		same(t, o.book.says("outcome"), "request unknown", "answer denied outcome=closed", "rule denied outcome=closed")
		// synctest fails when a goroutine or a timer of the queue is left
	})
}

func TestIdenticalOnesWaitTogether(t *testing.T) {
	o := newTestQueue(t, nil)
	var ends []<-chan event.Ruling
	for i := range 3 {
		a := push()
		a.Process.PID = 100 + i
		_, end := o.ask(a)
		ends = append(ends, end)
	}
	r := o.waits()
	if r.Count != 3 {
		t.Errorf("%d wait", r.Count)
	}
	if err := o.Answer(o.reply(r, true, nil)); err != nil {
		t.Fatal(err)
	}
	verdict(t, ends[0], event.Allowed, "")
	rest := o.waits()
	if rest.Count != 2 || rest.ID == r.ID || rest.Nonce == r.Nonce {
		t.Errorf("those who got none wait as %+v", rest)
	}
	if err := o.Answer(o.reply(rest, false, func(a *Answer) { a.Reason = "one is enough" })); err != nil {
		t.Fatal(err)
	}
	verdict(t, ends[1], event.Denied, "denied by alice: one is enough")
	verdict(t, ends[2], event.Denied, "one is enough")
	same(t, o.book.says("count", "left"), "request unknown", "answer allowed count=3", "use allowed left=0", "request unknown", "answer denied count=2")
	if o.book.events[2].Process.PID != 100 {
		t.Errorf("the use is of process %d", o.book.events[2].Process.PID)
	}
}

func TestUsesAreSharedByThoseWhoWait(t *testing.T) {
	o := newTestQueue(t, nil)
	var ends []<-chan event.Ruling
	for range 3 {
		_, end := o.ask(push())
		ends = append(ends, end)
	}
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope, a.Uses = Session, 2 })); err != nil {
		t.Fatal(err)
	}
	verdict(t, ends[0], event.Allowed, "")
	verdict(t, ends[1], event.Allowed, "")
	if n := o.waits().Count; n != 1 || len(o.Grants()) != 0 {
		t.Errorf("%d wait, %d approvals live", n, len(o.Grants()))
	}
}

func TestARevokedGrantCoversNothing(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(push())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope = Session })); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	g := o.Grants()[0]
	back := Sign(Answer{Session: "s1", Grant: g.ID, By: "bob", Via: "command", Reason: "enough"}, o.key)
	if err := o.Revoke(back); err != nil {
		t.Fatal(err)
	}
	if r, _ := o.ask(push()); r.Verdict != event.Unknown || len(o.Grants()) != 0 {
		t.Errorf("revoked it is %v", r.Verdict)
	}
	if err := o.Revoke(back); !errors.Is(err, ErrUnknown) {
		t.Errorf("the second time: %v", err)
	}
	same(t, o.book.says("by", "left", "reason")[2:4], "use allowed by=alice left=unlimited", "revoke unknown by=bob left=unlimited reason=enough")
}

func TestAttend(t *testing.T) {
	o := newTestQueue(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	changed := o.Watch(ctx)
	if o.Attended() {
		t.Error("somebody is there")
	}
	first, second := o.Attend(), o.Attend()
	<-changed
	first()
	first()
	if !o.Attended() {
		t.Error("the second one is gone too")
	}
	second()
	if o.Attended() {
		t.Error("nobody is gone")
	}
	cancel()
	for range changed {
	}
}

func TestNotifyIsToldOnceARequestAndHoldsNothingUp(t *testing.T) {
	told, stuck := make(chan Request, 10), make(chan struct{})
	defer close(stuck)
	o := newTestQueue(t, func(c *Config) {
		c.Notify = func(r Request) { told <- r; <-stuck }
		c.Chain = func(event.Process) []Asker { return []Asker{{PID: 6, Executable: "/bin/bash"}} }
		c.Writable = func(p string) bool { return p == "/usr/bin/git" }
	})
	o.ask(push())
	o.ask(push())
	r := <-told
	if r.ID != o.waits().ID || len(r.Chain) != 1 || !r.Writable || len(told) != 0 {
		t.Errorf("told %+v, and %d more", r, len(told))
	}
	o.Close()
}
