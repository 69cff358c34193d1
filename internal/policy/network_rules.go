package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// allowDoc describes a destination in full.
const allowDoc = "Destinations that the command may reach, as `HOST`, `HOST:PORT`, `HOST:PORT/KIND` or a mapping:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `host` | a DNS name, `*.` and a name for all names below it (not that name itself), or an IP address |\n" +
	"| `ports` | list of ports; without it 443, and 80 where nothing else is said of the host |\n" +
	"| `kind` | `tls`: TLS for that name; `http`: unencrypted HTTP; `tcp`: any bytes. Without it 443 is `tls`, 80 is `http`, all others are `tcp` |\n" +
	"| `methods` | methods of requests, such as `GET`; without it all |\n" +
	"| `paths` | paths of requests: `*` stands for part of one segment, `/**` at the end for everything below; without it all |\n" +
	"| `credential` | a name of `credentials`, or of a grant that you keep (`holdfast grant`), or a list of them, that may be used there |\n" +
	"| `internal` | `true`: the name may have an address that is not public |\n" +
	"| `inspect` | `true`: TLS is terminated and each request recorded; that is so in any case with `methods`, `paths` or `credential` |\n\n" +
	"Several entries may name one host: what any of them permits is permitted. An empty list is an error, since it could be read as all."

var hosts = kind{
	takes:   "a list of destinations",
	many:    true,
	element: (*decoder).host,
	text: func(k key, text string) (Entry, string, error) {
		rule, hint, err := destination(text)
		return Entry{Key: k.name, Value: rule.String(), Rule: &rule}, hint, err
	},
	schema: func(key) map[string]any { return list(map[string]any{"oneOf": []any{textShape(), destinationShape()}}) },
}

// HostRule is a network destination that the command may reach. Several rules
// may name the same host and port: what any of them permits is permitted.
type HostRule struct {
	Host        string   // in normal form: a DNS name in lower case without a final dot, "*.name" for every name below it, or an IP address
	Ports       []int    // at least one, 1..65535
	Kind        HostKind // never empty
	Methods     []string // of requests, upper case; empty means all
	Paths       []string // of requests: "*" matches part of one segment, "/**" at the end everything below; empty means all
	Credentials []string // names of Plan.Credentials that may be used there; empty means none
	Internal    bool     // it may be at an address that is not public
	Inspect     bool     // TLS is terminated, so that requests are decided one by one and answers recorded; set where Methods, Paths or Credentials need it
	Answered    bool     // nothing passes: requests are answered outside, as [Login] says
	Origin      Origin
}

var hostKinds = []HostKind{TLS, HTTP, TCP}

// defaultKind is the protocol of a port for which no rule names one.
func defaultKind(port int) HostKind {
	switch port {
	case 443:
		return TLS
	case 80:
		return HTTP
	}
	return TCP
}

// destination reads HOST, HOST:PORT or HOST:PORT/KIND; an IPv6 address with a port is
// in brackets.
func destination(text string) (r HostRule, hint string, err error) {
	const forms = "write HOST, HOST:PORT or HOST:PORT/KIND, such as git.example.org:22/tcp"
	if strings.Contains(text, "://") {
		return r, forms, fmt.Errorf("%q is a URL; a destination is a host", printable(text))
	}
	place, kind, hasKind := strings.Cut(text, "/")
	host, port, hasPort, err := splitPort(place)
	if err != nil {
		return r, forms, err
	}
	if r.Host, err = hostName(host); err != nil {
		return r, "", err
	}
	if hasPort {
		n, err := portNumber(port)
		if err != nil {
			return r, forms, err
		}
		r.Ports = []int{n}
	}
	if hasKind {
		if kind, err = kindText(kind); err != nil {
			return r, forms, err
		}
		if !hasPort {
			return r, forms, fmt.Errorf("%q has a kind without a port", printable(text))
		}
		r.Kind = HostKind(kind)
	}
	return r, "", checkRule(r)
}

// host decodes a destination that is written as a mapping.
func (d *decoder) host(key string, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	what := "a destination of " + key
	var r HostRule
	var kind string
	var inspect *bool
	before := len(d.errs)
	d.mapping(what, n, []field{
		d.textField(what, "host", &r.Host, hostName),
		{"ports", func(n *yaml.Node) {
			d.texts(what, "ports", n, false, func(text string) error {
				port, err := portNumber(text)
				r.Ports = append(r.Ports, port)
				return err
			})
		}},
		d.textField(what, "kind", &kind, kindText),
		d.textsField(what, "methods", &r.Methods, methodName),
		d.textsField(what, "paths", &r.Paths, requestPath),
		d.nameField(what, "credential", &r.Credentials, unchanged(credentialName)),
		{"internal", func(n *yaml.Node) { d.truth(what, "internal", n, &r.Internal) }},
		{"inspect", func(n *yaml.Node) { inspect = new(bool); d.truth(what, "inspect", n, inspect) }},
	})
	r.Kind, r.Inspect = HostKind(kind), inspect != nil && *inspect
	switch {
	case len(d.errs) > before:
		return true
	case r.Host == "":
		d.fail(n, "for example {host: api.example.org}", "%s has no host", what)
		return true
	case inspect != nil && !r.Inspect && r.requests():
		d.fail(n, "remove inspect: false", "%s: %s: methods, paths and credentials are decided request by request, which inspect: false would not allow", what, r.Host)
		return true
	}
	if err := checkRule(r); err != nil {
		d.fail(n, "", "%s: %v", what, err)
		return true
	}
	d.add(n, Entry{Key: key, Value: r.String(), Rule: &r})
	return true
}

