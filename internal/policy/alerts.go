package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// alertKeys are those of the section alerts, and that of the bait.
var alertKeys = []key{
	{name: "alerts",
		doc: "What happens when a detection rule matches. Alerts are always in the record."},
	{name: "alerts.sinks", kind: &sinks, project: never,
		example: "[{terminal: true, severity: high}, {webhook: https://hooks.example.org/holdfast, secret: ~/.config/holdfast/webhook.key}]",
		doc:     sinksDoc},
	{name: "alerts.rules", kind: &paths, project: never, example: "[~/.config/holdfast/rules]",
		doc: "Files of rules, or directories of such files, besides the built-in rules. Of a directory the files `*.yaml` are read. They must belong to you or root and be writable by no other user, and must not be, contain or lie below anything that the command can write."},
	{name: "honeytokens", kind: &words, words: []string{"off", "on"}, project: raises, example: "on",
		doc: "`on`: the private home inside holds decoy credentials of the usual kinds. Reading one raises an alert; sending one anywhere is refused and raises a critical alert."},
}

var sinks = kind{
	takes:   "a list of mappings",
	many:    true,
	element: (*decoder).sink,
	schema:  func(key) map[string]any { return list(sinkShape()) },
}

// sinksDoc describes a place for alerts in full.
const sinksDoc = "Places that alerts are sent to. Each is a mapping with one of the kinds:\n\n" +
	"| kind | where alerts go |\n| --- | --- |\n" +
	"| `terminal: true` | a line on the standard error of `holdfast run` |\n" +
	"| `file: PATH` | one JSON line per alert, appended to a file |\n" +
	"| `webhook: URL` | one JSON document per alert, by POST |\n" +
	"| `syslog: local` or a URL | the daemon of the host; or `udp://HOST:PORT`, `tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH` |\n" +
	"| `otlp: URL` | an OpenTelemetry collector, over HTTP |\n\n" +
	"and, besides that:\n\n" +
	"| key | meaning | for |\n| --- | --- | --- |\n" +
	"| `severity` | the lowest severity that is sent: `info`, `low`, `medium`, `high` or `critical`; without it `low`, and `medium` for `terminal` | all |\n" +
	"| `headers` | file with one header per line, as `Name: value`; tokens belong here | `webhook`, `otlp` |\n" +
	"| `secret` | file with the key of the signature (HMAC-SHA256) of each request; without it requests are not signed | `webhook` |\n" +
	"| `authority` | PEM file with certificate authorities that are trusted in addition to the system's | `webhook`, `otlp`, `syslog` with `tls` |\n" +
	"| `timeout` | of one attempt, from `100ms` to `1m`; without it `10s` | `webhook`, `otlp`, `syslog` |\n" +
	"| `insecure` | `true`: `http` to a host that is not loopback | `webhook`, `otlp` |\n\n" +
	"These files must lie outside everything in view. A sink of a later source replaces an earlier one of the same kind and address."

// Alerts says where alerts go besides the record.
type Alerts struct {
	Sinks []AlertSink
	Rules []RuleSource // in addition to the built-in ones
}

// AlertSink is one place that alerts are sent to, or that notifies a human of a
// question. Its files are outside of all that is in view, and nothing of it enters the
// boundary.
type AlertSink struct {
	Kind      string        // terminal, file, webhook, syslog or otlp; of approvals.notify tmux, desktop or webhook
	Address   string        // file: absolute path; webhook, otlp: URL; syslog: "local", or a URL with udp, tcp, tls or unix; terminal: ""
	Severity  string        // the lowest severity that is sent: info, low, medium, high or critical; of approvals.notify ""
	Headers   string        // absolute path of a file with a header a line, for webhook and otlp; "" for none
	Secret    string        // absolute path of a file with the key of the signature, for webhook; "" for not signed; of approvals.notify answers are signed with it too
	Authority string        // absolute path of a PEM file with certificate authorities besides the system's; "" for none
	Timeout   time.Duration // of one attempt; 0 where none is made (terminal, file)
	Insecure  bool          // http to a host that is not loopback was asked for
	Origin    Origin
}

