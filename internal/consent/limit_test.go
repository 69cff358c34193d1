package consent

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// other is an attempt unlike all others.
func other(n int) event.Attempt {
	return changed(push(), func(a *event.Attempt) { a.Process.Argv[3] = fmt.Sprint("branch-", n) })
}

func TestAFloodIsDeniedAndStaysDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTestQueue(t, func(c *Config) { c.Limits = Limits{PerMinute: 10, Pending: 1000} })
		n := 0
		ask := func() event.Ruling { n++; r, _ := o.ask(other(n)); return r }
		for range 10 {
			if r := ask(); r.Verdict != event.Unknown {
				t.Fatalf("request %d is %v", n, r.Verdict)
			}
		}
		for range 5000 {
			if r := ask(); r.Verdict != event.Denied || r.Reason == "" {
				t.Fatalf("request %d is %v: %q", n, r.Verdict, r.Reason)
			}
		}
		if got := len(o.book.says()); got != 11 {
			t.Errorf("%d records of 10 requests and a flood", got)
		}
		time.Sleep(4 * time.Minute)
		if r := ask(); r.Verdict != event.Denied {
			t.Errorf("four minutes later it is %v", r.Verdict)
		}
		time.Sleep(time.Minute)
		if r := ask(); r.Verdict != event.Unknown {
			t.Errorf("five minutes later it is %v", r.Verdict)
		}
		o.Close()
		flood := 0
		for _, line := range o.book.says("outcome", "count") {
			if strings.HasPrefix(line, "rule ") {
				flood++
				t.Log(line)
			}
		}
		if flood != 2 || o.book.count(event.ApprovalRequest) != 11 {
			t.Errorf("the flood has %d records, and %d requests", flood, o.book.count(event.ApprovalRequest))
		}
	})
}

func TestTheSameAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTestQueue(t, nil)
		for i := range 3 {
			_, end := o.ask(push())
			if err := o.Answer(o.reply(o.waits(), false, nil)); err != nil {
				t.Fatal(i, err)
			}
			<-end
		}
		r, _ := o.ask(push())
		if r.Verdict != event.Denied || !strings.Contains(r.Reason, "3 times") {
			t.Errorf("the fourth time it is %v: %q", r.Verdict, r.Reason)
		}
		if r, _ := o.ask(other(1)); r.Verdict != event.Unknown {
			t.Errorf("something else is %v", r.Verdict)
		}
		time.Sleep(5 * time.Minute)
		if r, _ := o.ask(push()); r.Verdict != event.Unknown {
			t.Errorf("later it is %v", r.Verdict)
		}
	})
}

func TestManyAtATime(t *testing.T) {
	o := newTestQueue(t, func(c *Config) { c.Limits = Limits{Pending: 2, Waiters: 2} })
	o.ask(other(1))
	o.ask(other(1))
	o.ask(other(2))
	for name, a := range map[string]event.Attempt{"a third request": other(3), "a third that waits on one": other(1)} {
		if r, _ := o.ask(a); r.Verdict != event.Denied || r.Reason == "" {
			t.Errorf("%s is %v: %q", name, r.Verdict, r.Reason)
		}
	}
	if err := o.Answer(o.reply(o.Pending()[0], false, nil)); err != nil {
		t.Fatal(err)
	}
	if r, _ := o.ask(other(3)); r.Verdict != event.Unknown {
		t.Errorf("with room again it is %v", r.Verdict)
	}
}

func TestDenialsWithoutAQuestionDoNotFillTheRecord(t *testing.T) {
	for name, deny := range map[string]func(*testQueue, int) event.Ruling{
		"by a rule":     func(o *testQueue, n int) event.Ruling { return o.Deny(other(n), "holdfast.yaml:9", "never") },
		"nobody to ask": func(o *testQueue, n int) event.Ruling { return o.Ask(other(n), "holdfast.yaml:9", "") },
	} {
		o := newTestQueue(t, func(c *Config) { c.Timeout = 0 })
		for n := range 5000 {
			if r := deny(o, n); r.Verdict != event.Denied || r.Rule != "holdfast.yaml:9" || r.Reason == "" {
				t.Fatalf("%s: %+v", name, r)
			}
		}
		o.Close()
		got := o.book.says("count")
		if len(got) != 31 || got[30] != "rule denied count=4970" {
			t.Errorf("%s: %d records, the last %q", name, len(got), got[len(got)-1])
		}
	}
}

