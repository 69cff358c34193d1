//go:build linux

package gate

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/event"
)

// notifier notifies humans of what waits, in the ways that the policy names,
// and takes the answers of webhooks. Its methods do nothing on a nil notifier.
type notifier struct {
	config Config
	sink   event.Sink
	key    ed25519.PrivateKey // of this run: signs what a webhook answered
	hooks  []*alert.Asker
	tmux   *popups // nil for none
	note   bool    // by notify-send
	host   string

	ctx  context.Context
	stop func()
	work sync.WaitGroup

	mu    sync.Mutex // guards what follows
	queue *consent.Queue
	leave func()
	over  bool
	live  map[string]context.CancelFunc // ends the questions to webhooks about a request, by its id
}

// newNotifier prepares the ways of approvals.notify. A webhook that could never
// work is an error: the user relies on it.
func newNotifier(c Config, sink event.Sink) (*notifier, error) {
	n := &notifier{config: c, sink: sink, live: map[string]context.CancelFunc{}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	var err error
	if n.key, err = ownKey(); err != nil {
		return nil, err
	}
	for _, w := range c.Plan.Approvals.Notify {
		switch w.Kind {
		case "tmux":
			n.tmux = newPopups(os.Getenv("TMUX"), c.Executable, c.State)
		case "desktop":
			n.note = true
		case "webhook":
			hook, err := alert.NewAsker(w, c.Version)
			if err != nil {
				n.close()
				return nil, fmt.Errorf("preparing approvals.notify (%s): %w", w.Origin, err)
			}
			n.hooks = append(n.hooks, hook)
		}
	}
	n.host, _ = os.Hostname() // only for the reader
	return n, nil
}

// attach sets where answers go. A webhook counts as somebody who is there.
func (n *notifier) attach(q *consent.Queue) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.queue = q
	if len(n.hooks) > 0 {
		n.leave = q.Attend()
	}
	n.mu.Unlock()
	if len(n.hooks) > 0 {
		n.work.Go(func() { n.follow(q) })
	}
}

// close ends all work in progress.
func (n *notifier) close() {
	if n == nil {
		return
	}
	n.stop()
	n.mu.Lock()
	leave := n.leave
	n.over, n.leave = true, nil
	n.mu.Unlock()
	if leave != nil {
		leave()
	}
	n.work.Wait()
	for _, h := range n.hooks {
		h.Close()
	}
}

// begin announces a request that begins to wait. It may be called by several
// goroutines at once, and returns at once.
func (n *notifier) begin(r consent.Request) {
	what := gist(r)
	if n.config.Asks != nil {
		n.config.Asks(r.ID, what)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	if n.tmux != nil {
		n.work.Go(func() { n.tmux.show(n.ctx, r.ID) })
	}
	if n.note {
		n.work.Go(func() { notifySend(n.ctx, r.ID, what) })
	}
	if len(n.hooks) == 0 || !slices.ContainsFunc(n.queue.Pending(), func(o consent.Request) bool { return o.ID == r.ID }) {
		return
	}
	ctx, cancel := context.WithDeadline(n.ctx, r.Expires)
	n.live[r.ID] = cancel
	var asking sync.WaitGroup
	for _, h := range n.hooks {
		asking.Go(func() { n.askWebhook(ctx, h, r) })
	}
	n.work.Go(func() {
		asking.Wait()
		cancel()
	})
}

// follow ends the questions to webhooks about requests that no longer wait.
func (n *notifier) follow(q *consent.Queue) {
	for range q.Watch(n.ctx) {
		waits := map[string]bool{}
		for _, r := range q.Pending() {
			waits[r.ID] = true
		}
		n.mu.Lock()
		for id, cancel := range n.live {
			if !waits[id] {
				cancel()
				delete(n.live, id)
			}
		}
		n.mu.Unlock()
	}
}

// askWebhook gets the answer of one webhook.
func (n *notifier) askWebhook(ctx context.Context, h *alert.Asker, r consent.Request) {
	q := alert.Question{
		ID: r.ID, Nonce: r.Nonce, Digest: r.Digest, Session: r.Session, Host: n.host, Kind: string(r.Attempt.Kind),
		Asked: r.Asked, Expires: r.Expires, Rule: r.Rule, Reason: consent.Visible(r.Reason), Count: r.Count,
	}
	for _, l := range consent.Describe(r) {
		q.What = append(q.What, alert.QuestionLine{Name: l.Name, Warn: l.Warn, Text: n.config.Mask(l.Text)})
	}
	reply, err := h.Ask(ctx, q, func(err error) { n.recordIgnored(h, r, err) })
	if err != nil {
		if ctx.Err() == nil { // else the question is over
			n.recordIgnored(h, r, err)
		}
		return
	}
	a, err := n.answer(r, reply)
	if err == nil {
		err = n.queue.Answer(consent.Sign(a, n.key))
	}
	if err != nil && ctx.Err() == nil {
		n.recordIgnored(h, r, err)
	}
}

// answer converts the reply of a webhook to an answer to r.
func (n *notifier) answer(r consent.Request, reply alert.Reply) (consent.Answer, error) {
	a := r.Answer()
	a.Allow, a.Reason, a.By, a.Via, a.At, a.Uses = reply.Decision == "allow", reply.Reason, reply.By, "webhook", time.Now(), reply.Uses
	if !a.Allow {
		a.Uses = 0
		return a, nil
	}
	if a.Scope = consent.Scope(reply.Scope); a.Scope == "" {
		a.Scope = consent.Once
	}
	if reply.For != "" {
		d, err := time.ParseDuration(reply.For)
		if err != nil {
			return a, fmt.Errorf("%q is not a duration", reply.For)
		}
		a.For = d
	}
	return a, nil
}

// recordIgnored records that the answer of a webhook did not count.
func (n *notifier) recordIgnored(h *alert.Asker, r consent.Request, why error) {
	n.sink.Emit(event.Event{ // a record that fails ends the run
		Action: event.ApprovalAnswer, Object: r.Attempt.Path, Rule: r.Rule, Process: r.Attempt.Process,
		Detail: map[string]string{
			"id": r.ID, "kind": string(r.Attempt.Kind), "digest": r.Digest, "via": "webhook", "outcome": consent.OutcomeIgnored,
			"reason": "what " + h.Name() + " answered was ignored: " + why.Error(),
		},
	})
}

// gist is what would happen in a few words.
func gist(r consent.Request) string {
	text := consent.Summary(r.Attempt)
	if len(text) > gistBytes {
		text = strings.ToValidUTF8(text[:gistBytes], "") + "… (cut)"
	}
	return text
}

// gistBytes is how much of that a note shows.
const gistBytes = 160

// ownKey makes a key of this run alone, for answers that came with a signature
// of another kind.
func ownKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key for answers: %w", err)
	}
	return key, nil
}
