//go:build linux

package gate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/consent/rules"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/supervise/control"
)

// asking is the gate of a run, without the run.
type asking struct {
	t     *testing.T
	state string
	*Gate
}

func newAsking(t *testing.T, session string, notify ...policy.AlertSink) *asking {
	t.Helper()
	return asks(t, t.TempDir(), session, notify...)
}

func asks(t *testing.T, state, session string, notify ...policy.AlertSink) *asking {
	t.Helper()
	dir := filepath.Join(state, "sessions", session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := Config{Session: session, State: state, Keys: filepath.Join(state, "keys"), Sink: nowhere{}, Mask: func(text string) string { return text }}
	c.Plan.Ask = []rules.Rule{{When: "true"}}
	c.Plan.Approvals = policy.Approvals{Timeout: time.Minute, Notify: notify}
	g, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := control.Listen(dir, consent.Handlers(session, g.Queue()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(); stop() })
	return &asking{t, state, g}
}

// nowhere is a record that keeps nothing.
type nowhere struct{}

func (nowhere) Emit(event.Event) error { return nil }

// hold asks, and returns the outcome.
func (a *asking) hold(argv ...string) <-chan event.Ruling {
	a.t.Helper()
	r := a.queue.Ask(event.Attempt{Kind: event.KindExec, Path: "/bin/x", Process: event.Process{
		PID: 1, Executable: "/bin/x", SHA256: strings.Repeat("a", 64), Argv: argv, Cwd: "/"}}, "policy.yaml:3", "it reaches others")
	ruling := make(chan event.Ruling, 1)
	if r.Wait == nil {
		ruling <- r
		return ruling
	}
	go func() { ruling <- r.Wait(context.Background()) }()
	return ruling
}

func (a *asking) waiting() []consent.Request {
	a.t.Helper()
	all, err := consent.Waits(context.Background(), a.state)
	if err != nil {
		a.t.Fatal(err)
	}
	var out []consent.Request
	for _, w := range all {
		out = append(out, w.Requests...)
	}
	return out
}

func (a *asking) sign(n consent.Answer) consent.Signed {
	a.t.Helper()
	key, err := consent.ApproverKey(a.config.Keys)
	if err != nil {
		a.t.Fatal(err)
	}
	n.By, n.Via, n.At = "ann", "command", time.Now()
	return consent.Sign(n, key)
}

func (a *asking) answer(r consent.Request, allow bool) error {
	n := r.Answer()
	if n.Allow = allow; allow {
		n.Scope = consent.Once
	}
	return consent.AnswerRequest(context.Background(), a.state, r.Session, a.sign(n))
}

func verdict(t *testing.T, c <-chan event.Ruling) event.Ruling {
	t.Helper()
	select {
	case r := <-c:
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was decided")
		return event.Ruling{}
	}
}

func TestApprovalsOverTheControlSocket(t *testing.T) {
	t.Parallel()
	a := newAsking(t, "20261122T120000-aaaa")
	first, second := a.hold("x", "\xff\x1b"), a.hold("x", "y")
	list := a.waiting()
	if len(list) != 2 || list[0].Attempt.Process.Argv[1] != "\xff\x1b" || list[0].Session != "20261122T120000-aaaa" {
		t.Fatalf("got %+v", list)
	}
	if err := a.answer(list[0], true); err != nil {
		t.Fatal(err)
	}
	if r := verdict(t, first); r.Verdict != event.Allowed || !r.Granted {
		t.Errorf("got %+v", r)
	}
	if err := a.answer(list[0], false); err == nil || !strings.Contains(err.Error(), "already answered: allowed by ann") {
		t.Errorf("a second answer: %v", err)
	}
	n := list[1].Answer()
	n.Allow, n.Scope = true, consent.Session
	if err := consent.AnswerRequest(context.Background(), a.state, n.Session, a.sign(n)); err != nil {
		t.Fatal(err)
	}
	verdict(t, second)
	all, err := consent.Waits(context.Background(), a.state)
	if err != nil || len(all) != 1 || len(all[0].Grants) != 1 {
		t.Fatalf("got %+v, %v", all, err)
	}
	if r := verdict(t, a.hold("x", "y")); !r.Granted {
		t.Errorf("the approval of the session does not hold: %+v", r)
	}
	if err := consent.RevokeGrant(context.Background(), a.state, n.Session, a.sign(consent.Answer{Session: n.Session, Grant: all[0].Grants[0].ID})); err != nil {
		t.Fatal(err)
	}
	third := a.hold("x", "y")
	if list := a.waiting(); len(list) != 1 {
		t.Fatalf("what was taken back is not asked: %+v", list)
	} else if err := a.answer(list[0], false); err != nil {
		t.Fatal(err)
	}
	if r := verdict(t, third); r.Verdict != event.Denied {
		t.Errorf("got %+v", r)
	}
	var kinds []string
	for _, c := range a.Report() {
		kinds = append(kinds, fmt.Sprint(c.What, " ", c.Allowed, " ", c.Why()))
	}
	if got := strings.Join(kinds, "; "); strings.Count(got, "true by ann") != 2 || strings.Count(got, "false by ann") != 1 {
		t.Errorf("the summary is %s", got)
	}
}

func TestApprovalsTakeNoForgedAnswer(t *testing.T) {
	t.Parallel()
	a, other := newAsking(t, "20261122T120000-aaaa"), newAsking(t, "20261122T120000-aaaa")
	ruling, elsewhere := a.hold("x"), other.hold("x")
	r, q := a.waiting()[0], other.waiting()[0]
	_, forged, _ := ed25519.GenerateKey(nil)
	n := r.Answer()
	n.Allow, n.Scope, n.By = true, consent.Once, "ann"
	unsigned := a.sign(n)
	unsigned.Signature = nil
	changed := a.sign(n)
	changed.Answer.Scope = consent.Session
	digest := n
	digest.Digest = q.Digest
	for name, s := range map[string]consent.Signed{
		"of another key":           consent.Sign(n, forged),
		"of another user's key":    other.sign(n),
		"without a signature":      unsigned,
		"changed after signing":    changed,
		"to another request":       a.sign(q.Answer()),
		"about something else":     a.sign(digest),
		"of the run's own request": {Answer: n, Key: forged.Public().(ed25519.PublicKey), Signature: unsigned.Signature},
	} {
		if err := consent.AnswerRequest(context.Background(), a.state, r.Session, s); err == nil {
			t.Errorf("an answer %s was taken", name)
		}
	}
	if err := consent.AnswerRequest(context.Background(), a.state, "../"+r.Session, a.sign(n)); err == nil {
		t.Error("a path was taken for a session")
	}
	if len(a.waiting()) != 1 {
		t.Error("the request waits no more")
	}
	a.Close()
	other.Close()
	if r := verdict(t, ruling); r.Verdict != event.Denied {
		t.Errorf("got %+v", r)
	}
	verdict(t, elsewhere)
}

// Two answers at once: one of them decides, and the error of the other names who did.
func TestApproversAtOnce(t *testing.T) {
	t.Parallel()
	a := newAsking(t, "20261122T120000-aaaa")
	for i := range 5 {
		ruling := a.hold("x", strconv.Itoa(i)) // after some denials the same is not asked again
		r := a.waiting()[0]
		errs := make(chan error, 2)
		for _, allow := range []bool{true, false} {
			go func() { errs <- a.answer(r, allow) }()
		}
		one, two := <-errs, <-errs
		if (one == nil) == (two == nil) {
			t.Fatalf("both or none: %v, %v", one, two)
		}
		verdict(t, ruling)
	}
}

// A run that already serves as many connections as it can is not one that asks nothing.
func TestARunThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	const session = "20261122T120000-aaaa"
	a := newAsking(t, session)
	a.hold("x")
	for range 32 { // as many as are served at a time
		c, err := control.Dial(t.Context(), filepath.Join(a.state, "sessions", session))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if all, err := consent.Waits(t.Context(), a.state); !errors.Is(err, control.ErrSilent) || !strings.Contains(err.Error(), session) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestFollowWaits(t *testing.T) {
	t.Parallel()
	a := newAsking(t, "20261122T120000-aaaa")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	states := make(chan []consent.Waiting, 100)
	ended := make(chan error, 1)
	go func() { ended <- consent.FollowWaits(ctx, a.state, func(all []consent.Waiting) { states <- all }) }()
	await := func(what string, is func([]consent.Waiting) bool) {
		t.Helper()
		for end := time.After(20 * time.Second); ; {
			select {
			case all := <-states:
				if is(all) {
					return
				}
			case <-end:
				t.Fatalf("it is never seen that %s", what)
			}
		}
	}
	count := func(runs, requests int) func([]consent.Waiting) bool {
		return func(all []consent.Waiting) bool {
			n := 0
			for _, w := range all {
				n += len(w.Requests)
			}
			return len(all) == runs && n == requests
		}
	}
	await("one run asks nothing", count(1, 0))
	if !a.queue.Attended() {
		t.Error("nobody seems to be there")
	}
	ruling := a.hold("x")
	await("it asks", count(1, 1))
	b := asks(t, a.state, "20261122T120001-bbbb")
	b.hold("y")
	await("another run asks too", count(2, 2))
	if err := a.answer(a.waiting()[0], true); err != nil {
		t.Fatal(err)
	}
	verdict(t, ruling)
	await("one was answered", count(2, 1))
	b.Close()
	await("a run is over", count(1, 0))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for end := time.Now().Add(10 * time.Second); a.queue.Attended(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("somebody still seems to be there")
		}
	}
}

func TestRunThatAsksNothing(t *testing.T) {
	t.Parallel()
	g, err := Open(Config{})
	if g != nil || err != nil || g.Queue() != nil || g.Report() != nil {
		t.Errorf("got %v, %v", g, err)
	}
	g.Close()
	dir := t.TempDir()
	stop, err := control.Listen(dir, consent.Handlers("s", g.Queue()))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, do := range []string{"approvals", "approvals.watch", "approvals.answer", "approvals.revoke"} {
		err := control.Exchange(context.Background(), dir, map[string]string{"Do": do}, nil)
		if err == nil || !strings.Contains(err.Error(), "this run asks nothing") {
			t.Errorf("%s: %v", do, err)
		}
	}
}
