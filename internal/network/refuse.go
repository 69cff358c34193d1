package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// inName says where a honeytoken was found.
const inName = "in the name of its destination"

// nameDoor is the Door of name queries, in events.
const nameDoor Door = "dns"

// refused is a refusal on its way to the ledger and into an event.
type refused struct {
	Refusal
	action string
	layer  string
	detail map[string]string
}

// refusalOption says more about a refusal.
type refusalOption func(*refused)

// highSeverity marks what looks like an attempt to get around the policy. No flag would
// allow it.
func highSeverity(r *refused) { r.High, r.Flag = true, "" }

// unflagged marks a refusal that no flag would allow.
func unflagged(r *refused) { r.Flag = "" }

// asQuery marks a query for a name.
func asQuery(r *refused) { r.action = event.NetQuery }

// nearestRule names the rule that came closest.
func nearestRule(o policy.Origin) refusalOption {
	return func(r *refused) { r.Rule = o.String() }
}

// forRequest names the request. The path is without its query.
func forRequest(method, path string) refusalOption {
	return func(r *refused) {
		r.action = event.NetRequest
		r.detail["method"], r.detail["path"] = printable(method), printable(path)
	}
}

// withDetail adds a detail to the event.
func withDetail(key, value string) refusalOption {
	return func(r *refused) { r.detail[key] = printable(value) }
}

// refuse records that d is refused, in words. The caller ends the connection. An
// event that is lost changes nothing about that, and not each of many has one.
func (e *Engine) refuse(d Destination, reason string, opts ...refusalOption) Refusal {
	r := refused{
		Refusal: Refusal{Name: printable(d.Name), Port: d.Port, Reason: reason, Flag: flagFor(d.Name, d.Port)},
		action:  event.NetConnect,
		detail:  map[string]string{"reason": reason},
	}
	for _, o := range opts {
		o(&r)
	}
	if r.High {
		r.detail["severity"] = "high"
	}
	if d.Door != "" {
		r.detail["door"] = string(d.Door)
	}
	e.ledger.refuse(r.Refusal)
	if kind := e.decoyIn([]byte(strings.Join([]string{d.Name, r.detail["host"], r.detail["sni"]}, "\n"))); kind != "" && d.Door != nameDoor {
		e.decoySent(r.Where(), kind, inName, d.Door, "")
	}
	weight := common
	if r.High {
		weight = grave
	}
	skipped, ok := e.throttle.record(weight, r.action, r.Where(), r.layer, r.Rule, r.Reason, r.detail["method"], r.detail["path"])
	e.recordLost(false)
	if !ok {
		return r.Refusal
	}
	if skipped > 0 {
		r.detail["again"] = strconv.Itoa(skipped)
	}
	e.emit(event.Event{Action: r.action, Object: r.Where(), Verdict: event.Denied, Layer: r.layer, Rule: r.Rule, Detail: r.detail})
	return r.Refusal
}

// Where is host:port, or the name alone where a name was asked for.
func (r Refusal) Where() string {
	if r.Port == 0 {
		return r.Name
	}
	return net.JoinHostPort(r.Name, strconv.Itoa(r.Port))
}

// Line is the refusal in one line, for the program that was refused.
func (r Refusal) Line() string {
	line := fmt.Sprintf("holdfast refused %s: %s", r.Where(), r.Reason)
	if r.Rule != "" {
		line += " (" + r.Rule + ")"
	}
	if r.Flag != "" {
		line += "; to allow it: " + r.Flag
	}
	return line
}

// refuseDial records an error of the dialer when it is a decision; else the
// upstream failed, and false is returned.
func (e *Engine) refuseDial(d Destination, err error, opts ...refusalOption) (Refusal, bool) {
	var address *AddressError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return e.refuse(d, limit.Reason, append(opts, unflagged)...), true
	case errors.As(err, &address):
		opts = append(opts, unflagged)
		if address.Never {
			opts = append(opts, highSeverity)
		}
		reason := address.Error()
		if hint := address.Hint(); hint != "" {
			reason += "; " + hint
		}
		return e.refuse(d, reason, opts...), true
	case errors.Is(err, errObserved):
		return e.refuse(d, errObserved.Error(), opts...), true
	}
	e.unreachable(d, err)
	return Refusal{}, false
}

// unreachable notes that d was allowed and did not answer, unless it was the
// client that gave up, or the end.
func (e *Engine) unreachable(d Destination, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) || untrusted(err) != "" {
		return
	}
	e.ledger.fail(Refusal{Name: printable(d.Name), Port: d.Port, Reason: printable(err.Error())})
}
