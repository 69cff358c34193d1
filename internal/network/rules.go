package network

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// Rules are the destinations of a policy, compiled. They do not change; a reload
// makes new ones.
type Rules struct {
	exact map[string][]*rule // by name or address in normal form
	below map[string][]*rule // by what follows "*."
	names []string           // keys of exact that are names, sorted
}

// rule is a policy.HostRule that was checked.
type rule struct {
	policy.HostRule
	wildcard string // what follows "*."; "" for one name
}

// NewRules compiles rules. It takes them only as the policy promises them (normal
// form, ports, a known kind), so that a slip there cannot become a permission
// here, and refuses two kinds for the same host and port: which of them is meant
// would hang on their order.
func NewRules(rules []policy.HostRule) (*Rules, error) {
	r := &Rules{exact: map[string][]*rule{}, below: map[string][]*rule{}}
	for _, one := range rules {
		c, err := compileRule(one)
		if err != nil {
			return nil, fmt.Errorf("%s: destination %q: %w", one.Origin, text.Cut(one.Host, nameBytes), err)
		}
		table, key := r.exact, c.Host
		if c.wildcard != "" {
			table, key = r.below, c.wildcard
		}
		for _, other := range table[key] {
			if other.Kind != c.Kind {
				if port, both := sharedPort(other.Ports, c.Ports); both {
					return nil, fmt.Errorf("%s: port %d of %s is %s here and %s at %s", c.Origin, port, c.Host, c.Kind, other.Kind, other.Origin)
				}
			}
		}
		table[key] = append(table[key], c)
	}
	for name := range r.exact {
		if _, err := Normalize(name); err == nil {
			r.names = append(r.names, name)
		}
	}
	slices.Sort(r.names)
	return r, nil
}

