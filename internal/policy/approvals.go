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
		doc: "How long an action is held for an answer; without one it is denied. `0s`: nobody is asked, and what rules under `ask` are about is denied at once."},
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

const notifyDoc = "Where you are told besides `holdfast approve` that you are asked: `tmux`, a pop-up where there is a tmux of yours; `desktop`, a notification; or a mapping for a service of yours:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `webhook` | URL that each request is sent to by POST, with `https` (`http` to loopback only) |\n" +
	"| `secret` | file with the key that requests are signed with and answers must be signed with (HMAC-SHA256) |\n" +
	"| `headers` | file with a header a line, as `Name: value` |\n" +
	"| `authority` | PEM file with certificate authorities that are trusted besides the system's |\n" +
	"| `timeout` | of one attempt, from `100ms` to `1m`; without it `10s` |\n" +
	"| `insecure` | `true`: `http` to a host that is not loopback |\n\n" +
	"Files are outside of all that is in view. A later source's webhook takes the place of an earlier one of the same address."

// Approvals says how long a human has and how he is told.
type Approvals struct {
	Timeout time.Duration // what is not answered by then is denied; 0: nobody is asked, deny at once
	Notify  []Notifier
	Origin  Origin // of Timeout
}

// Notifier is a place besides holdfast approve where a human is told that he is
// asked. Its files are outside of all that is in view.
type Notifier struct {
	Kind      string        // tmux, desktop or webhook
	Address   string        // webhook: URL; else ""
	Secret    string        // webhook: absolute path of a file with the key that requests and answers are signed with
	Headers   string        // webhook: absolute path of a file with a header a line; "" for none
	Authority string        // webhook: absolute path of a PEM file with certificate authorities besides the system's; "" for none
	Timeout   time.Duration // webhook: of one attempt; else 0
	Insecure  bool          // webhook: http to a host that is not loopback was asked for
	Origin    Origin
}

// maxTimeAsk is how long a human may be given.
const maxTimeAsk = 24 * time.Hour

// patienceText reads approvals.timeout. 0 is its least value, and not none.
func patienceText(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxTimeAsk || d != 0 && d < time.Second {
		return 0, fmt.Errorf("%q is not a duration from 1s to %s such as 15m, or 0s for nobody is asked", printable(text), shortSpan(maxTimeAsk))
	}
	return int64(d), nil
}

// aNotifier is what messages call an element of approvals.notify.
const aNotifier = "a way to tell that a human is asked"

// plainNotifiers are the kinds that are named by a word.
var plainNotifiers = []string{"tmux", "desktop"}

// notifier decodes one element of approvals.notify.
func (d *decoder) notifier(key string, n *yaml.Node) bool {
	w := Notifier{Kind: "webhook", Timeout: sinkTimeout}
	before := len(d.errs)
	if n.Kind == yaml.ScalarNode {
		d.text(aNotifier, "the kind", n, func(text string) error {
			w.Kind, w.Timeout = text, 0
			return notifierText(text)
		})
	} else {
		path := func(name string, into *string) field { return d.textField(aNotifier, name, into, fileText) }
		d.mapping(aNotifier, n, []field{
			d.textField(aNotifier, "webhook", &w.Address, func(text string) (string, error) { return text, nil }),
			path("secret", &w.Secret),
			path("headers", &w.Headers),
			path("authority", &w.Authority),
			{"timeout", func(n *yaml.Node) {
				d.text(aNotifier, "timeout", n, func(text string) (err error) { w.Timeout, err = timeoutText(text); return err })
			}},
			{"insecure", func(n *yaml.Node) { d.truth(aNotifier, "insecure", n, &w.Insecure) }},
		})
	}
	if len(d.errs) > before {
		return true
	}
	if err := w.whole(); err != nil {
		d.fail(n, "for example {webhook: https://hooks.example.org/holdfast, secret: ~/.config/holdfast/webhook.key}", "%s: %v", key, err)
		return true
	}
	d.add(n, Entry{Key: key, Value: w.String(), Notifier: &w})
	return true
}

func notifierText(text string) error {
	if slices.Contains(plainNotifiers, text) {
		return nil
	}
	if near := nearest(text, append([]string{"webhook"}, plainNotifiers...)); near != "" && near != "webhook" {
		return fmt.Errorf("unknown kind %q, did you mean %q?", printable(text), near)
	}
	return fmt.Errorf("unknown kind %q; known: tmux, desktop and {webhook: URL, secret: FILE}", printable(text))
}

// whole says what is missing of a notifier, or contradicts itself.
func (w Notifier) whole() error {
	switch {
	case w.Kind != "webhook":
		return nil
	case w.Address == "":
		return errors.New("a mapping says where a webhook is, and has none")
	case w.Secret == "":
		return errors.New("a webhook needs a secret, with which requests and answers are signed: without it anybody could answer")
	}
	return endpoint(w.Address, w.Insecure)
}

// String is a notifier in one line. What follows the host of a URL is left out,
// for it is what keeps others from using a webhook.
func (w Notifier) String() string { return w.text(shownURL(w.Address)) }

// full is all that a notifier says, for whoever is asked to trust it.
func (w Notifier) full() string { return w.text(w.Address) }

func (w Notifier) text(address string) string {
	return AlertSink{Kind: w.Kind, Headers: w.Headers, Secret: w.Secret, Authority: w.Authority, Timeout: w.Timeout, Insecure: w.Insecure}.text(address)
}

// notifierShape is the schema of a notifier.
func notifierShape() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	return map[string]any{"oneOf": []any{
		map[string]any{"enum": plainNotifiers},
		closed([]string{"webhook", "secret"}, map[string]any{
			"webhook":   map[string]any{"type": "string", "pattern": "^https?://.+$"},
			"secret":    text,
			"headers":   text,
			"authority": text,
			"timeout":   spanShape(),
			"insecure":  map[string]any{"type": "boolean"},
		}),
	}}
}

// approvals says how long a human has, and resolves where he is told.
func (p *Plan) approvals(e Effective, h Host) error {
	if all := e.of("approvals.timeout"); len(all) > 0 {
		one := all[len(all)-1]
		p.Approvals.Timeout, p.Approvals.Origin = time.Duration(one.Amount), one.Origin
	}
	var errs Errors
	x := explainer{plan: *p, host: h}
	for _, one := range e.of("approvals.notify") {
		w := *one.Notifier
		w.Origin = one.Origin
		if fault := w.resolve(x, one); fault != nil {
			errs = append(errs, fault)
			continue
		}
		at := slices.IndexFunc(p.Approvals.Notify, func(old Notifier) bool { return old.Kind == w.Kind && old.Address == w.Address })
		if at >= 0 {
			p.Approvals.Notify[at] = w
			continue
		}
		p.Approvals.Notify = append(p.Approvals.Notify, w)
	}
	return errs.orNil()
}

// resolve finds the files of a notifier, and refuses those that the command
// could read.
func (w *Notifier) resolve(x explainer, one Entry) *Error {
	for _, path := range []*string{&w.Secret, &w.Headers, &w.Authority} {
		if *path == "" {
			continue
		}
		real, fault := x.apart(one, "the "+w.Kind+" of approvals.notify", *path)
		if fault != nil {
			return fault
		}
		*path = real
	}
	return nil
}

func approvalRows(e Effective, p Plan) (rows []Row) {
	for _, one := range e.of("approvals.timeout") {
		rows = append(rows, Row{"approvals.timeout", patience.format(one.Amount), one.Origin.String()})
	}
	for _, one := range p.Approvals.Notify {
		rows = append(rows, Row{"approvals.notify", one.String(), one.Origin.String()})
	}
	return rows
}
