package credentials

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// heldMost is how many uses may wait for a human at once; more are refused.
const heldMost = 64

// consentKey is the key, in a context, of the uses that were asked about.
type consentKey struct{}

// priorConsent is one of them; before leads to the others.
type priorConsent struct {
	credential string
	use        Use
	ruling     event.Ruling
	before     *priorConsent
}

// find returns the ruling about a use that was asked about already.
func (a *priorConsent) find(credential string, use Use) (event.Ruling, bool) {
	for ; a != nil; a = a.before {
		if a.credential == credential && a.use == use {
			return a.ruling, true
		}
	}
	return event.Ruling{}, false
}

// Consent asks about one use of a credential, and waits if a human has to
// decide. No use is counted and no lock is held meanwhile: a lease may end, and
// Open finds that out. The returned context is for Open, which does not ask
// about this use again; a caller that needs several secrets for one request
// asks about all of them first. Without a gate nothing is asked. The ruling
// says when what is done with the secret must end.
func (b *Broker) Consent(ctx context.Context, credential string, use Use) (context.Context, event.Ruling, error) {
	h := b.holders[credential]
	if h == nil || !b.wantsConsent() {
		return ctx, event.Ruling{}, nil // Open returns the error, if there is one
	}
	use = withoutQuery(use)
	ruling, err := b.ask(ctx, h, use)
	if err != nil {
		b.refused(h, use, err)
		return ctx, ruling, err
	}
	before, _ := ctx.Value(consentKey{}).(*priorConsent)
	return context.WithValue(ctx, consentKey{}, &priorConsent{credential, use, ruling, before}), ruling, nil
}

func (b *Broker) wantsConsent() bool { return b.wants(event.KindCredential) }

// wants reports whether rules of consent can be about a kind.
func (b *Broker) wants(k event.Kind) bool {
	return b.config.Gate != nil && (b.config.Wants == nil || b.config.Wants(k))
}

// ask asks about a use, unless it was asked about before. It does not ask about
// a use that would fail anyway.
func (b *Broker) ask(ctx context.Context, h *holder, use Use) (event.Ruling, error) {
	done, _ := ctx.Value(consentKey{}).(*priorConsent)
	if ruling, was := done.find(h.cred.Name, use); was || !b.wantsConsent() {
		return ruling, nil
	}
	if err := h.usable(ctx, use); err != nil {
		return event.Ruling{}, err
	}
	r := b.config.Gate.Judge(event.Attempt{
		Kind: event.KindCredential, Name: h.cred.Name, Host: use.Name, Port: use.Port,
		Protocol: "tls", Method: use.Method, URLPath: use.Path, Known: true,
	})
	rule := r.Rule
	if r.Verdict == event.Unknown {
		r = b.awaitHuman(ctx, r)
	}
	r.Rule = cmp.Or(r.Rule, rule)
	if r.Verdict == event.Allowed {
		return r, nil
	}
	return r, h.unapproved(cmp.Or(r.Reason, "a rule of consent denies it"), r)
}

// unapproved is the error for a use that rules of consent, or a human, do not allow.
func (h *holder) unapproved(reason string, r event.Ruling) *Error {
	e := h.refuse(reason, nil)
	e.consent, e.rule = true, r.Rule
	return e
}

// withoutQuery is a use whose path has no query: a query may hold what must not be recorded.
func withoutQuery(use Use) Use {
	use.Path, _, _ = strings.Cut(use.Path, "?")
	return use
}

// awaitHuman waits for a human, until the request or the session ends.
func (b *Broker) awaitHuman(ctx context.Context, r event.Ruling) event.Ruling {
	if r.Wait == nil {
		return event.Ruling{Verdict: event.Denied, Reason: "nobody can be asked"}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(b.life, func() { end(errEnded) })()
	select {
	case b.held <- struct{}{}:
		defer func() { <-b.held }()
	default:
		end(errCrowded) // Wait must be called even then: it withdraws the question
	}
	answer := r.Wait(ctx)
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
			cause = errGone
		}
		return event.Ruling{Verdict: event.Denied, Rule: answer.Rule, Reason: cause.Error()}
	}
	return answer
}

var (
	errGone    = errors.New("the request ended before there was an answer")
	errEnded   = errors.New("the session has ended")
	errCrowded = errors.New("too much waits for an answer already")
)

// usable returns why a use would fail at this moment.
func (h *holder) usable(ctx context.Context, use Use) error {
	if err := h.waitTurn(ctx, use); err != nil {
		return err
	}
	defer func() { h.turn <- struct{}{} }()
	return h.valid()
}
