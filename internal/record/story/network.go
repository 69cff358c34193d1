package story

import (
	"net"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// maxRequests is how many different requests of a destination are kept.
const maxRequests = 30

// network takes what egress saw and decided.
func (b *Builder) network(e *event.Event) {
	d := b.destination(e)
	if d == nil {
		return
	}
	switch {
	case e.Verdict == event.Denied:
		d.Denied++
		if e.Detail["method"] != "" {
			b.request(d, e)
		}
	case e.Action == event.NetQuery:
		d.Queries++
	case e.Action == event.NetConnect:
		d.Connects++
	case e.Action == event.NetRequest && e.Detail["status"] == "": // it was sent; its answer has an event of its own
	case e.Action == event.NetRequest:
		d.requested = true
		b.request(d, e)
		d.In += parseCount(e.Detail["in"])
		d.Out += parseCount(e.Detail["out"])
	case e.Action == event.NetClose && !d.requested: // else the same bytes would count twice
		d.In += parseCount(e.Detail["in"])
		d.Out += parseCount(e.Detail["out"])
	}
	if reason := e.Detail["reason"]; reason != "" && len(d.Reasons) < maxNamed {
		d.Reasons = appendFew(d.Reasons, b.retain(reason))
	}
	if e.Rule != "" && len(d.Rules) < maxNamed {
		d.Rules = appendFew(d.Rules, b.retain(e.Rule))
	}
	d.By = appendFew(d.By, b.execOf(e))
}

func (b *Builder) destination(e *event.Event) *Destination {
	d := b.destinations[cutText(e.Object)]
	if d != nil {
		return d
	}
	if len(b.destinations) >= b.limits.Destinations || !b.admit(len(e.Object), ofAll) {
		b.s.Left.Destinations++
		return nil
	}
	d = &Destination{Name: b.retain(e.Object), First: e.Seq}
	b.destinations[d.Name] = d
	b.s.Destinations = append(b.s.Destinations, d)
	return d
}

func (b *Builder) request(d *Destination, e *event.Event) {
	r := Request{Method: cutText(e.Detail["method"]), Path: cutText(e.Detail["path"]), Status: cutText(e.Detail["status"]), Denied: e.Verdict == event.Denied}
	for i, old := range d.Requests {
		if old.Count = 0; old == r {
			d.Requests[i].Count++
			return
		}
	}
	if len(d.Requests) >= maxRequests || !b.admit(len(r.Path), ofAll) {
		d.More++
		return
	}
	r.Method, r.Path, r.Status, r.Count = b.retain(r.Method), b.retain(r.Path), b.retain(r.Status), 1
	d.Requests = append(d.Requests, r)
}

// foldQueries merges a queried name into the destinations of that name, if
// there are any.
func (b *Builder) foldQueries() {
	hosts := map[string]*Destination{}
	for _, d := range b.s.Destinations {
		if host, _, err := net.SplitHostPort(d.Name); err == nil && hosts[host] == nil {
			hosts[host] = d
		}
	}
	b.s.Destinations = slices.DeleteFunc(b.s.Destinations, func(d *Destination) bool {
		into := hosts[d.Name]
		if into == nil || into == d || d.Denied > 0 {
			return false
		}
		into.Queries += d.Queries
		into.First = min(into.First, d.First)
		return true
	})
}

type socketKey struct{ address, action string }

// socket takes the socket calls of programs.
func (b *Builder) socket(e *event.Event) {
	switch {
	case e.Verdict == event.Denied:
		b.addTouch(e, (*Program).refusedList, e.Object, "", refusedAs(e))
	case e.Action == event.SockBind:
		b.addTouch(e, (*Program).boundList, e.Object, "", "")
	default:
		b.addTouch(e, (*Program).reachedList, e.Object, "", "")
	}
	key := socketKey{cutText(e.Object), e.Action}
	s := b.sockets[key]
	if s == nil {
		if len(b.sockets) >= b.limits.Destinations || !b.admit(len(e.Object), ofAll) {
			b.s.Left.Destinations++
			return
		}
		s = &Socket{Address: b.retain(e.Object), Action: strings.Clone(e.Action)}
		b.sockets[socketKey{s.Address, s.Action}] = s
		b.s.Sockets = append(b.s.Sockets, s)
	}
	s.Count++
	if e.Verdict == event.Denied {
		s.Denied++
	}
	s.By = appendFew(s.By, b.execOf(e))
}