func compileRule(h policy.HostRule) (*rule, error) {
	c := &rule{HostRule: h}
	name, wild := strings.CutPrefix(h.Host, "*.")
	normal, err := normalizeHost(name)
	switch {
	case err != nil:
		return nil, err
	case normal != name:
		return nil, fmt.Errorf("it is not in normal form, which is %q", normal)
	case len(h.Ports) == 0:
		return nil, fmt.Errorf("it has no port")
	}
	if wild {
		if _, err := Normalize(name); err != nil {
			return nil, err
		}
		c.wildcard = name
	}
	for _, port := range h.Ports {
		if port < 1 || port > 65535 {
			return nil, fmt.Errorf("%d is not a port", port)
		}
	}
	requests := len(h.Methods)+len(h.Paths)+len(h.Credentials) > 0
	switch h.Kind {
	case policy.TLS:
		c.Inspect = h.Inspect || requests
	case policy.HTTP:
	case policy.TCP:
		if requests || h.Inspect {
			return nil, fmt.Errorf("requests are not seen where the kind is tcp")
		}
	default:
		return nil, fmt.Errorf("%q is not a kind", h.Kind)
	}
	for _, p := range h.Paths {
		if err := checkPathPattern(p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func sharedPort(a, b []int) (int, bool) {
	for _, p := range a {
		if slices.Contains(b, p) {
			return p, true
		}
	}
	return 0, false
}

// Knows reports whether any rule names the host, at whatever port. The name is
// in normal form.
func (r *Rules) Knows(name string) bool {
	_, ok := r.naming(name)
	return ok
}

// naming returns the most specific rule that names the host, at whatever port.
func (r *Rules) naming(name string) (*rule, bool) {
	for c := range r.matching(name) {
		return c, true
	}
	return nil, false
}

// Names lists the names that rules give in full, sorted; wildcards and addresses
// are not among them.
func (r *Rules) Names() []string { return r.names }

// matching yields the rules that name a host, the most specific first: those for
// the name itself, then those for what is above it, nearest first. A wildcard is
// for what is below it at any depth, not for itself.
func (r *Rules) matching(name string) iter.Seq[*rule] {
	return func(yield func(*rule) bool) {
		for _, c := range r.exact[name] {
			if !yield(c) {
				return
			}
		}
		for rest := name; ; {
			_, above, ok := strings.Cut(rest, ".")
			if !ok {
				return
			}
			for _, c := range r.below[above] {
				if !yield(c) {
					return
				}
			}
			rest = above
		}
	}
}

// At returns what is permitted towards a host, in normal form, at a port. What any rule
// permits is permitted. If an exact rule and a wildcard disagree on the kind, only the
// more specific ones apply.
func (r *Rules) At(name string, port int) (Permit, bool) {
	var p Permit
	for c := range r.matching(name) {
		p.merge(c, port)
	}
	if len(r.exact[name]) > 0 {
		p.Wildcard = ""
	}
	return p, len(p.rules) > 0
}

// Permit is what rules permit towards one host and port.
type Permit struct {
	Kind      policy.HostKind
	Terminate bool          // TLS ends here, so that requests are decided one by one
	Internal  bool          // the host may be at an address that is not public
	Origin    policy.Origin // of the most specific rule
	Granted   bool          // a human allowed the connection, and no rule names it
	Wildcard  string        // the nearest wildcard's name, without "*.", where no rule gives the name in full; else ""

	rules []*rule
}

func (p *Permit) merge(c *rule, port int) {
	if !slices.Contains(c.Ports, port) {
		return
	}
	if len(p.rules) == 0 {
		p.Kind, p.Origin, p.Wildcard = c.Kind, c.Origin, c.wildcard
	}
	if c.Kind != p.Kind {
		return
	}
	p.Terminate = p.Terminate || c.Inspect
	p.Internal = p.Internal || c.Internal
	p.rules = append(p.rules, c)
}

// MayUseFor reports whether a credential may go with a request: of the rules that
// permit it, one must bind the credential. One of a rule for reading does not go
// with what another rule lets be written.
func (p Permit) MayUseFor(credential, method, path string) bool {
	for _, c := range p.rules {
		if slices.Contains(c.Credentials, credential) && c.permits(method, path) {
			return true
		}
	}
	return false
}

// withoutLogins is a permit without the rules by which requests reach token endpoints.
func (p Permit) withoutLogins() Permit {
	p.rules = slices.DeleteFunc(slices.Clone(p.rules), func(c *rule) bool { return c.Answered })
	if len(p.rules) > 0 {
		p.Origin = p.rules[0].Origin
	}
	return p
}

// Request reports whether a request is permitted, and the rule that does. The
// path is the one that goes upstream, escaped as it goes, without the query:
// nothing is rewritten before it is compared. Where a rule restricts paths, one
// that two servers could read as different paths is refused, not repaired.
func (p Permit) Request(method, path string) (policy.Origin, bool) {
	for _, c := range p.rules {
		if c.permits(method, path) {
			return c.Origin, true
		}
	}
	return policy.Origin{}, false
}

// narrow reports whether a rule is about some requests only, or binds a credential
// to them. That another rule permits all does not make it less narrow.
func (p Permit) narrow() bool {
	return slices.ContainsFunc(p.rules, func(c *rule) bool { return len(c.Methods)+len(c.Paths)+len(c.Credentials) > 0 })
}

// AnyPath reports whether a rule that has no paths permits a method, and binds the
// credentials.
func (p Permit) AnyPath(method string, credentials ...string) bool {
	return slices.ContainsFunc(p.rules, func(c *rule) bool {
		lacks := func(name string) bool { return !slices.Contains(c.Credentials, name) }
		return len(c.Paths) == 0 && c.allowsMethod(method) && !slices.ContainsFunc(credentials, lacks)
	})
}

func (c *rule) permits(method, path string) bool {
	return c.allowsMethod(method) && pathAllowed(c.Paths, path) == nil
}

func (c *rule) allowsMethod(method string) bool {
	return len(c.Methods) == 0 || slices.Contains(c.Methods, method)
}

// WhyNot says why Request refused, and the rule that came closest.
func (p Permit) WhyNot(method, path string) (string, policy.Origin) {
	var methods []string
	for _, c := range p.rules {
		if !c.allowsMethod(method) {
			methods = append(methods, c.Methods...)
			continue
		}
		if err := pathAllowed(c.Paths, path); err != nil {
			return err.Error(), c.Origin
		}
	}
	slices.Sort(methods)
	return fmt.Sprintf("the method is %s, the rules allow %s", text.Cut(method, nameBytes), strings.Join(slices.Compact(methods), ", ")), p.Origin
}

// nearest says why no rule permits a destination, and which one came closest, as
// file:line; "" for none. Port 0 means the name alone.
func (r *Rules) nearest(name string, port int) (reason, rule string) {
	ports := map[int]bool{}
	for c := range r.matching(name) {
		if rule == "" {
			rule = c.Origin.String()
		}
		for _, p := range c.Ports {
			ports[p] = true
		}
	}
	if rule != "" {
		var list []string
		for _, p := range slices.Sorted(maps.Keys(ports)) {
			list = append(list, strconv.Itoa(p))
		}
		return fmt.Sprintf("port %d is not allowed, only %s", port, strings.Join(list, ", ")), rule
	}
	if isSuffix := r.below[name]; len(isSuffix) > 0 {
		return fmt.Sprintf("*.%s allows what is below it, not the name itself", name), isSuffix[0].Origin.String()
	}
	if policy.IsMetadata(name) {
		return policy.NoMetadata, ""
	}
	if near := r.neighbour(name); near != nil {
		return fmt.Sprintf("no rule allows it; %s is allowed", near.Host), near.Origin.String()
	}
	return "no rule allows it", ""
}

// neighbour is a rule for a name that shares all but the first label with name,
// or is directly above or below it, and that lets something pass.
func (r *Rules) neighbour(name string) *rule {
	_, parent, _ := strings.Cut(name, ".")
	if !strings.Contains(parent, ".") {
		parent = ""
	}
	for _, other := range r.names {
		_, above, _ := strings.Cut(other, ".")
		if r.exact[other][0].Answered {
			continue
		}
		if other == parent || above == name || parent != "" && above == parent {
			return r.exact[other][0]
		}
	}
	return nil
}