// RuleSource is a file of rules, or a directory of such files. Nothing inside
// can change it.
type RuleSource struct {
	Path   string // absolute; every component resolved
	Origin Origin
}

// severities of an alert, the least first.
var severities = []string{"info", "low", "medium", "high", "critical"}

// sinkKind is a kind of sink and the keys that it takes in addition to severity.
type sinkKind struct {
	name  string
	takes []string
}

var sinkKinds = []sinkKind{
	{"terminal", nil},
	{"file", nil},
	{"webhook", []string{"headers", "secret", "authority", "timeout", "insecure"}},
	{"syslog", []string{"authority", "timeout"}},
	{"otlp", []string{"headers", "authority", "timeout", "insecure"}},
}

const (
	sinkTimeout = 10 * time.Second // of one attempt, the default
	minTimeout  = 100 * time.Millisecond
	maxTimeout  = time.Minute
)

// sink decodes one element of alerts.sinks.
func (d *decoder) sink(key string, n *yaml.Node) bool {
	var w writtenSink
	before := len(d.errs)
	d.mapping(aSink, n, w.fields(d))
	if len(d.errs) > before {
		return true
	}
	s := w.AlertSink
	if len(w.kinds) != 1 {
		d.fail(n, "for example {webhook: https://hooks.example.org/holdfast}", "a sink has %d kinds; it needs exactly one of terminal, file, webhook, syslog and otlp", len(w.kinds))
		return true
	}
	if s.Kind = w.kinds[0]; s.Kind == "terminal" && !w.terminal {
		d.fail(n, "leave it out, or raise its severity", "terminal of a sink is false, but every listed sink is used")
		return true
	}
	if err := s.complete(w.given); err != nil {
		d.fail(n, "", "the sink %s: %v", s.Kind, err)
		return true
	}
	d.add(n, Entry{Key: key, Value: s.String(), Sink: &s})
	return true
}

const aSink = "a sink" // in messages

// writtenSink is a sink with what was written of it.
type writtenSink struct {
	AlertSink
	terminal bool
	kinds    []string // in the order in which they were written
	given    []string // keys other than the kind and severity
}

func (w *writtenSink) fields(d *decoder) []field {
	noted := func(list *[]string, f field) field {
		return field{f.name, func(n *yaml.Node) {
			*list = append(*list, f.name)
			f.read(n)
		}}
	}
	all := []field{
		noted(&w.kinds, field{"terminal", func(n *yaml.Node) { d.truth(aSink, "terminal", n, &w.terminal) }}),
		noted(&w.kinds, d.textField(aSink, "file", &w.Address, fileText)),
	}
	for _, kind := range []string{"webhook", "syslog", "otlp"} {
		all = append(all, noted(&w.kinds, d.textField(aSink, kind, &w.Address, anyText)))
	}
	all = append(all, d.textField(aSink, "severity", &w.Severity, choice("severity", severities...)))
	for _, f := range w.requestFields(d, aSink) {
		all = append(all, noted(&w.given, f))
	}
	return all
}

// requestFields say how something is sent to the address of a sink.
func (s *AlertSink) requestFields(d *decoder, what string) []field {
	return []field{
		d.textField(what, "headers", &s.Headers, fileText),
		d.textField(what, "secret", &s.Secret, fileText),
		d.textField(what, "authority", &s.Authority, fileText),
		{"timeout", func(n *yaml.Node) {
			d.text(what, "timeout", n, func(text string) (err error) { s.Timeout, err = timeoutText(text); return err })
		}},
		{"insecure", func(n *yaml.Node) { d.truth(what, "insecure", n, &s.Insecure) }},
	}
}

