package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// networkKeys are those of the section network.
var networkKeys = []key{
	{name: "network",
		doc: "Without it only the loopback inside can be reached."},
	{name: "network.allow", kind: &hosts, project: clears, example: "[packages.example.org, \"git.example.org:22/tcp\", {host: api.example.org, methods: [GET], paths: [/v1/items/**]}]",
		doc: allowDoc},
	{name: "network.host-ports", kind: &services, project: clears, example: "[5432]",
		doc: "TCP services on the loopback of the host that are reached inside at 127.0.0.1 and the same port."},
	{name: "network.publish", kind: &ports, project: clears, example: "[3000, \"8080:80\"]",
		doc: "TCP ports served inside that are published on the host's loopback: `PORT`, or `HOSTPORT:PORT`."},
}

var (
	services = kind{takes: "a list of ports", many: true, number: true, text: servicePort, schema: func(key) map[string]any { return list(portShape()) }}
	ports    = kind{takes: "a list of ports", many: true, number: true, text: published, schema: func(key) map[string]any {
		return list(map[string]any{"oneOf": []any{
			portShape(),
			map[string]any{"type": "string", "pattern": "^[1-9][0-9]{0,4}(:[1-9][0-9]{0,4})?$"},
		}})
	}}
)

func servicePort(k key, text string) (Entry, string, error) {
	port, err := portNumber(text)
	return Entry{Key: k.name, Value: text, Ports: []int{port, port}}, "", err
}

// ProxyPort is where the explicit proxy listens inside, on 127.0.0.1.
const ProxyPort = 3128

// HostKind is what may be spoken to a destination.
type HostKind string

// The kinds of a destination.
const (
	TLS  HostKind = "tls"  // TLS whose server name is the destination's; the default of port 443
	HTTP HostKind = "http" // HTTP in the clear, request by request; the default of port 80
	TCP  HostKind = "tcp"  // bytes, not looked at, as for ssh; the default of every other port
)

// Port is a TCP port that is served inside and shown on the host's loopback.
type Port struct {
	Host, Inside int // 1..65535
	Origin       Origin
}

// published reads PORT or HOSTPORT:PORT.
func published(k key, text string) (Entry, string, error) {
	host, inside, two := strings.Cut(text, ":")
	if !two {
		inside = host
	}
	h, err := portNumber(host)
	i, inner := portNumber(inside)
	return Entry{Key: k.name, Value: text, Ports: []int{h, i}}, "", cmp.Or(err, inner)
}

// network fills in what concerns the network, and refuses what contradicts
// itself.
func (p *Plan) network(e Effective) error {
	var errs Errors
	for _, one := range e.entriesFor("network.allow") {
		for _, rule := range one.Rule.expand() {
			rule.Origin = one.Origin
			if fault := p.tooWide(one, rule); fault != nil {
				errs = append(errs, fault)
				continue
			}
			p.Allow = append(p.Allow, rule)
		}
	}
	for _, one := range e.entriesFor("network.publish") {
		p.Publish = append(p.Publish, Port{Host: one.Ports[0], Inside: one.Ports[1], Origin: one.Origin})
	}
	for _, one := range e.entriesFor("network.host-ports") {
		port := Port{Host: one.Ports[0], Inside: one.Ports[1], Origin: one.Origin}
		if !slices.ContainsFunc(p.HostPorts, func(old Port) bool { return old.Inside == port.Inside }) {
			p.HostPorts = append(p.HostPorts, port)
		}
	}
	errs = append(errs, p.portsTwice()...)
	return errs.orNil()
}

// tooWide says what the profile requires of a rule. In production a host is named
// together with what may be done there.
func (p *Plan) tooWide(e Entry, r HostRule) *Error {
	if p.Profile != "production" {
		return nil
	}
	switch {
	case r.Kind == TCP && e.Rule.Kind != TCP:
		return fault(e.Origin, "write {host: "+r.Host+", ports: [PORT], kind: tcp}, or HOST:PORT/tcp",
			"%s: the profile production allows uninspected bytes only with kind: tcp", r)
	case r.Kind != TCP && (len(r.Methods) == 0 || len(r.Paths) == 0):
		return fault(e.Origin, "for example {host: "+r.Host+", methods: [GET], paths: [/v1/**]}",
			"%s: the profile production allows a host only with methods and paths", r)
	}
	return nil
}

