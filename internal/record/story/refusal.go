package story

import (
	"cmp"

	"holdfast.dev/holdfast/internal/floor/event"
)

// maxActions bounds what a record with invented actions can fill.
const maxActions = 40

type refusalKey struct{ action, object, layer, rule, err, reason string }

// refusal takes what was denied.
func (b *Builder) refusal(e *event.Event) {
	key := refusalKey{cutText(e.Action), cutText(foundPath(e)), cutText(e.Layer), cutText(e.Rule), cutText(e.Error), cutText(e.Detail["reason"])}
	if r := b.refusals[key]; r != nil {
		r.Count += 1 + parseCount(e.Detail["again"])
		r.By = appendFew(r.By, b.execOf(e))
		return
	}
	if b.refused[key.action] >= b.limits.Refusals || len(b.refusals) >= maxActions*b.limits.Refusals || !b.admit(len(key.object)+len(key.reason), ofAll) {
		b.s.Left.Refusals++
		return
	}
	key = refusalKey{b.retain(key.action), b.retain(key.object), b.retain(key.layer), b.retain(key.rule), b.retain(key.err), b.retain(key.reason)}
	r := &Refusal{
		Action: key.action, Object: key.object, Layer: key.layer, Rule: key.rule, Error: key.err, Reason: key.reason,
		Count: 1 + parseCount(e.Detail["again"]), First: e.Seq, PID: e.Process.PID, By: appendFew(nil, b.execOf(e)),
	}
	b.refusals[key] = r
	b.refused[key.action]++
	b.s.Refusals = append(b.s.Refusals, r)
}

// honeyList is the list of what was done to a fake credential.
func honeyList(e *event.Event) listOf {
	switch {
	case e.Detail["write"] != "":
		return (*Program).wrote
	case e.Detail["rename"] != "":
		return (*Program).renamedList
	}
	return (*Program).read
}

type credentialKey struct{ name, where, action string }

// credential takes uses of credentials, and what happened to fake ones.
func (b *Builder) credential(e *event.Event) {
	switch e.Action {
	case event.HoneySent:
		b.addTouch(e, (*Program).refusedList, foundPath(e), "", refusedAs(e))
	case event.HoneyRead:
		b.addTouch(e, honeyList(e), foundPath(e), "", "fake credential")
	}
	name := cmp.Or(e.Detail["credential"], e.Detail["kind"]) // the kind is of a fake one
	key := credentialKey{cutText(name), cutText(e.Object), cutText(e.Action)}
	c := b.credentials[key]
	if c == nil {
		if len(b.credentials) >= b.limits.Refusals || !b.admit(len(key.where), ofAll) {
			b.s.Left.Other++
			return
		}
		c = &Credential{Name: b.retain(key.name), Where: b.retain(key.where), Action: b.retain(key.action), First: e.Seq}
		b.credentials[credentialKey{c.Name, c.Where, c.Action}] = c
		b.s.Credentials = append(b.s.Credentials, c)
	}
	if e.Verdict == event.Denied {
		c.Denied++
		if c.Reason == "" {
			c.Reason = b.retain(e.Detail["reason"])
		}
		return
	}
	c.Used++
}
