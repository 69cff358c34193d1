package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// approvalKeys are those of the section approvals.
var approvalKeys = []key{
	{name: "approvals",
		doc: "How a human is asked."},
	{name: "approvals.timeout", kind: &patience, project: lowers, example: "15m",
		doc: "How long an action waits for an answer; without one it is denied. `0s`: nobody is asked, and what the rules under `ask` cover is denied at once."},
	{name: "approvals.notify", kind: &notifiers, project: never, example: "[tmux, {webhook: https://hooks.example.org/approve, secret: ~/.config/holdfast/approve.key}]",
		doc: notifyDoc},
}

// patience is a duration that can be nothing.
var patience = kind{
	takes:  "a duration with a unit (`s`, `m`, `h`), or `0s`",
	amount: patienceText,
	format: func(n int64) string { return shortSpan(time.Duration(n)) },
	schema: func(key) map[string]any { return spanShape() },
}

var notifiers = kind{
	takes:   "a list of words or mappings",
	many:    true,
	element: (*decoder).notifier,
	schema:  func(key) map[string]any { return list(notifierShape()) },
}

const notifyDoc = "How you are notified of requests, besides `holdfast approve`: `tmux`, a pop-up in your tmux session; `desktop`, a desktop notification; or a mapping for a service of your own:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `webhook` | URL that each request is sent to by POST, with `https` (`http` to loopback only) |\n" +
	"| `secret` | file with the key that requests are signed with and answers must be signed with (HMAC-SHA256) |\n" +
	"| `headers` | file with one header per line, as `Name: value` |\n" +
	"| `authority` | PEM file with certificate authorities that are trusted in addition to the system's |\n" +
	"| `timeout` | of one attempt, from `100ms` to `1m`; without it `10s` |\n" +
	"| `insecure` | `true`: `http` to a host that is not loopback |\n\n" +
	"These files must lie outside everything in view. A webhook of a later source replaces an earlier one of the same address."

// Approvals says how long a human has to answer and how to notify them.
type Approvals struct {
	Timeout time.Duration // what is not answered by then is denied; 0: no question is asked, deny at once
	Notify  []AlertSink
	Origin  Origin // of Timeout
}

// maxTimeAsk is how long a human may be given.
const maxTimeAsk = 24 * time.Hour

// patienceText reads approvals.timeout. 0 is its least value, and not none.
func patienceText(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxTimeAsk || d != 0 && d < time.Second {
		return 0, fmt.Errorf("%q is not a duration from 1s to %s such as 15m, or 0s to ask nobody", printable(text), shortSpan(maxTimeAsk))
	}
	return int64(d), nil
}

// aNotifier is what messages call an element of approvals.notify.
const aNotifier = "a way to tell that a human is asked"

// plainNotifiers are the kinds that are named by a word.
var plainNotifiers = []string{"tmux", "desktop"}

// notifier decodes one element of approvals.notify.
func (d *decoder) notifier(key string, n *yaml.Node) bool {
	w := AlertSink{Kind: "webhook", Timeout: sinkTimeout}
	before := len(d.errs)
	if n.Kind == yaml.ScalarNode {
		d.text(aNotifier, "the kind", n, func(text string) error {
			w.Kind, w.Timeout = text, 0
			if err := oneOf("kind", text, plainNotifiers); err != nil {
				return fmt.Errorf("%w; or {webhook: URL, secret: FILE}", err)
			}
			return nil
		})
	} else {
		d.mapping(aNotifier, n, append([]field{d.textField(aNotifier, "webhook", &w.Address, anyText)}, w.requestFields(d, aNotifier)...))
	}
	if len(d.errs) > before {
		return true
	}
	if err := w.asNotifier(); err != nil {
		d.fail(n, "for example {webhook: https://hooks.example.org/holdfast, secret: ~/.config/holdfast/webhook.key}", "%s: %v", key, err)
		return true
	}
	d.add(n, Entry{Key: key, Value: w.String(), Sink: &w})
	return true
}

// asNotifier returns what is missing in an element of approvals.notify, or
// contradictory.
func (s AlertSink) asNotifier() error {
	switch {
	case s.Kind != "webhook":
		return nil
	case s.Address == "":
		return errors.New("the mapping has no webhook")
	case s.Secret == "":
		return errors.New("a webhook needs a secret, which signs requests and answers: without it anyone could answer")
	}
	return endpoint(s.Address, s.Insecure)
}

// notifierShape is the schema of an element of approvals.notify.
func notifierShape() map[string]any {
	properties := requestShapes()
	properties["webhook"] = urlShape()
	return map[string]any{"oneOf": []any{map[string]any{"enum": plainNotifiers}, closed([]string{"webhook", "secret"}, properties)}}
}

// approvals sets how long a human has to answer, and resolves where to notify them.
func (p *Plan) approvals(e Effective, h Host) error {
	if all := e.entriesFor("approvals.timeout"); len(all) > 0 {
		one := all[len(all)-1]
		p.Approvals.Timeout, p.Approvals.Origin = time.Duration(one.Amount), one.Origin
	}
	var errs Errors
	x := explainer{plan: *p, host: h}
	for _, one := range e.entriesFor("approvals.notify") {
		w := *one.Sink
		w.Origin = one.Origin
		if fault := x.files(one, "the "+w.Kind+" of approvals.notify", &w.Secret, &w.Headers, &w.Authority); fault != nil {
			errs = append(errs, fault)
			continue
		}
		at := slices.IndexFunc(p.Approvals.Notify, w.samePlace)
		if at >= 0 {
			p.Approvals.Notify[at] = w
			continue
		}
		p.Approvals.Notify = append(p.Approvals.Notify, w)
	}
	return errs.orNil()
}

func approvalRows(e Effective, p Plan) (rows []Row) {
	for _, one := range e.entriesFor("approvals.timeout") {
		rows = append(rows, Row{"approvals.timeout", patience.format(one.Amount), one.Origin.String()})
	}
	return append(rows, rowsOf("approvals.notify", p.Approvals.Notify, func(s AlertSink) (fmt.Stringer, Origin) { return s, s.Origin })...)
}
