package credentials

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// human is a Gate that asks about each use, and waits for a test to answer.
type human struct {
	asked chan event.Attempt
	say   chan event.Ruling
}

func newHuman() *human {
	return &human{make(chan event.Attempt, 1000), make(chan event.Ruling)}
}

var (
	yes = event.Ruling{Verdict: event.Allowed, Granted: true}
	no  = event.Ruling{Verdict: event.Denied, Reason: "not today"}
)

func (h *human) Judge(a event.Attempt) event.Ruling {
	return event.Ruling{Rule: "policy.yaml:9", Wait: func(ctx context.Context) event.Ruling {
		if ctx.Err() == nil {
			h.asked <- a
		}
		select {
		case r := <-h.say:
			return r
		case <-ctx.Done():
			return event.Ruling{Verdict: event.Denied, Reason: "nobody said"}
		}
	}}
}

type verdictOf func(event.Attempt) event.Ruling

func (v verdictOf) Judge(a event.Attempt) event.Ruling { return v(a) }

type opened struct {
	Secret
	err error
}

func openLater(ctx context.Context, b *Broker) chan opened {
	out := make(chan opened, 1)
	go func() {
		s, err := b.Open(ctx, "github", toAPI)
		out <- opened{s, err}
	}()
	return out
}

func TestAUseWaitsForAHuman(t *testing.T) {
	t.Parallel()
	h, d := newHuman(), &diary{}
	b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Sink: d, Env: environment("TOKEN", theSecret), Gate: h})
	use := openLater(t.Context(), b)
	a := <-h.asked
	want := event.Attempt{Kind: event.KindCredential, Name: "github", Host: "api.example.org", Port: 443, Protocol: "tls", Method: "GET", URLPath: "/x", Known: true}
	if a.Kind != want.Kind || a.Name != want.Name || a.Host != want.Host || a.Port != 443 || a.Method != "GET" || a.URLPath != "/x" {
		t.Errorf("asked about %+v", a)
	}
	if len(b.Issued()) != 0 || d.count(event.Allowed) != 0 {
		t.Error("it was used before the answer")
	}
	h.say <- yes
	if got := <-use; got.err != nil || got.Value != theSecret {
		t.Errorf("%v, %v", got.Value, got.err)
	}
	use = openLater(t.Context(), b)
	<-h.asked
	h.say <- no
	if got := <-use; got.err == nil || got.err.Error() != "credential github: not today" {
		t.Errorf("%v", got.err)
	}
	if len(d.all) != 2 || d.all[1].Verdict != event.Denied || d.all[1].Layer != event.LayerConsent || d.all[1].Rule != "policy.yaml:9" {
		t.Errorf("recorded as %+v", d.all)
	}
}

func TestARuleDeniesAUseAndOthersAreNotAskedAbout(t *testing.T) {
	t.Parallel()
	d := &diary{}
	b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Sink: d, Env: environment("TOKEN", theSecret), Gate: verdictOf(func(a event.Attempt) event.Ruling {
		switch a.URLPath {
		case "/deny":
			return event.Ruling{Verdict: event.Denied, Rule: "policy.yaml:3", Reason: "never"}
		case "/broken":
			return event.Ruling{} // asks, but there is no one to ask
		}
		return event.Ruling{Verdict: event.Allowed}
	})})
	for path, want := range map[string]string{"/deny?a": "never", "/broken": "nobody can be asked", "/": ""} {
		_, err := b.Open(t.Context(), "github", Use{Name: "api.example.org", Port: 443, Path: path})
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	b = newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Env: environment("TOKEN", theSecret),
		Gate: verdictOf(func(event.Attempt) event.Ruling { t.Error("asked"); return event.Ruling{} }), Wants: func(event.Kind) bool { return false }})
	mustOpen(t, b, "github")
}

// TestWhatWasLeasedMayEndMeanwhile has a lease expire, a grant be revoked and the
// uses run out while a human thinks.
func TestWhatWasLeasedMayEndMeanwhile(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	c := newClock()
	h := newHuman()
	cred := envCredential("github", "TOKEN")
	cred.Uses = 2
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Env: environment("TOKEN", theSecret), Gate: h, Now: c.now})
	inner := b.holders["github"].source
	b.holders["github"].source = sourceFunc(func(ctx context.Context) (*result, error) {
		fetched.Add(1)
		return inner.fetch(ctx)
	})
	for _, wait := range []time.Duration{0, time.Hour} { // longer than the lease
		use := openLater(t.Context(), b)
		<-h.asked
		c.advance(wait)
		h.say <- yes
		if got := <-use; got.err != nil {
			t.Fatal(got.err)
		}
	}
	if n := fetched.Load(); n != 2 {
		t.Errorf("fetched %d times, want anew after the wait", n)
	}
	use := openLater(t.Context(), b)
	if got := <-use; got.err == nil || !strings.Contains(got.err.Error(), "used up") {
		t.Errorf("a use that comes to nothing was asked about: %v", got.err)
	}
}

