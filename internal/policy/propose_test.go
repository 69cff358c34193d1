package policy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPropose(t *testing.T) {
	seen := []Seen{
		{"registry.example.org", 443, TLS, "GET", "/left-pad", 2},
		{"registry.example.org", 443, TLS, "GET", "/left-pad/-/left-pad-1.3.0.tgz", 1},
		{"registry.example.org", 443, TLS, "GET", "/v1/items/4711/notes", 1},
		{"registry.example.org", 443, TLS, "POST", "/v1/items/4712/notes", 1},
		{"registry.example.org", 443, TLS, "GET", "/blobs/9f86d081884c7d65", 1},
		{"Plain.example.org.", 80, "", "", "", 3},
		{"plain.example.org", 443, "", "", "", 1},
		{"git.example.org", 22, TCP, "", "", 1},
		{"odd.example.org", 8443, TLS, "GET", "/a%20b/../c", 1},
		{"2001:db8::1", 443, TLS, "", "", 1},
		{"192.0.2.7", 8080, HTTP, "GET", "/", 1},
		{"bad host\n- evil", 443, TLS, "", "", 1},
		{"localhost", 5432, TCP, "", "", 1},
		{"metadata.google.internal", 80, HTTP, "GET", "/", 1},
	}
	for i := range 9 {
		seen = append(seen, Seen{"registry.example.org", 443, TLS, "GET", fmt.Sprintf("/@scope/%c", 'a'+i), 1})
	}
	want := `version: 1
network:
  allow:
    - host: '192.0.2.7' # seen once
      ports: [8080]
      kind: http
      methods: [GET]
      paths:
        - '/'
    - '[2001:db8::1]:443' # seen once
    - git.example.org:22 # seen once
    - host: odd.example.org # seen once
      ports: [8443]
      kind: tls
      methods: [GET]
      paths:
        - /*/**
    - plain.example.org # seen 4 times
    - host: registry.example.org # seen 15 times
      methods: [GET]
      paths:
        - '/@scope/**'
        - /blobs/*
        - /left-pad
        - /left-pad/-/left-pad-*.tgz
    - host: registry.example.org
      methods: [GET, POST]
      paths:
        - /v1/items/*/notes
# left out, for no rule can name it: bad host\n- evil, port 443
# left out, for no rule can name it: localhost, port 5432
# left out, for no rule can name it: metadata.google.internal, port 80
`
	got := Propose(seen)
	if strings.ReplaceAll(string(got), "'/'", "/") != strings.ReplaceAll(want, "'/'", "/") {
		t.Errorf("got\n%s", got)
	}
	for range 5 {
		rand.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
		if again := Propose(seen); !bytes.Equal(got, again) {
			t.Fatalf("another order gives\n%s", again)
		}
	}
	covered(t, got, seen[:0])
}

// covered checks that a proposal parses, and that every observation that a rule
// can name is allowed by it.
func covered(t *testing.T, text []byte, seen []Seen) {
	t.Helper()
	f, err := Parse("p.yaml", "/", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var rules []HostRule
	for _, e := range f.Entries {
		rules = append(rules, e.Rule.expand()...)
	}
	if errs := (&Plan{Allow: rules}).kindsTwice(); errs != nil {
		t.Fatalf("%v\n%s", errs, text)
	}
	for _, s := range seen {
		host, err := hostName(s.Host)
		if err != nil || s.Port < 1 || s.Port > 65535 || loopbackName(host) || IsMetadata(host) || host[0] == '*' {
			continue
		}
		kind := s.Kind
		if !slices.Contains(hostKinds, kind) {
			kind = defaultKind(s.Port)
		}
		path, _, _ := strings.Cut(s.Path, "?")
		if !slices.ContainsFunc(rules, func(r HostRule) bool {
			if r.Host != host || r.Kind != kind && r.Kind != TCP || !slices.Contains(r.Ports, s.Port) {
				return false
			}
			return (len(r.Methods) == 0 || slices.Contains(r.Methods, s.Method)) &&
				(len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(p string) bool { return matchPath(p, path) }))
		}) {
			t.Fatalf("%+v is not covered by\n%s", s, text)
		}
	}
}

func TestProposalsCoverWhatWasSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 14))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	for range 300 {
		var seen []Seen
		for range r.IntN(60) {
			path := ""
			for range r.IntN(6) {
				path += "/" + pick("a", "b", "c", "v1", "12", "1.2.3", "x-2.0.1.tgz", "..", ".", "", "a b", "é", "%2e", "*", "**", "a;b", "deadbeef01", "null", "{}", "#", "'", "it's")
			}
			seen = append(seen, Seen{
				Host: pick("a.example.org", "b", "null", "true", "192.0.2.1", "2001:db8::1", "x.y", "Y.example.org.", "bad_name.org", "*.x.y", "-", "1e5.org"),
				Port: []int{443, 80, 22, 8443, 0}[r.IntN(5)], Kind: HostKind(pick("tls", "http", "tcp", "", "odd")),
				Method: pick("GET", "GET", "POST", "get", "", "CONNECT", "A B", "PROPFIND"), Path: pick(path, path, path, "", "*", path+"?q=1"), Count: r.IntN(3),
			})
		}
		covered(t, Propose(seen), seen)
	}
}

func TestProposalsStayReadable(t *testing.T) {
	var seen []Seen
	for i := range 1500 {
		seen = append(seen, Seen{Host: fmt.Sprintf("h%d.example.org", i%700), Port: 443, Kind: TLS, Method: "GET", Path: "/" + strings.Repeat("x", i%1200)})
		seen = append(seen, Seen{Host: fmt.Sprintf("h%d.example.org", i%700), Port: 443, Kind: TLS, Method: "POST", Path: "/p"})
	}
	covered(t, Propose(seen), seen)
	for i := range 3000 {
		seen = append(seen, Seen{Host: fmt.Sprintf("i%d.example.org", i), Port: 443})
	}
	if _, err := Parse("p.yaml", "/", Propose(seen)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p.yaml", "/", Propose(nil)); err != nil {
		t.Error(err)
	}
}

// A file has at most 1000 entries, and a destination may take several of them.
func TestProposalsFitIntoAFile(t *testing.T) {
	var seen []Seen
	for i := range 400 {
		for _, r := range []struct{ method, path string }{{"GET", "/a"}, {"POST", "/b"}, {"PUT", "/c"}} {
			seen = append(seen, Seen{Host: fmt.Sprintf("h%d.example.org", i), Port: 443, Kind: TLS, Method: r.method, Path: r.path})
		}
	}
	covered(t, Propose(seen), seen)
}

func FuzzPropose(f *testing.F) {
	f.Add("a.example.org", 443, "tls", "GET", "/a/b", "/a/../c")
	f.Add("b\n", 80, "", "", "", "x")
	f.Fuzz(func(t *testing.T, host string, port int, kind, method, path, other string) {
		seen := []Seen{{host, port, HostKind(kind), method, path, 1}, {host, port, HostKind(kind), method, other, 2}}
		covered(t, Propose(seen), seen)
	})
}

// matchPath reports whether a pattern of HostRule.Paths covers path.
func matchPath(pattern, path string) bool {
	below, tree := strings.CutSuffix(pattern, "/**")
	if !tree {
		below = pattern
	}
	patterns, segments := strings.Split(below, "/"), strings.Split(path, "/")
	if len(segments) < len(patterns) || tree == (len(segments) == len(patterns)) {
		return false
	}
	for i, p := range patterns {
		if !matchStars(p, segments[i]) {
			return false
		}
	}
	return true
}
