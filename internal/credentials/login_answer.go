package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// insideAgain is what a program inside is told about the time of its tokens, in seconds.
// When they are renewed is decided here.
const insideAgain = 3600

// Renew answers what a program sent to the token endpoint of a credential's login. What
// it gets are placeholders, or the error of the provider: nothing else of its answer
// comes inside. It returns nil for a request that is no renewal with the placeholder.
//
// If rules of consent can be about requests or credentials, nothing is asked of the
// provider here, but when the token is used: after the answer about that use.
func (b *Broker) Renew(ctx context.Context, credential string, request []byte) (status int, answer []byte) {
	h := b.holders[credential]
	if h == nil || h.placeholders.refresh == "" {
		return 0, nil
	}
	asked := func(name string) string { return jsonText(request, name) }
	if form, err := url.ParseQuery(string(request)); err == nil && !json.Valid(request) {
		asked = form.Get
	}
	if asked("grant_type") != "refresh_token" || asked("refresh_token") != h.placeholders.refresh {
		return 0, nil
	}
	fields := map[string]any{"token_type": "Bearer", "expires_in": insideAgain, "access_token": h.placeholders.value, "refresh_token": h.placeholders.refresh}
	if h.placeholders.id != "" {
		fields["id_token"] = h.placeholders.id
	}
	status = http.StatusOK
	var err error
	if !b.wantsConsent() && !b.wants(event.KindRequest) {
		err = h.ready(ctx)
	}
	if err != nil {
		status, fields = http.StatusServiceUnavailable, map[string]any{"error": "temporarily_unavailable", "error_description": "holdfast: " + err.Error()}
		var no *renewalRefused
		if errors.As(err, &no) {
			status, fields["error"] = http.StatusBadRequest, no.code
		}
	}
	answer, _ = json.Marshal(fields) // of texts and a number
	return status, answer
}

// ready makes sure that there is a lease. No use is counted.
func (h *holder) ready(ctx context.Context) error {
	if err := h.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { h.turn <- struct{}{} }()
	if err := h.valid(); err != nil {
		return err
	}
	_, err := h.current(ctx)
	h.untold = nil
	var no *renewalRefused
	if errors.As(err, &no) && !h.told {
		h.untold = err
	}
	return err
}

// Rejected notes that a provider answered 401 to a request with a credential's secret.
// The secret of a login is renewed then, unless that has just been done.
func (b *Broker) Rejected(credential string) {
	if h := b.holders[credential]; h != nil {
		h.rejected.Store(true)
	}
}

// dropRejected ends the lease of a login that the provider did not accept.
func (h *holder) dropRejected() {
	s, ok := h.source.(*loginSource)
	if !h.rejected.Swap(false) || !ok || h.lease == nil {
		return
	}
	s.reject(h.lease.hash)
	h.lease.expires = time.Time{} // the file is read again, and may have another
}

// recordRenewal records that a login was renewed, or that the provider refused it. The
// renewal has happened: an error means that nothing may be done with it.
func (h *holder) recordRenewal(was, now string, cause error) error {
	b := h.broker
	if b.config.Sink == nil {
		return nil
	}
	to, _, _ := h.cred.Renewal.Endpoint()
	e := event.Event{
		Time: b.config.Now(), Session: b.config.Session, Action: event.CredentialRenew, Verdict: event.Allowed,
		Object: fmt.Sprintf("%s:%d", to.Host, to.Port), Rule: h.cred.Origin.String(), Detail: map[string]string{"credential": h.cred.Name, "was": was},
	}
	if now != "" {
		e.Detail["hash"] = now
	} else {
		e.Verdict = event.Denied
	}
	if cause != nil {
		e.Detail["reason"] = cause.Error()
	}
	if err := b.config.Sink.Emit(e); err != nil {
		return errors.Join(errUnrecorded, err)
	}
	return nil
}
