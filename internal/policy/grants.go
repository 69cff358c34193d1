package policy

import "slices"

// granted adds the credentials that the user keeps across runs, each only to
// hosts that it was granted for and that this run may reach anyway. Where nobody
// sits beside the run, a rule must name the grant; on one's own machine the
// hosts are enough.
func (p *Plan) granted(all []Credential) (errs Errors) {
	for _, g := range all {
		if slices.ContainsFunc(p.Credentials, func(c Credential) bool { return c.Name == g.Name }) {
			continue // the policy's own takes its place
		}
		named := slices.ContainsFunc(p.Allow, func(r HostRule) bool { return slices.Contains(r.Credentials, g.Name) })
		if !named && p.Profile != "local" {
			continue
		}
		c := g.clone()
		c.Hosts = nil
		if p.Profile != "local" {
			c.TTL = min(c.TTL, defaultTTL)
		}
		for _, h := range g.Hosts {
			if p.open(&c, h) == nil {
				c.Hosts = append(c.Hosts, h)
			}
		}
		if fault := p.beyond(c); fault != nil {
			errs = append(errs, fault)
			continue
		}
		if len(c.Hosts) > 0 {
			if c.Shape == "" && c.Sign == "" {
				c.Shape = knownShape(c.Hosts)
			}
			p.Credentials = append(p.Credentials, c)
		}
	}
	return errs
}

// beyond refuses a rule that names a grant for hosts that it is not for.
func (p *Plan) beyond(c Credential) *Error {
	for _, r := range p.Allow {
		if !slices.Contains(r.Credentials, c.Name) {
			continue
		}
		for _, port := range r.Ports {
			if !slices.ContainsFunc(c.Hosts, func(h HostPort) bool { return h.Port == port && covers(r.Host, h.Host) }) {
				return fault(r.Origin, "see for what: holdfast grant list", "%s: the credential %s is not granted for %s:%d", r, c.Name, r.Host, port)
			}
		}
	}
	return nil
}
