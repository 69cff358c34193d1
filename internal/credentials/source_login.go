package credentials

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// loginSource is the login file of a program: an access token, and a refresh token that
// renews it. The file is shared with the program outside and with other runs, and most
// providers take a refresh token once: what a renewal gives is written back at once.
//
// A renewal locks the file, reads it again, makes sure that it can be replaced, and only
// then spends the refresh token. What can be lost is a renewal whose answer does not
// arrive, or that this process does not survive between the answer and the rename(2)
// that follows: then the user logs in again.
type loginSource struct {
	path, key string // the file, and where in it the access token is
	renewal   policy.Renewal
	writable  []string
	client    func() (*http.Client, error)
	now       func() time.Time
	wait      func(time.Duration)
	hold      func(value string)                       // keeps a value out of what is written and answered; called before anything else is done with it
	record    func(was, now string, cause error) error // of a renewal: hashes of the access tokens, the second "" where there was none

	// Owned by the taker of the holder's turn.
	rejected string    // hash of an access token that the provider does not accept; "" for none
	refused  string    // hash of a refresh token that the provider has refused; "" for none
	why      error     // it was
	tried    time.Time // of the last request for a renewal
	renewed  time.Time // of the last renewal
	spare    *unwritten
}

// unwritten is a renewal that could not be written to the file, or that another program may
// overwrite with what it has read before.
type unwritten struct {
	spent  string // hash of the refresh token that is still there
	tokens tokens
	why    error
}

const (
	renewBefore = time.Minute      // so long before its end an access token is renewed; more than expiryMargin: a lease that ended there would get the same token again
	renewTime   = 20 * time.Second // for the provider to answer
	renewAgain  = 30 * time.Second // between two requests for a renewal, whatever came of the first
	freshTime   = 5 * time.Minute  // for so long a refusal of a renewed token says nothing about the token
)

func newLoginSource(c policy.Credential, config Config) *loginSource {
	s := &loginSource{
		path: c.Source.Value, key: c.Source.Options["key"],
		writable: config.Writable, client: config.upstream(), now: config.Now, wait: time.Sleep,
	}
	if c.Renewal != nil {
		s.renewal = *c.Renewal
	}
	return s
}

// fetch returns the access token, which it renews if it has ended, is about to, or was
// not accepted. If that fails, a token that is still valid is used.
func (s *loginSource) fetch(ctx context.Context) (*result, error) {
	t, err := s.read()
	if err != nil {
		return nil, err
	}
	if !s.due(t) {
		return t.result(), nil
	}
	// The answer to a renewal is the only one: a request that is given up, or the end of
	// the session, must not end it.
	renewed, err := s.renew(context.WithoutCancel(ctx))
	switch {
	case err == nil:
		return renewed.result(), nil
	case !errors.Is(err, errUnrecorded) && t.valid(s.now()): // also after a 401, which can be about what was asked
		return t.result(), nil
	}
	return nil, err
}

// reject notes that the provider did not accept an access token. One that was renewed a
// moment ago was refused because of what was asked with it.
func (s *loginSource) reject(hash string) {
	if s.now().Sub(s.renewed) >= freshTime {
		s.rejected = hash
	}
}

func (s *loginSource) due(t tokens) bool {
	return !t.valid(s.now().Add(renewBefore)) || hashOfText(t.access) == s.rejected
}

// read returns the tokens of the file, or those that could not be written to it.
func (s *loginSource) read() (tokens, error) {
	if err := checkPath(s.path, s.writable); err != nil {
		return tokens{}, err
	}
	data, real, err := readOwned(s.path, true, policy.MaxFile)
	if err != nil {
		return tokens{}, err
	}
	t, err := s.tokensIn(data)
	if err != nil {
		return tokens{}, s.failure(s.path+" cannot be used", err)
	}
	t.file, t.data, t.there = real, data, hashOfText(t.refresh)
	if s.spare != nil && s.spare.spent == t.there {
		spare := s.spare.tokens
		t.access, t.refresh, t.id, t.ends = spare.access, spare.refresh, spare.id, spare.ends
	}
	for _, v := range []string{t.access, t.refresh, t.id} {
		s.hold(v)
	}
	return t, nil
}

// renew renews the login, unless someone else has done it meanwhile.
func (s *loginSource) renew(ctx context.Context) (tokens, error) {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	unlock, err := lockInode(ctx, s.path)
	if err != nil {
		return tokens{}, s.failure("another program is renewing the login", err)
	}
	defer unlock()
	t, err := s.read()
	if err != nil || !s.due(t) {
		return t, err
	}
	now := s.now()
	switch {
	case t.refresh == "":
		return t, s.failure("the login has ended and has no refresh token", nil)
	case hashOfText(t.refresh) == s.refused:
		return t, s.why
	case now.Sub(s.tried) < renewAgain:
		return t, s.failure("the login has ended, and its renewal was tried a moment ago", nil)
	}
	s.tried = now
	file, err := newLoginFile(t.file)
	if err != nil {
		return t, s.failure("the login has ended, and its renewal could not be written to "+t.file, err)
	}
	defer file.Discard()
	fresh, err := s.ask(ctx, t)
	var no *renewalRefused
	if errors.As(err, &no) {
		if now, again := s.read(); again == nil && now.refresh != t.refresh {
			return now, nil // the program outside renewed it at the same moment
		}
		s.refused, s.why = hashOfText(t.refresh), err
	}
	if err != nil {
		return t, errors.Join(err, s.record(hashOfText(t.access), "", err))
	}
	s.renewed, s.rejected = s.now(), ""
	return fresh, s.record(hashOfText(t.access), hashOfText(fresh.access), s.keep(t, fresh, file))
}