type sourceFunc func(context.Context) (*result, error)

func (f sourceFunc) fetch(ctx context.Context) (*result, error) { return f(ctx) }

func TestTwoWaitAndOneIsTheLastUse(t *testing.T) {
	t.Parallel()
	h := newHuman()
	cred := envCredential("github", "TOKEN")
	cred.Uses = 1
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Env: environment("TOKEN", theSecret), Gate: h})
	one, two := openLater(t.Context(), b), openLater(t.Context(), b)
	<-h.asked
	<-h.asked // neither prevents the question about the other
	h.say <- yes
	h.say <- yes
	results := []error{(<-one).err, (<-two).err}
	if slices.Contains(results, nil) == (results[0] == nil && results[1] == nil) {
		t.Errorf("%v: one use is there", results)
	}
}

func TestAWaitEndsWithItsRequestAndTheSession(t *testing.T) {
	t.Parallel()
	h := newHuman()
	b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Env: environment("TOKEN", theSecret), Gate: h})
	ctx, leave := context.WithCancel(t.Context())
	use := openLater(ctx, b)
	<-h.asked
	leave()
	if got := <-use; got.err == nil || !strings.Contains(got.err.Error(), "the request ended") {
		t.Errorf("%v", got.err)
	}
	var all []chan opened
	for range heldMost {
		all = append(all, openLater(t.Context(), b))
		<-h.asked
	}
	if got := <-openLater(t.Context(), b); !errors.Is(got.err, got.err) || got.err == nil || !strings.Contains(got.err.Error(), "too much waits") {
		t.Errorf("one too many: %v", got.err)
	}
	begun := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
	for _, use := range all {
		if got := <-use; got.err == nil || got.Value != "" {
			t.Errorf("after the end: %v", got.err)
		}
	}
}

// TestAllAreAskedAboutBeforeTheFirstIsTaken is how a request that carries two
// secrets is served.
func TestAllAreAskedAboutBeforeTheFirstIsTaken(t *testing.T) {
	t.Parallel()
	var asked sync.Map
	n := func() (n int) { asked.Range(func(any, any) bool { n++; return true }); return n }
	b := newBroker(t, Config{
		Credentials: []policy.Credential{envCredential("one", "ONE"), envCredential("two", "TWO")}, Env: environment("ONE", theSecret, "TWO", theSecret+"2"),
		Gate: verdictOf(func(a event.Attempt) event.Ruling {
			if _, again := asked.LoadOrStore(a.Name+a.URLPath, true); again {
				t.Errorf("asked twice about %s %s", a.Name, a.URLPath)
			}
			return event.Ruling{Verdict: event.Allowed}
		}),
	})
	ctx := t.Context()
	for _, name := range []string{"one", "two"} {
		var err error
		if ctx, _, err = b.Consent(ctx, name, toAPI); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one", "two"} {
		if _, err := b.Open(ctx, name, toAPI); err != nil {
			t.Fatal(err)
		}
	}
	other := toAPI
	other.Path = "/other"
	if _, err := b.Open(ctx, "one", other); err != nil || n() != 3 {
		t.Errorf("another use: %v, asked about %d", err, n())
	}
}

// TestNoSecretOnAnApprovalThatEnded: between the answer and the secret there is
// a fetch, which may take long.
func TestNoSecretOnAnApprovalThatEnded(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	b := newBroker(t, Config{
		Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Env: environment("TOKEN", theSecret),
		Gate: verdictOf(func(event.Attempt) event.Ruling {
			return event.Ruling{Verdict: event.Allowed, Granted: true, Over: over}
		}),
	})
	ctx, ruling, err := b.Consent(t.Context(), "github", toAPI)
	if err != nil || ruling.Over == nil {
		t.Fatal(ruling, err)
	}
	close(over)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if s, err := b.Open(ctx, "github", toAPI); err == nil || s.Value != "" || !strings.Contains(err.Error(), "approval") {
			t.Errorf("opened %q, %v", s.Value, err)
		}
	}
}