// TestManyAtOnce does everything at the same time: no caller waits for ever,
// nothing races, and each use is recorded.
func TestManyAtOnce(t *testing.T) {
	o := newTestQueue(t, func(c *Config) {
		c.Limits = Limits{PerMinute: 1 << 30, Pending: 50, Again: 1 << 30}
		c.Timeout = 500 * time.Millisecond // with time for an answer on a busy machine
		c.Notify = func(Request) {}
	})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var allowed atomic.Int64
	var askers, others sync.WaitGroup
	for i := range 20 {
		askers.Go(func() {
			for range 12 {
				r := o.Ask(other(i%5), "", "")
				if r.Wait != nil {
					own, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(300))*time.Millisecond)
					r = r.Wait(own)
					cancel()
				}
				if r.Verdict == event.Allowed {
					allowed.Add(1)
				} else if r.Verdict != event.Denied {
					t.Errorf("it is %v", r.Verdict)
				}
			}
		})
	}
	for range 3 {
		others.Go(func() {
			for changed := range o.Watch(ctx) {
				_ = changed
				for _, r := range o.Pending() {
					o.Answer(o.reply(r, rand.IntN(3) > 0, func(a *Answer) {
						if a.Allow && rand.IntN(2) == 0 {
							a.Scope, a.Uses = Session, 1+rand.IntN(4)
						}
					}))
				}
				for _, g := range o.Grants() {
					if rand.IntN(4) == 0 {
						o.Revoke(Sign(Answer{Session: "s1", Grant: g.ID, By: "bob"}, o.key))
					}
				}
				o.Attend()()
			}
		})
	}
	askers.Wait()
	for range 3 {
		others.Go(o.Close)
	}
	others.Wait()
	uses := o.book.count(event.ApprovalUse)
	if n := allowed.Load(); n == 0 || int(n) > uses {
		t.Errorf("%d went on, %d uses are recorded", n, uses)
	}
	if r, a := o.book.count(event.ApprovalRequest), o.book.count(event.ApprovalAnswer); r != a {
		t.Errorf("%d requests have %d ends", r, a)
	}
	// Every grant was used as often as it may be at most.
	used := map[string]int{}
	for _, e := range o.book.events {
		if e.Action == event.ApprovalUse {
			used[e.Detail["grant"]]++
		}
	}
	for _, e := range o.book.events {
		if g := e.Detail["grant"]; e.Action == event.ApprovalAnswer && g != "" && fmt.Sprint(used[g]) > e.Detail["uses"] {
			t.Errorf("%s has %s uses and was used %d times", g, e.Detail["uses"], used[g])
		}
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	for range 30 {
		o := newTestQueue(t, nil)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r := o.Ask(other(i%3), "", "")
				if r.Wait != nil {
					r = r.Wait(context.Background())
				}
				if r.Verdict == event.Unknown {
					t.Error("nothing was decided")
				}
			})
		}
		wg.Go(func() {
			for _, r := range o.Pending() {
				o.Answer(o.reply(r, true, nil))
			}
		})
		wg.Go(o.Close)
		wg.Wait()
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]Config{
		"no session":        {Sink: &book{}},
		"no record":         {Session: "s"},
		"a key that is cut": {Session: "s", Sink: &book{}, Grant: ed25519.PrivateKey("x")},
		"half an approver":  {Session: "s", Sink: &book{}, Approvers: []ed25519.PublicKey{[]byte("x")}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func BenchmarkAskCovered(b *testing.B) {
	o := newTestQueue(b, nil)
	o.ask(push())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope = Session })); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if o.Ask(push(), "", "").Verdict != event.Allowed {
			b.Fatal("it is not covered")
		}
		o.book.events = o.book.events[:0]
	}
}
