package policy

import "slices"

// ProxyPort is where the explicit proxy listens inside, on 127.0.0.1.
const ProxyPort = 3128

// network fills in what concerns the network, and refuses what contradicts
// itself.
func (p *Plan) network(e Effective) error {
	var errs Errors
	for _, one := range e.of("network.allow") {
		for _, rule := range one.Rule.expand() {
			rule.Origin = one.Origin
			if fault := p.tooWide(one, rule); fault != nil {
				errs = append(errs, fault)
				continue
			}
			p.Allow = append(p.Allow, rule)
		}
	}
	for _, one := range e.of("network.publish") {
		p.Publish = append(p.Publish, Port{Host: one.Ports[0], Inside: one.Ports[1], Origin: one.Origin})
	}
	for _, one := range e.of("network.host-ports") {
		port := Port{Host: one.Ports[0], Inside: one.Ports[1], Origin: one.Origin}
		if !slices.ContainsFunc(p.HostPorts, func(old Port) bool { return old.Inside == port.Inside }) {
			p.HostPorts = append(p.HostPorts, port)
		}
	}
	errs = append(errs, p.portsTwice()...)
	return errs.orNil()
}

// tooWide says what the profile asks of a rule. In production a host is named
// with what may be done there.
func (p *Plan) tooWide(e Entry, r HostRule) *Error {
	if p.Profile != "production" {
		return nil
	}
	switch {
	case r.Kind == TCP && e.Rule.Kind != TCP:
		return fault(e.Origin, "say it: {host: "+r.Host+", ports: [PORT], kind: tcp}, or HOST:PORT/tcp",
			"%s: the profile production takes bytes that are not looked at only with kind: tcp", r)
	case r.Kind != TCP && (len(r.Methods) == 0 || len(r.Paths) == 0):
		return fault(e.Origin, "for example {host: "+r.Host+", methods: [GET], paths: [/v1/**]}",
			"%s: the profile production takes a host only with methods and paths", r)
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
				errs = append(errs, fault(a.Origin, "", "port %d of the host is already given to %d inside (%s)", a.Host, b.Inside, b.Origin))
			}
		}
		for _, b := range p.HostPorts {
			if a.Inside == b.Inside {
				errs = append(errs, fault(a.Origin, "take another port inside for one of them", "port %d inside cannot be published, for it leads to the host's (%s)", a.Inside, b.Origin))
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