// complete fills in what follows from the rest, and returns contradictions as an error.
// given are the keys other than the kind and severity.
func (s *AlertSink) complete(given []string) error {
	takes := sinkKinds[slices.IndexFunc(sinkKinds, func(k sinkKind) bool { return k.name == s.Kind })].takes
	for _, name := range given {
		if !slices.Contains(takes, name) {
			return fmt.Errorf("%s does not apply to it", name)
		}
	}
	if s.Severity == "" {
		s.Severity = "low"
		if s.Kind == "terminal" {
			s.Severity = "medium"
		}
	}
	if s.Timeout == 0 && slices.Contains(takes, "timeout") {
		s.Timeout = sinkTimeout
	}
	switch s.Kind {
	case "webhook", "otlp":
		return endpoint(s.Address, s.Insecure)
	case "syslog":
		if s.Authority != "" && !strings.HasPrefix(s.Address, "tls://") {
			return errors.New("authority applies to tls:// only")
		}
		return syslogText(s.Address)
	}
	return nil
}

// String is a sink in one line. What follows the host of a URL is left out, because it
// is what keeps others from using a webhook.
func (s AlertSink) String() string { return s.text(shownURL(s.Address)) }

// full is the complete text of a sink, for a user who is asked to trust it.
func (s AlertSink) full() string { return s.text(s.Address) }

func (s AlertSink) text(address string) string {
	parts := []string{s.Kind}
	for _, one := range [][2]string{{"", address}, {"from ", s.Severity}, {"headers ", s.Headers}, {"secret ", s.Secret}, {"authority ", s.Authority}} {
		if one[1] != "" {
			parts = append(parts, one[0]+one[1])
		}
	}
	if s.Timeout != 0 && s.Timeout != sinkTimeout {
		parts = append(parts, "timeout "+shortSpan(s.Timeout))
	}
	if s.Insecure {
		parts = append(parts, "insecure")
	}
	return strings.Join(parts, " ")
}

func timeoutText(text string) (time.Duration, error) {
	n, err := parseSpan(text)
	if d := time.Duration(n); err == nil && d >= minTimeout && d <= maxTimeout {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a duration from %s to %s", printable(text), minTimeout, shortSpan(maxTimeout))
}

// syslogText checks where a syslog daemon is.
func syslogText(text string) error {
	if text == "local" {
		return nil
	}
	if path, ok := strings.CutPrefix(text, "unix://"); ok {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "%?#") { // which a URL reads differently than a path
			return errors.New("its address is not unix:// followed by the absolute path of a socket, without %, ? and #")
		}
		return pathText(path)
	}
	u, err := hostURL(text)
	if err != nil || !slices.Contains([]string{"udp", "tcp", "tls"}, u.Scheme) {
		return errors.New("its address is none of local, udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT and unix:///PATH")
	}
	if u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.ForceQuery {
		return errors.New("its address is not " + u.Scheme + "://HOST:PORT")
	}
	return nil
}

// sinkShape is the schema of a place for alerts.
func sinkShape() map[string]any {
	options := requestShapes()
	var forms []any
	for _, k := range sinkKinds {
		properties := map[string]any{"severity": map[string]any{"enum": severities}}
		for _, name := range k.takes {
			properties[name] = options[name]
		}
		switch k.name {
		case "terminal":
			properties[k.name] = map[string]any{"const": true}
		case "file":
			properties[k.name] = textShape()
		case "syslog":
			properties[k.name] = map[string]any{"type": "string", "pattern": "^(local|(udp|tcp|tls|unix)://.+)$"}
		default:
			properties[k.name] = urlShape()
		}
		forms = append(forms, closed([]string{k.name}, properties))
	}
	return map[string]any{"oneOf": forms}
}

// requestShapes are the schemas of requestFields.
func requestShapes() map[string]any {
	return map[string]any{
		"headers": textShape(), "secret": textShape(), "authority": textShape(), "timeout": spanShape(), "insecure": map[string]any{"type": "boolean"},
	}
}

func urlShape() map[string]any { return map[string]any{"type": "string", "pattern": "^https?://.+$"} }