// kindsTwice refuses two kinds for one port of a host: what is spoken there would
// hang on the order of the rules.
func (p *Plan) kindsTwice() (errs Errors) {
	type at struct {
		host string
		port int
	}
	first := map[at]HostRule{}
	for _, r := range p.Allow {
		for _, port := range r.Ports {
			old, found := first[at{r.Host, port}]
			if found && old.Kind != r.Kind {
				errs = append(errs, fault(r.Origin, "keep one of them", "port %d of %s is %s here and %s at %s", port, r.Host, r.Kind, old.Kind, old.Origin))
			}
			if !found {
				first[at{r.Host, port}] = r
			}
		}
	}
	return errs
}

// portsTwice refuses two services on one port; naming the same pair again says
// nothing new.
func (p *Plan) portsTwice() (errs Errors) {
	for i, a := range p.Publish {
		for _, b := range p.Publish[:i] {
			if a.Host == b.Host && a.Inside != b.Inside {
				errs = append(errs, fault(a.Origin, "", "port %d of the host is already mapped to port %d inside (%s)", a.Host, b.Inside, b.Origin))
			}
		}
		for _, b := range p.HostPorts {
			if a.Inside == b.Inside {
				errs = append(errs, fault(a.Origin, "take another port inside for one of them", "port %d inside cannot be published: it leads to the host's (%s)", a.Inside, b.Origin))
			}
		}
	}
	for _, one := range slices.Concat(p.Publish, p.HostPorts) {
		if one.Inside == ProxyPort {
			errs = append(errs, fault(one.Origin, "take another port inside", "port %d inside belongs to the proxy of Holdfast", ProxyPort))
		}
	}
	return errs
}

func networkRows(p Plan) []Row {
	return slices.Concat(
		rowsOf("network.allow", p.Allow, func(r HostRule) (fmt.Stringer, Origin) { return r, r.Origin }),
		rowsOf("network.host-ports", p.HostPorts, func(o Port) (fmt.Stringer, Origin) { return cellText(strconv.Itoa(o.Inside)), o.Origin }),
		rowsOf("network.publish", p.Publish, func(o Port) (fmt.Stringer, Origin) {
			return cellText(strconv.Itoa(o.Host) + ":" + strconv.Itoa(o.Inside)), o.Origin
		}))
}

func looksLikeHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	_, _, err := destination(text)
	return loopbackQuery(text) || err == nil && strings.ContainsAny(text, ".:")
}

// loopbackQuery reports whether text asks for the loopback inside.
func loopbackQuery(text string) bool {
	host, _, _, err := splitPort(text)
	if err == nil {
		host, err = hostName(host)
	}
	return err == nil && loopbackName(host)
}

// destination answers for a host: for one port of it where query names one.
func (x explainer) destination(query string) (Answer, error) {
	a := Answer{Query: query, Kind: "host"}
	if loopbackQuery(query) {
		a.Connect = &Verdict{Allowed: true, Why: "loopback inside, which is private: services of the host are not there" + x.hostPorts(), Rule: "network"}
		return a, nil
	}
	asked, hint, err := destination(query)
	if err != nil {
		return Answer{}, &Error{Msg: err.Error(), hint: hint}
	}
	var why, rules []string
	for _, r := range x.plan.Allow {
		if !covers(r.Host, asked.Host) || len(asked.Ports) > 0 && !slices.Contains(r.Ports, asked.Ports[0]) || asked.Kind != "" && r.Kind != asked.Kind {
			continue
		}
		why = append(why, r.String()+x.brokered(r.Credentials))
		if o := r.Origin.String(); !slices.Contains(rules, o) {
			rules = append(rules, o)
		}
	}
	if len(why) > 0 {
		a.Connect = &Verdict{Allowed: true, Why: strings.Join(why, "; "), Rule: strings.Join(rules, ", ")}
		return a, nil
	}
	a.Connect = &Verdict{Why: "no rule allows it", Rule: "network", Add: "--allow " + query + ", or under network.allow: " + query}
	if address, err := netip.ParseAddr(asked.Host); err == nil && (!address.IsGlobalUnicast() || address.IsPrivate()) {
		a.Connect.Add = "under network.allow: {host: " + scalar(asked.Host) + ", internal: true}"
	}
	if IsMetadata(asked.Host) {
		a.Connect.Why, a.Connect.Add = NoMetadata, ""
	} else if len(x.plan.Allow) == 0 {
		a.Connect.Why = "no destination is allowed: there is no network inside but loopback"
	}
	return a, nil
}

// hostPorts names the exceptions to a private loopback.
func (x explainer) hostPorts() string {
	if len(x.plan.HostPorts) == 0 {
		return ""
	}
	var ports []string
	for _, p := range x.plan.HostPorts {
		ports = append(ports, strconv.Itoa(p.Inside))
	}
	return " but for " + strings.Join(ports, ", ")
}
