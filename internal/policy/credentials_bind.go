package policy

import (
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// credentials fills in what is brokered: each credential with its hosts, and
// the rules that let it through.
func (p *Plan) credentials(e Effective, h Host) error {
	var errs Errors
	var narrowed []Credential // written for destinations that a later source took away
	ranks := map[string]int{}
	for _, one := range e.entriesFor("credentials") {
		c := one.Credential.clone()
		c.Origin = one.Origin
		at := slices.IndexFunc(p.Credentials, func(old Credential) bool { return old.Name == c.Name })
		switch {
		case at < 0:
			p.Credentials = append(p.Credentials, c)
		case ranks[c.Name] == one.rank:
			errs = append(errs, fault(one.Origin, "", "the credential %s is already defined (%s)", c.Name, p.Credentials[at].Origin))
		default:
			p.Credentials[at] = c
		}
		ranks[c.Name] = one.rank
	}
	p.Credentials = slices.DeleteFunc(p.Credentials, func(c Credential) bool {
		if ranks[c.Name] < e.emptied {
			narrowed = append(narrowed, c)
			return true
		}
		return false
	})
	for i := range p.Credentials {
		if fault := p.bind(&p.Credentials[i]); fault != nil {
			errs = append(errs, fault)
		}
	}
	for _, c := range narrowed {
		p.addNarrowed(c)
	}
	errs = append(errs, p.addGrants(h)...)
	if len(errs) > 0 {
		return errs.orNil()
	}
	errs = append(errs, p.unknownCredentials()...)
	errs = append(errs, p.kindsTwice()...)
	errs = append(errs, p.variablesTwice()...)
	return errs.orNil()
}

func (c Credential) clone() Credential {
	c.Hosts, c.Paths, c.Env = slices.Clone(c.Hosts), slices.Clone(c.Paths), slices.Clone(c.Env)
	c.Source.Argv = slices.Clone(c.Source.Argv)
	options := map[string]string{}
	for k, v := range c.Source.Options {
		options[k] = v
	}
	c.Source.Options = options
	return c
}

// bind joins a credential and the rules for its hosts.
func (p *Plan) bind(c *Credential) *Error {
	if c.TTL > defaultTTL && p.Profile != "local" {
		return fault(c.Origin, "write ttl: 15m or less", "the credential %s has a lease of %s; the profile %s allows at most %s", c.Name, shortSpan(c.TTL), p.Profile, shortSpan(defaultTTL))
	}
	for _, h := range c.Hosts {
		if fault := p.open(c, h); fault != nil {
			return fault
		}
	}
	for _, r := range p.Allow {
		if !slices.Contains(r.Credentials, c.Name) {
			continue
		}
		if strings.HasPrefix(r.Host, "*") {
			if !slices.ContainsFunc(c.Hosts, func(h HostPort) bool { return covers(r.Host, h.Host) }) {
				return fault(r.Origin, "name them: hosts: [HOST, …] of the credential "+c.Name, "%s: the hosts of a credential are named in full, and %s names none below %s", r, c.Name, r.Host)
			}
			continue
		}
		for _, port := range r.Ports {
			if h := (HostPort{r.Host, port}); !slices.Contains(c.Hosts, h) {
				c.Hosts = append(c.Hosts, h)
			}
		}
	}
	if len(c.Hosts) == 0 {
		return fault(c.Origin, "give it hosts: [HOST], or a rule of network.allow credential: "+c.Name, "the credential %s has no host", c.Name)
	}
	if c.Shape == "" && c.Sign == "" {
		c.Shape = knownShape(c.Name, c.Hosts)
	}
	return nil
}

// open lets a credential through the rules for one of its hosts. Where only a
// wildcard covers it, the host gets a rule of its own, so that the
// others below the wildcard are not looked into.
func (p *Plan) open(c *Credential, h HostPort) *Error {
	fits := func(r HostRule) bool {
		return r.Kind == TLS && slices.Contains(r.Ports, h.Port) && covers(r.Host, h.Host)
	}
	exact := false
	for i := range p.Allow {
		if r := &p.Allow[i]; fits(*r) && r.Host == h.Host {
			exact = true
			r.admit(c.Name)
		}
	}
	if exact {
		return nil
	}
	var more []HostRule
	for _, r := range p.Allow {
		if fits(r) {
			r.Host, r.Ports = h.Host, []int{h.Port}
			r.Methods, r.Paths, r.Credentials = slices.Clone(r.Methods), slices.Clone(r.Paths), slices.Clone(r.Credentials)
			r.admit(c.Name)
			more = append(more, r)
		}
	}
	if len(more) == 0 {
		place := h.Host
		if h.Port != 443 {
			place = HostRule{Host: h.Host, Ports: []int{h.Port}, Kind: TLS}.String()
		}
		if _, err := netip.ParseAddr(h.Host); err == nil && h.Port == 443 {
			place = strconv.Quote(place)
		}
		return fault(c.Origin, "add under network.allow the line: - "+place,
			"the credential %s is for %s:%d, which no rule of network.allow with kind tls names", c.Name, h.Host, h.Port)
	}
	p.Allow = append(p.Allow, more...)
	return nil
}

func (r *HostRule) admit(credential string) {
	r.Inspect = true
	if !slices.Contains(r.Credentials, credential) {
		r.Credentials = append(r.Credentials, credential)
	}
}

// unknownCredentials refuses rules for a credential that does not exist.
func (p *Plan) unknownCredentials() (errs Errors) {
	known := make([]string, len(p.Credentials))
	for i, c := range p.Credentials {
		known[i] = c.Name
	}
	for _, r := range p.Allow {
		for _, name := range r.Credentials {
			if slices.Contains(known, name) {
				continue
			}
			hint := "add it under credentials with a source, or grant it with: holdfast grant add " + name
			if near := nearest(name, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			errs = append(errs, fault(r.Origin, hint, "%s: there is no credential %s", r.Host, name))
		}
	}
	return errs
}

// placeholders are the variables inside that c fills.
func (c Credential) placeholders() []string {
	if c.Sign != "" {
		return awsVariables
	}
	return c.Env
}

// variablesTwice refuses two placeholders in one variable.
func (p *Plan) variablesTwice() (errs Errors) {
	owner := map[string]Credential{}
	for _, c := range p.Credentials {
		for _, name := range c.placeholders() {
			if old, twice := owner[name]; twice {
				errs = append(errs, fault(c.Origin, "", "the credential %s: %s holds the placeholder of %s already (%s)", c.Name, name, old.Name, old.Origin))
				continue
			}
			owner[name] = c
		}
	}
	return errs
}

// addGrants adds the credentials that a rule names and no source defines: those
// that the user keeps across runs. Each goes to the hosts that it was granted
// for and that a rule names it at; a rule for anything else is an error.
func (p *Plan) addGrants(h Host) (errs Errors) {
	for _, r := range slices.Clone(p.Allow) {
		for _, name := range r.Credentials {
			if h.Grants == nil || p.hasCredential(name) {
				continue
			}
			c, err := h.Grants(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // unknownCredentials reports it
			}
			if err != nil {
				errs = append(errs, &Error{Origin: r.Origin, Msg: r.Host + ": the grant " + name + ": " + err.Error(), hint: hintOf(err), cause: err})
				continue
			}
			if fault := p.addGrant(c.clone()); fault != nil {
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

func (p *Plan) hasCredential(credential string) bool {
	return slices.ContainsFunc(p.Credentials, func(c Credential) bool { return c.Name == credential })
}

// addGrant adds one grant.
func (p *Plan) addGrant(c Credential) *Error {
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

// addNarrowed adds a credential whose destinations a later source removed, for those of
// its hosts that may still be reached.
func (p *Plan) addNarrowed(c Credential) {
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

// brokered says where the secrets of credentials come from.
func (x explainer) brokered(names []string) string {
	text := ""
	for _, c := range x.plan.Credentials {
		if slices.Contains(names, c.Name) {
			text += ", " + c.Name + " from " + c.Source.Kind
		}
	}
	return text
}
