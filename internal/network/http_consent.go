package network

import (
	"context"
	"net/http"
	"slices"

	"holdfast.dev/holdfast/internal/floor/event"
)

// ruled says why the rules of this moment do not permit a request whose path is
// known, or nil.
func (x *exchange) ruled(r *http.Request) *denial {
	p, ok := x.engine.permit(x.to)
	if !ok {
		if p = x.given; p.Origin.File != learned && !p.Granted {
			return deny(http.StatusForbidden, "no rule allows it any more")
		}
	}
	x.permit, x.rule = p, p.Origin
	if p.Granted {
		return nil
	}
	if p.Origin.File == learned {
		if x.engine.config.Learn != Through {
			return deny(http.StatusForbidden, "no rule allows it")
		}
		return nil
	}
	if x.rule, ok = p.Request(r.Method, x.path); !ok {
		own := p.withoutLogins()
		if len(own.rules) == 0 {
			return deny(http.StatusForbidden, "no rule allows it")
		}
		why, closest := own.WhyNot(r.Method, x.path)
		return deny(http.StatusForbidden, why, nearestRule(closest), unflagged)
	}
	if name := otherPath(r); name != "" && !p.AnyPath(r.Method) {
		return deny(http.StatusForbidden, "the header "+name+" names another path, and the rules are about paths", nearestRule(x.rule), unflagged)
	}
	return nil
}

// consent asks about a request that the rules permit. It says why the request may
// not pass; nil when it may.
func (x *exchange) consent(r *http.Request) *denial {
	e := x.engine
	if !e.wants(event.KindRequest) {
		return nil
	}
	ruling := e.judge(r.Context(), event.Attempt{
		Kind: event.KindRequest, Host: x.to.Name, Port: x.to.Port,
		Protocol: string(x.kind()), Method: r.Method, URLPath: x.path, Known: !x.permit.Granted && x.permit.Origin.File != learned,
	})
	if ruling.Verdict != event.Allowed {
		return deny(http.StatusForbidden, denialReason(ruling), byConsent(ruling))
	}
	x.approvals.rulings = append(x.approvals.rulings, ruling)
	return x.ruled(r) // the rules may be others by now
}

// agree asks about the credentials that a request is to carry. The context is for
// taking their secrets.
func (x *exchange) agree(r *http.Request, use []Binding) (ctx context.Context, done func(), d *denial) {
	ctx, done = r.Context(), func() {}
	if len(use) == 0 || !x.engine.wants(event.KindCredential) {
		return ctx, done, nil
	}
	ctx, done = x.engine.patient(ctx)
	for _, b := range use {
		within, ruling, err := x.engine.config.Credentials.Consent(ctx, b.Credential, x.use(r))
		if err != nil {
			done()
			return ctx, func() {}, denyWithheld(b, err)
		}
		ctx, x.approvals.rulings = within, append(x.approvals.rulings, ruling)
	}
	if d = x.ruled(r); d == nil && slices.ContainsFunc(use, func(b Binding) bool { return !x.permit.MayUseFor(b.Credential, r.Method, x.path) }) {
		d = deny(http.StatusForbidden, "no rule allows it any more")
	}
	if d != nil {
		done()
		return ctx, func() {}, d
	}
	return ctx, done, nil
}