func kindText(text string) (string, error) {
	if !slices.Contains(hostKinds, HostKind(text)) {
		return "", fmt.Errorf("%q is not a kind: tls, http or tcp", printable(text))
	}
	return text, nil
}

// requests reports whether r says something of single requests.
func (r HostRule) requests() bool {
	return len(r.Methods)+len(r.Paths)+len(r.Credentials) > 0
}

// checkRule returns contradictions in a rule as it was written.
func checkRule(r HostRule) error {
	if loopbackName(r.Host) && !r.Internal {
		return fmt.Errorf("%s is the loopback inside, which needs no rule; a service on the host's loopback is reached with network.host-ports or --host-port PORT", r.Host)
	}
	for _, one := range r.expand() {
		at := r.Host + ":" + strconv.Itoa(one.Ports[0])
		switch {
		case one.Kind == TCP && len(r.Methods)+len(r.Paths) > 0:
			return fmt.Errorf("%s is of kind tcp, whose bytes are not inspected: methods and paths need kind: tls or kind: http", at)
		case one.Kind != TLS && len(r.Credentials) > 0:
			return fmt.Errorf("%s is of kind %s: a credential is sent over tls only", at, one.Kind)
		case one.Kind == TCP && r.Inspect:
			return fmt.Errorf("%s is of kind tcp, which cannot be inspected: use kind: tls", at)
		}
	}
	return nil
}

// expand returns the rules that a written rule r means, each of one kind and with
// ports.
func (r HostRule) expand() []HostRule {
	ports := r.Ports
	switch {
	case len(ports) > 0:
	case r.Kind == HTTP:
		ports = []int{80}
	case r.Kind == TLS || r.requests() || r.Inspect:
		ports = []int{443}
	default:
		ports = []int{443, 80}
	}
	byKind := map[HostKind][]int{}
	for _, port := range ports {
		kind := r.Kind
		if kind == "" {
			kind = defaultKind(port)
		}
		byKind[kind] = append(byKind[kind], port)
	}
	var out []HostRule
	for _, kind := range hostKinds {
		if byKind[kind] == nil {
			continue
		}
		one := r
		one.Kind, one.Ports = kind, byKind[kind]
		one.Methods, one.Paths, one.Credentials = slices.Clone(r.Methods), slices.Clone(r.Paths), slices.Clone(r.Credentials)
		one.Inspect = kind == TLS && (r.Inspect || r.requests())
		out = append(out, one)
	}
	return out
}

// String is a rule in one line.
func (r HostRule) String() string {
	var b strings.Builder
	b.WriteString(r.Host)
	if len(r.Ports) > 0 {
		if strings.Contains(r.Host, ":") {
			b.Reset()
			b.WriteString("[" + r.Host + "]")
		}
		between := ":"
		for _, port := range r.Ports {
			b.WriteString(between + strconv.Itoa(port))
			between = ","
		}
	}
	if r.Kind != "" {
		b.WriteString("/" + string(r.Kind))
	}
	for _, part := range []struct {
		name   string
		values []string
	}{{"", r.Methods}, {"", r.Paths}, {"credential ", r.Credentials}} {
		if len(part.values) > 0 {
			b.WriteString(" " + part.name + strings.Join(part.values, ","))
		}
	}
	if r.Internal {
		b.WriteString(" internal")
	}
	if r.Inspect && !r.requests() {
		b.WriteString(" inspect")
	}
	return b.String()
}

// destinationShape is the schema of a destination that is written as a mapping.
func destinationShape() map[string]any {
	text := textShape()
	truth := map[string]any{"type": "boolean"}
	return map[string]any{
		"type": "object", "required": []string{"host"}, "additionalProperties": false,
		"properties": map[string]any{
			"host":       text,
			"ports":      some(portShape()),
			"kind":       map[string]any{"enum": hostKinds},
			"methods":    some(map[string]any{"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$"}),
			"paths":      some(pathShape()),
			"credential": oneOrSome(credentialNameShape()),
			"internal":   truth,
			"inspect":    truth,
		},
	}
}
