package credentials

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// holder is one credential of a session.
type holder struct {
	broker       *Broker
	cred         policy.Credential
	source       source
	placeholders placeholders
	grant        string // id of the grant that it is; "" for a credential of a policy
	marker       string // its mark of revocation when the session began

	file     *policy.AgentFile // that stands for its login file inside; nil for none
	text     map[string]any    // of its login, for a variable; nil for none
	rejected atomic.Bool       // the provider answered 401 to its secret

	turn chan struct{} // holds one token; its taker owns the fields below

	lease       *lease
	before      *lease // the lease before: requests with its secret may not have been sent yet
	used        int64
	failed      error
	failedUntil time.Time
	told        bool  // the last use failed, so that the network reports why
	untold      error // a renewal was refused that only the program inside knows of
}

// lease is the secret from a source, and how long it is valid.
type lease struct {
	id      string
	hash    string
	got     func() *result // a function, because fmt shows what a pointer points to
	expires time.Time
}

// Defaults of leases.
const (
	defaultTTL     = 15 * time.Minute
	expiryMargin   = 30 * time.Second // so long before a source's own expiry a secret is no longer used: clocks differ, and requests take time
	failureBackoff = 5 * time.Second  // for so long a source that failed is not asked again
	fetchTime      = 30 * time.Second // for a source to answer
)

func (b *Broker) newHolder(c policy.Credential, variables []string) (*holder, error) {
	if !nameOK(c.Name) {
		return nil, badName(c.Name)
	}
	if c.Sign != "" && c.Sign != signAWS {
		return nil, &Error{Credential: c.Name, Reason: fmt.Sprintf("%q is not a known way to sign", c.Sign)}
	}
	if c.TTL <= 0 {
		c.TTL = defaultTTL
	}
	h := &holder{broker: b, cred: c, placeholders: newPlaceholders(c), turn: make(chan struct{}, 1)}
	h.turn <- struct{}{}
	var err error
	if h.source, err = newSource(c, b.config, variables); err != nil {
		return nil, err
	}
	if c.Renewal != nil || c.Inside != nil {
		s := newLoginSource(c, b.config)
		s.record, s.hold = h.recordRenewal, h.holdValue
		if err := h.makeInside(s); err != nil {
			return nil, err
		}
		if c.Renewal != nil {
			h.source = s
		}
	}
	if b.grants.Dir == "" {
		return h, nil
	}
	if h.marker, err = b.grants.mark(c.Name); err != nil {
		return nil, &Error{Credential: c.Name, Reason: "whether it was revoked cannot be determined", cause: err}
	}
	if c.Origin.File == b.grants.path(c.Name) {
		g, err := b.grants.Get(c.Name)
		if err != nil {
			return nil, &Error{Credential: c.Name, Reason: "its grant cannot be read", cause: err}
		}
		h.grant = g.ID
	}
	return h, nil
}

const signAWS = "aws-sigv4"

func (h *holder) goesTo(name string, port int) bool {
	return slices.Contains(h.cred.Hosts, policy.HostPort{Host: name, Port: port})
}

func (h *holder) binding() Binding {
	return Binding{
		Credential: h.cred.Name, Placeholder: h.placeholders.value,
		Header: h.cred.Header, Format: h.cred.Format, Always: h.cred.Always, Sign: h.cred.Sign,
		Paths: slices.Clone(h.cred.Paths),
	}
}

func (h *holder) refuse(reason string, cause error) *Error {
	return &Error{Credential: h.cred.Name, Reason: reason, cause: cause}
}

// open returns the secret for one request. It checks the grant before the
// fetch, so that a revoked one causes no fetch, and again after it, with the
// approval, because a fetch may take long.
func (h *holder) open(ctx context.Context, use Use, approval event.Ruling) (Secret, error) {
	if err := h.waitTurn(ctx, use); err != nil {
		return Secret{}, err
	}
	defer func() { h.turn <- struct{}{} }()
	if err := h.valid(); err != nil {
		h.drop()
		return Secret{}, err
	}
	l, err := h.current(ctx)
	h.told, h.untold = err != nil, nil
	if err != nil {
		return Secret{}, err
	}
	select {
	case <-approval.Over: // nil is never ready
		return Secret{}, h.unapproved("the approval that allowed it has ended", approval)
	default:
	}
	left, err := h.count()
	if err != nil {
		h.drop()
		return Secret{}, err
	}
	if err := h.broker.record(h, use, l, left); err != nil {
		return Secret{}, err
	}
	secret := l.got().secret()
	if !h.broker.remember(secret) {
		return Secret{}, h.refuse("the session has ended", nil)
	}
	return secret, nil
}

// waitTurn waits for the turn of a use; its caller gives the turn back.
func (h *holder) waitTurn(ctx context.Context, use Use) error {
	if !h.goesTo(use.Name, use.Port) {
		return h.refuse(fmt.Sprintf("it is not for %s:%d", use.Name, use.Port), nil)
	}
	return h.takeTurn(ctx)
}

func (h *holder) takeTurn(ctx context.Context) error {
	select {
	case <-h.turn:
		return nil
	case <-ctx.Done():
		return h.refuse("the request ended before its turn", ctx.Err())
	case <-h.broker.life.Done():
		return h.refuse("the session has ended", nil)
	}
}

