//go:build linux

package probe

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// Reach is a destination that a row asks to be allowed, in all possible detail.
// The judge checks what the servers outside got against it.
type Reach struct {
	Host       string   `yaml:"host" json:"host,omitempty"` // name, *.name, or address
	Ports      []int    `yaml:"ports" json:"ports,omitempty"`
	Kind       string   `yaml:"kind" json:"kind,omitempty"` // tls, http or tcp
	Methods    []string `yaml:"methods" json:"methods,omitempty"`
	Paths      []string `yaml:"paths" json:"paths,omitempty"` // exact, or with /** at the end
	Credential string   `yaml:"credential" json:"credential,omitempty"`
	Internal   bool     `yaml:"internal" json:"internal,omitempty"`
	Inspect    bool     `yaml:"inspect" json:"inspect,omitempty"`
}

func (r Reach) names(name string) bool {
	if rest, ok := strings.CutPrefix(r.Host, "*"); ok {
		return strings.HasSuffix(name, rest) && name != rest
	}
	return name == r.Host
}

func (r Reach) request(v arrival) bool {
	under := func(p string) bool {
		dir, tree := strings.CutSuffix(p, "/**")
		return v.target == p || tree && strings.HasPrefix(v.target, dir+"/")
	}
	target := v.target
	if i := strings.IndexAny(target, "?"); i >= 0 {
		v.target = target[:i]
	}
	// A target that a server may read as another path is not within a tree.
	if len(r.Paths) > 0 && odd(v.target) {
		return false
	}
	return (len(r.Methods) == 0 || slices.Contains(r.Methods, v.method)) &&
		(len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, under))
}

func odd(target string) bool {
	low := strings.ToLower(target)
	return path.Clean(target) != strings.TrimSuffix(target, "/") && target != "/" || strings.Contains(low, "%2e") ||
		strings.Contains(low, "%2f") || strings.Contains(low, "%5c") || strings.ContainsAny(low, "\\;\x00")
}

// effects implements sink: everything that arrived and that the policy of the row
// does not allow.
func (n *internet) effects() []string {
	time.Sleep(100 * time.Millisecond) // the last data may be on its way, if the machine is busy
	n.mu.Lock()
	defer n.mu.Unlock()
	out := slices.Clone(n.strange)
	for _, q := range n.queries {
		named := slices.ContainsFunc(n.reach, func(r Reach) bool { return r.names(q.name) }) && (!n.silent || q.name == "b.allowed.test")
		if !named || q.kind != 1 && q.kind != 28 {
			out = append(out, fmt.Sprintf("the resolver was asked for %q, type %d", q.name, q.kind))
		}
	}
	for _, v := range n.arrivals {
		if why := n.illegal(v); why != "" {
			out = append(out, why)
		}
	}
	return out
}

// illegal returns what is wrong with a request to an allowed server.
func (n *internet) illegal(v arrival) string {
	for _, text := range n.never {
		if strings.Contains(strings.ToLower(v.head), strings.ToLower(text)) {
			return fmt.Sprintf("%s was sent %q", v.name, text)
		}
	}
	for value, may := range n.lent {
		if strings.Contains(v.head+v.target+v.body, value) && !may(v) {
			return fmt.Sprintf("%s was sent a secret of another place: %s", v.name, v.target)
		}
	}
	names := slices.Clone(v.hosts)
	if v.sni != "" {
		names = append(names, v.sni)
	}
	if n.namesOnly && v.to.Port() == 443 && v.sni == "" {
		return v.name + " got a handshake that names nobody"
	}
	for _, h := range names {
		if !n.called(v, h) {
			return fmt.Sprintf("%s was asked for %q", v.name, h)
		}
	}
	if v.method != "" && len(v.hosts) == 0 {
		return fmt.Sprintf("%s was asked for nobody: %s %s", v.name, v.method, v.target)
	}
	if v.method != "" && !slices.ContainsFunc(n.reach, func(r Reach) bool {
		return (r.names(v.name) || r.Host == v.name) && slices.Contains(r.Ports, int(v.to.Port())) && r.request(v)
	}) {
		return fmt.Sprintf("%s got a request that is not allowed: %s %s", v.name, v.method, v.target)
	}
	return ""
}

// called reports whether host is a valid name for the server of v.
func (n *internet) called(v arrival, host string) bool {
	name, port, err := net.SplitHostPort(strings.ToLower(host))
	if err != nil {
		name = strings.ToLower(host)
	} else if port != fmt.Sprint(v.to.Port()) {
		return false
	}
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return a == v.to.Addr().Unmap() && slices.ContainsFunc(n.reach, func(r Reach) bool { return r.Host == a.String() })
	}
	if rest, ok := strings.CutPrefix(v.name, "*"); ok {
		return strings.HasSuffix(name, rest)
	}
	return name == v.name
}
