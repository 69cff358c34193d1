package network

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// allow writes a rule; its line in the policy is its place in the list.
func allow(host string, kind policy.HostKind, ports ...int) policy.HostRule {
	return policy.HostRule{Host: host, Kind: kind, Ports: ports}
}

func rulesFor(t testing.TB, list ...policy.HostRule) *Rules {
	t.Helper()
	for i := range list {
		list[i].Origin = policy.Origin{File: "policy.yaml", Line: i + 1}
	}
	r, err := NewRules(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRulesDecide(t *testing.T) {
	r := rulesFor(t,
		allow("allowed.test", policy.TLS, 443),
		allow("allowed.test", policy.HTTP, 80),
		allow("*.wild.test", policy.TLS, 443),
		allow("git.wild.test", policy.TCP, 22, 443),
		allow("192.0.2.7", policy.TCP, 5432),
		allow("2001:db8::7", policy.TLS, 443),
		allow("*.deep.wild.test", policy.TLS, 8443),
	)
	for _, tt := range []struct {
		name string
		host string
		port int
		want string // kind and line of the rule; "" for refused
	}{
		{"the name of a rule", "allowed.test", 443, "tls 1"},
		{"the same name at another rule's port", "allowed.test", 80, "http 2"},
		{"a port that no rule has", "allowed.test", 22, ""},
		{"a name that only ends like it", "evil-allowed.test", 443, ""},
		{"a name with a letter before it", "xallowed.test", 443, ""},
		{"a name that only begins like it", "allowed.test.denied.test", 443, ""},
		{"a name below one without a wildcard", "www.allowed.test", 443, ""},
		{"the name above it", "test", 443, ""},
		{"a name below a wildcard", "a.wild.test", 443, "tls 3"},
		{"two labels below a wildcard", "a.b.wild.test", 443, "tls 3"},
		{"the wildcard's own name", "wild.test", 443, ""},
		{"a name that ends like a wildcard without the dot", "xwild.test", 443, ""},
		{"a name for itself, where the wildcard says otherwise", "git.wild.test", 443, "tcp 4"},
		{"a port of the name for itself", "git.wild.test", 22, "tcp 4"},
		{"a nearer wildcard does not take away the farther one's port", "x.deep.wild.test", 443, "tls 3"},
		{"a nearer wildcard has its own port", "x.deep.wild.test", 8443, "tls 7"},
		{"an IPv4 address", "192.0.2.7", 5432, "tcp 5"},
		{"an IPv6 address", "2001:db8::7", 443, "tls 6"},
		{"another address", "192.0.2.8", 5432, ""},
		{"a name that is not in normal form", "ALLOWED.test", 443, ""},
		{"a wildcard as a name", "*.wild.test", 443, "tls 3"},
		{"nothing", "", 443, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := r.At(tt.host, tt.port)
			got := ""
			if ok {
				got = string(p.Kind) + " " + strings.TrimPrefix(p.Origin.String(), "policy.yaml:")
			}
			if tt.host == "*.wild.test" {
				// Normalize refuses it before it comes here.
				if _, err := Normalize(tt.host); err == nil {
					t.Error("a wildcard passes as a name")
				}
				return
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := r.Names(); !slices.Equal(got, []string{"allowed.test", "git.wild.test"}) {
		t.Errorf("Names: %q", got)
	}
}

func TestNoRulesAllowNothing(t *testing.T) {
	for _, list := range [][]policy.HostRule{nil, {}} {
		r, err := NewRules(list)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.At("example.org", 443); ok || r.Knows("example.org") {
			t.Error("something is allowed")
		}
	}
}

func TestRulesAreMerged(t *testing.T) {
	r := rulesFor(t,
		policy.HostRule{Host: "api.test", Ports: []int{443}, Kind: policy.TLS, Methods: []string{"GET"}, Paths: []string{"/repo/**"}, Inspect: true},
		policy.HostRule{Host: "api.test", Ports: []int{443}, Kind: policy.TLS, Methods: []string{"POST"}, Paths: []string{"/graphql"}, Inspect: true, Credentials: []string{"token"}},
		policy.HostRule{Host: "*.test", Ports: []int{443}, Kind: policy.TLS, Methods: []string{"HEAD"}, Inspect: true, Internal: true},
		policy.HostRule{Host: "open.test", Ports: []int{443}, Kind: policy.TLS},
	)
	api, _ := r.At("api.test", 443)
	open, _ := r.At("open.test", 443)
	other, _ := r.At("other.test", 443)
	for _, tt := range []struct {
		name         string
		permit       Permit
		method, path string
		want         string // the rule; "" for refused
	}{
		{"the first rule's method and path", api, "GET", "/repo/x", "policy.yaml:1"},
		{"the second rule's method and path", api, "POST", "/graphql", "policy.yaml:2"},
		{"one rule's method with another's path", api, "POST", "/repo/x", ""},
		{"and the other way round", api, "GET", "/graphql", ""},
		{"a wildcard's method at any path", api, "HEAD", "/anything", "policy.yaml:3"},
		{"a method that no rule has", api, "DELETE", "/repo/x", ""},
		{"a method in lower case is another method", api, "get", "/repo/x", ""},
		{"a rule without methods allows all", open, "DELETE", "/x", "policy.yaml:4"},
		{"a path is not looked at where no rule has paths", open, "GET", "/a/../b", "policy.yaml:4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			origin, ok := tt.permit.Request(tt.method, tt.path)
			got := ""
			if ok {
				got = origin.String()
			} else if why, _ := tt.permit.WhyNot(tt.method, tt.path); why == "" {
				t.Error("no reason")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if !api.Terminate || !open.Terminate || !api.MayUseFor("token", "POST", "/graphql") || other.MayUseFor("token", "POST", "/graphql") || api.MayUseFor("", "POST", "/graphql") {
		t.Error("what rules want of a connection was not merged")
	}
	for _, tt := range []struct {
		method, path string
		want         bool
	}{{"POST", "/graphql", true}, {"GET", "/repo/x", false}, {"HEAD", "/graphql", false}, {"POST", "/repo/x", false}} {
		if got := api.MayUseFor("token", tt.method, tt.path); got != tt.want {
			t.Errorf("the token with %s %s: %v", tt.method, tt.path, got)
		}
	}
	if !api.Internal || api.Wildcard != "" || other.Wildcard != "test" {
		t.Errorf("internal %v, wildcards %q and %q", api.Internal, api.Wildcard, other.Wildcard)
	}
}

func TestNewRulesRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		list []policy.HostRule
		want string
	}{
		{"a name that is not in normal form", []policy.HostRule{allow("A.test", policy.TLS, 443)}, "normal form"},
		{"an address that is not in normal form", []policy.HostRule{allow("::ffff:192.0.2.1", policy.TLS, 443)}, "normal form"},
		{"what inet_aton reads", []policy.HostRule{allow("127.1", policy.TLS, 443)}, "number"},
		{"everything", []policy.HostRule{allow("*", policy.TLS, 443)}, "contains"},
		{"a wildcard in the middle", []policy.HostRule{allow("a.*.test", policy.TLS, 443)}, "contains"},
		{"a wildcard of an address", []policy.HostRule{allow("*.0.0.1", policy.TLS, 443)}, "number"},
		{"no port", []policy.HostRule{allow("a.test", policy.TLS)}, "no port"},
		{"port 0", []policy.HostRule{allow("a.test", policy.TLS, 0)}, "not a port"},
		{"port 65536", []policy.HostRule{allow("a.test", policy.TLS, 65536)}, "not a port"},
		{"no kind", []policy.HostRule{allow("a.test", "", 443)}, "not a kind"},
		{"methods where requests are not seen", []policy.HostRule{{Host: "a.test", Ports: []int{22}, Kind: policy.TCP, Methods: []string{"GET"}}}, "not seen"},
		{"a path without a slash", []policy.HostRule{{Host: "a.test", Ports: []int{443}, Kind: policy.TLS, Paths: []string{"x"}}}, "begin with /"},
		{"a path with ** in the middle", []policy.HostRule{{Host: "a.test", Ports: []int{443}, Kind: policy.TLS, Paths: []string{"/**/x"}}}, "**"},
		{"a path with dot segments", []policy.HostRule{{Host: "a.test", Ports: []int{443}, Kind: policy.TLS, Paths: []string{"/a/../x"}}}, "dots"},
		{"two kinds for the same port", []policy.HostRule{allow("a.test", policy.TLS, 443), allow("a.test", policy.TCP, 22, 443)}, "port 443 of a.test is tcp here and tls at"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewRules(tt.list); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	answered := allow("auth.answered.test", policy.TLS, 443)
	answered.Answered = true
	r := rulesFor(t, allow("api.allowed.test", policy.TLS, 443, 8443), allow("*.wild.test", policy.TLS, 443), answered)
	for _, tt := range []struct {
		name, host   string
		port         int
		reason, rule string
	}{
		{"another port", "api.allowed.test", 22, "port 22 is not allowed, only 443, 8443", "policy.yaml:1"},
		{"another port below a wildcard", "x.wild.test", 22, "port 22 is not allowed, only 443", "policy.yaml:2"},
		{"the name of a wildcard", "wild.test", 443, "*.wild.test allows what is below it, not the name itself", "policy.yaml:2"},
		{"a sister", "www.allowed.test", 0, "no rule allows it; api.allowed.test is allowed", "policy.yaml:1"},
		{"the parent", "allowed.test", 443, "no rule allows it; api.allowed.test is allowed", "policy.yaml:1"},
		{"a child", "v2.api.allowed.test", 443, "no rule allows it; api.allowed.test is allowed", "policy.yaml:1"},
		{"a sister at which nothing passes", "api.answered.test", 443, "no rule allows it", ""},
		{"a stranger", "evil.example", 443, "no rule allows it", ""},
		{"a stranger below the same top label", "evil.test", 443, "no rule allows it", ""},
		{"an address", "192.0.2.1", 443, "no rule allows it", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if reason, rule := r.nearest(tt.host, tt.port); reason != tt.reason || rule != tt.rule {
				t.Errorf("got %q %q, want %q %q", reason, rule, tt.reason, tt.rule)
			}
		})
	}
}