// valid returns why nothing may be opened any more; nil while it may.
func (h *holder) valid() error {
	if h.broker.isClosed() {
		return h.refuse("the session has ended", nil)
	}
	if h.cred.Uses > 0 && h.used >= h.cred.Uses {
		return h.refuse(fmt.Sprintf("all of its %d uses are used up", h.cred.Uses), nil)
	}
	if h.broker.grants.Dir == "" {
		return nil
	}
	mark, err := h.broker.grants.mark(h.cred.Name)
	switch {
	case err != nil:
		return h.refuse("whether it was revoked cannot be determined", err)
	case mark != h.marker:
		return h.refuse("it was revoked", nil)
	case h.grant == "":
		return nil
	}
	if err := h.broker.grants.valid(h.cred.Name, h.grant); err != nil {
		return h.refuse("its grant is no longer valid", err)
	}
	return nil
}

// count takes one use and returns how many are left, in words. Before that it
// checks once more that the grant is valid.
func (h *holder) count() (left string, err error) {
	if err := h.valid(); err != nil {
		return "", err
	}
	left = "any number"
	if h.grant != "" {
		n, limited, err := h.broker.grants.spendUse(h.cred.Name, h.grant)
		if err != nil {
			return "", h.refuse("its grant is no longer valid", err)
		}
		if limited {
			left = strconv.FormatInt(n, 10)
		}
	}
	h.used++
	if h.cred.Uses > 0 {
		left = strconv.FormatInt(h.cred.Uses-h.used, 10)
	}
	return left, nil
}

// current is the valid lease; it is fetched if there is none.
func (h *holder) current(ctx context.Context) (*lease, error) {
	h.dropRejected()
	now := h.broker.config.Now()
	if h.lease != nil && now.Before(h.lease.expires) {
		return h.lease, nil
	}
	if h.failed != nil && now.Before(h.failedUntil) {
		return nil, h.failed
	}
	h.failed = nil
	got, err := h.fetch(ctx)
	if err != nil {
		if ctx.Err() == nil { // a cancelled request says nothing about the source
			h.failed, h.failedUntil = err, h.broker.config.Now().Add(failureBackoff)
		}
		return nil, err
	}
	now = h.broker.config.Now()
	l := &lease{id: rand.Text()[:12], hash: hashOf(got.secret()), got: func() *result { return got }, expires: now.Add(h.cred.TTL)}
	if !got.expires.IsZero() {
		last := got.expires
		if last.Sub(now) > 2*expiryMargin {
			last = last.Add(-expiryMargin)
		}
		if last.Before(l.expires) {
			l.expires = last
		}
	}
	h.retire(h.before)
	h.before, h.lease = h.lease, l
	return l, nil
}

// fetch asks the source, limited by its time and the session's.
func (h *holder) fetch(ctx context.Context) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	defer context.AfterFunc(h.broker.life, cancel)()
	got, err := h.source.fetch(ctx)
	if err == nil {
		h.redact(got.secret())
		if why := unusable(got.secret(), h.cred.Sign); why != "" {
			err = errors.New(why)
		} else if !got.expires.IsZero() && !h.broker.config.Now().Before(got.expires) {
			err = errors.New("what the source gave has expired already")
		}
		if err != nil {
			h.retire(&lease{got: func() *result { return got }})
		}
	}
	if err != nil {
		e := h.refuse("its source failed", err)
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) {
			e.hint = hinted.Hint()
		}
		return nil, e
	}
	return got, nil
}

// holdValue keeps a value of a login out of what is written, and out of answers.
func (h *holder) holdValue(value string) {
	s := Secret{Value: value}
	h.redact(s)
	h.broker.remember(s)
}

// redact keeps a secret out of what is written, before anything is done with it.
func (h *holder) redact(s Secret) {
	for _, v := range sensitive(s) {
		h.broker.config.reportHeld(h.cred.Name, v)
	}
}

// drop ends the leases: the grant is no longer valid.
func (h *holder) drop() {
	h.retire(h.before)
	h.retire(h.lease)
	h.before, h.lease = nil, nil
}

// retire revokes a lease upstream and forgets it. Only Close waits for it.
func (h *holder) retire(l *lease) {
	if l == nil {
		return
	}
	if l.got().revoke == nil {
		l.got().wipe()
		return
	}
	h.broker.revoking.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		l.got().revoke(ctx) // it ends by itself later
		l.got().wipe()
	})
}

// close revokes what there is. It returns what could not be revoked, and what the user
// has to know of a login.
func (h *holder) close(ctx context.Context) error {
	if _, ok := h.source.(*loginSource); ok { // a renewal under way is not to be lost
		longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
		defer cancel()
		ctx = longer
	}
	select {
	case <-h.turn: // it is not given back: nothing is opened any more
	case <-ctx.Done():
		return h.refuse("it was in use to the end, so nothing was revoked upstream", ctx.Err())
	}
	errs := []error{h.untold}
	if s, ok := h.source.(*loginSource); ok {
		if err := s.lost(); err != nil {
			errs = append(errs, h.refuse("the login in its file is used up; "+s.renewal.Login, err))
		}
	}
	for _, l := range []*lease{h.before, h.lease} {
		if l == nil {
			continue
		}
		if l.got().revoke != nil {
			if err := l.got().revoke(ctx); err != nil {
				errs = append(errs, h.refuse("what was made for the session could not be revoked; it ends "+l.ends(), err))
			}
		}
		l.got().wipe()
	}
	h.before, h.lease = nil, nil
	return errors.Join(errs...)
}

func (l *lease) ends() string {
	if l.got().expires.IsZero() {
		return "when its source says"
	}
	return "at " + l.got().expires.UTC().Format(time.RFC3339)
}

// nameOK reports whether a name can be that of a credential, and of a file.
func nameOK(name string) bool {
	return name != "" && len(name) <= 64 && name[0] != '-' && strings.Trim(name, urlSafe) == ""
}

func badName(name string) error {
	return &Error{Credential: strconv.Quote(name), Reason: "a name has letters, digits, - and _, and at most 64 of them"}
}
