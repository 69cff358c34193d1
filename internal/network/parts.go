package network

import "holdfast.dev/holdfast/internal/floor/event"

// connectParts makes the parts that need each other: what answers names, and what
// dials them.
func (e *Engine) connectParts() {
	guard := newNameGuard(e.limits)
	e.server = newNameServer(e.rules.Load, e.names, guard, e.config.Learn, e.limits, e.asked)
	e.server.baited = e.baitedQuery
	e.server.asks = func() bool { return e.asks(event.KindConnect) }
	e.dial = newDialer(e.config.Lookup, guard, e.limits)
	if e.config.Learn == Observe {
		e.dial = observing{e.dial}
	}
}

// asked records a query for a name. An error refuses it.
func (e *Engine) asked(q nameQuery) error {
	if q.Answered {
		detail := map[string]string{"type": q.Type}
		if q.Reason != "" {
			detail["reason"] = q.Reason
		}
		return e.emit(event.Event{Action: queryAction, Object: printable(q.Name), Verdict: event.Allowed, Rule: q.Rule, Detail: detail})
	}
	opts := []refusalOption{asQuery, with("type", q.Type), func(r *refused) { r.Rule = q.Rule }}
	if !q.Flagged {
		opts = append(opts, unflagged)
	}
	e.refuse(Destination{Name: q.Name, Door: nameDoor}, q.Reason, opts...)
	return nil
}
