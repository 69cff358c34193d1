package consent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// book is a record in memory.
type book struct {
	mu     sync.Mutex
	events []event.Event
	fail   string // action that cannot be recorded; "*" for all
}

func (b *book) Emit(e event.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail == e.Action || b.fail == "*" {
		return errors.New("the disk is full")
	}
	b.events = append(b.events, e)
	return nil
}

func (b *book) breaks(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = action
}

// says returns the events as ACTION VERDICT with the named details.
func (b *book) says(details ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for _, e := range b.events {
		line := strings.TrimPrefix(e.Action, "approval.") + " " + e.Verdict.String()
		for _, k := range details {
			if v := e.Detail[k]; v != "" {
				line += " " + k + "=" + v
			}
		}
		list = append(list, line)
	}
	return list
}

func (b *book) count(action string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.events {
		if e.Action == action {
			n++
		}
	}
	return n
}

// testQueue is a queue with an approver and a record.
type testQueue struct {
	*Queue
	t    testing.TB
	book *book
	key  ed25519.PrivateKey
}

func newTestQueue(t testing.TB, change func(*Config)) *testQueue {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &book{}
	c := Config{Session: "s1", Sink: b, Approvers: []ed25519.PublicKey{public}, Timeout: time.Minute}
	if change != nil {
		change(&c)
	}
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return &testQueue{d, t, b, key}
}

// reply signs an answer to r; change may alter it before.
func (o *testQueue) reply(r Request, allow bool, change func(*Answer)) Signed {
	a := r.Answer()
	a.Allow, a.By, a.Via, a.At = allow, "alice", "terminal", time.Now()
	if allow {
		a.Scope = Once
	}
	if change != nil {
		change(&a)
	}
	return Sign(a, o.key)
}

// ask asks, and returns the ruling and its outcome.
func (o *testQueue) ask(a event.Attempt) (event.Ruling, <-chan event.Ruling) {
	o.t.Helper()
	r := o.Ask(a, "holdfast.yaml:3", "pushes leave the machine")
	if (r.Verdict == event.Unknown) != (r.Wait != nil) {
		o.t.Fatalf("verdict %v, Wait is nil: %t", r.Verdict, r.Wait == nil)
	}
	end := make(chan event.Ruling, 1)
	if r.Wait != nil {
		go func() { end <- r.Wait(context.Background()) }()
	}
	return r, end
}

// waits returns the only request that waits.
func (o *testQueue) waits() Request {
	o.t.Helper()
	list := o.Pending()
	if len(list) != 1 {
		o.t.Fatalf("%d requests wait", len(list))
	}
	return list[0]
}

func push() event.Attempt {
	return event.Attempt{
		Kind: event.KindExec, Path: "/usr/bin/git", ParentExecutable: "/bin/bash",
		Process: event.Process{PID: 7, Exec: 3, Executable: "/usr/bin/git", SHA256: strings.Repeat("ab", 32), Cwd: "/home/you/project", Argv: []string{"git", "push", "origin", "main"}},
	}
}

func verdict(t *testing.T, got <-chan event.Ruling, want event.Verdict, reason string) {
	t.Helper()
	select {
	case r := <-got:
		if r.Verdict != want || !strings.Contains(r.Reason, reason) || r.Granted != (want == event.Allowed) || r.Rule != "holdfast.yaml:3" {
			t.Errorf("it is %v (granted %t) by %q: %q, want %v: %q", r.Verdict, r.Granted, r.Rule, r.Reason, want, reason)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("there is no answer")
	}
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
