package policy

import (
	"errors"
	"io/fs"
	"slices"
)

// granted adds the credentials that a rule names and no source defines: those
// that the user keeps across runs. Each goes to the hosts that it was granted
// for and that a rule names it at; a rule for anything else is an error.
func (p *Plan) granted(h Host) (errs Errors) {
	for _, r := range slices.Clone(p.Allow) {
		for _, name := range r.Credentials {
			if h.Grants == nil || p.has(name) {
				continue
			}
			c, err := h.Grants(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // unknownCredentials says so
			}
			if err != nil {
				errs = append(errs, &Error{Origin: r.Origin, Msg: r.Host + ": the grant " + name + ": " + err.Error(), hint: hintOf(err), cause: err})
				continue
			}
			if fault := p.take(c.clone()); fault != nil {
				errs = append(errs, fault)
			}
		}
	}
	return errs
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	return "see the state of your grants: holdfast grant list"
}

func (p *Plan) has(credential string) bool {
	return slices.ContainsFunc(p.Credentials, func(c Credential) bool { return c.Name == credential })
}

// take adds one grant.
func (p *Plan) take(c Credential) *Error {
	names := func(r HostRule) bool { return slices.Contains(r.Credentials, c.Name) }
	for _, r := range p.Allow {
		for _, port := range r.Ports {
			if names(r) && !slices.ContainsFunc(c.Hosts, func(h HostPort) bool { return h.Port == port && covers(r.Host, h.Host) }) {
				return fault(r.Origin, "see for what: holdfast grant list", "%s: the grant %s is not for %s:%d", r, c.Name, r.Host, port)
			}
		}
	}
	c.Hosts = slices.DeleteFunc(c.Hosts, func(h HostPort) bool {
		return !slices.ContainsFunc(p.Allow, func(r HostRule) bool {
			return names(r) && slices.Contains(r.Ports, h.Port) && covers(r.Host, h.Host)
		})
	})
	if p.Profile != "local" {
		c.TTL = min(c.TTL, defaultTTL)
	}
	p.Credentials = append(p.Credentials, c)
	return nil
}

// narrow adds a credential whose destinations a later source took away, for
// those of its hosts that may be reached all the same.
func (p *Plan) narrow(c Credential) {
	var hosts []HostPort
	for _, h := range c.Hosts {
		if p.open(&c, h) == nil {
			hosts = append(hosts, h)
		}
	}
	if len(hosts) == 0 {
		p.Notes = append(p.Notes, c.Origin.String()+": the credential "+c.Name+" is left out: none of its hosts is allowed any more")
		return
	}
	c.Hosts = hosts
	p.Credentials = append(p.Credentials, c)
}
