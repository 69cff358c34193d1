package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Seen is a destination, or a request to it, that a run asked for.
type Seen struct {
	Host   string
	Port   int
	Kind   HostKind // "" for what is usual at the port
	Method string   // "" where requests were not seen
	Path   string   // without the query; "" where requests were not seen
	Count  int      // how often; less than 1 means once
}

// Propose writes the smallest policy whose network.allow covers all that was seen: if
// requests were seen, their methods and paths, with what differs from one run to the
// next left open. The same observations in any order give the same bytes, which Parse
// accepts. What no policy can name is in a comment.
func Propose(all []Seen) []byte {
	places, left := gather(all)
	if out := write(places, left, false); len(out) <= MaxFile/2 && entriesOf(places) <= maxEntries {
		return out
	}
	return write(places, left, true)
}

// seenDestination is a destination with what was asked of it.
type seenDestination struct {
	host     string
	port     int
	kind     HostKind
	count    int
	open     bool // a connection without any seen requests
	requests map[string]map[string]bool
}

// gather sorts observations by their destination.
func gather(all []Seen) (places []*seenDestination, left []string) {
	found := map[string]*seenDestination{}
	for _, s := range all {
		host, err := hostName(s.Host)
		if err == nil && (s.Port < 1 || s.Port > 65535 || loopbackName(host) || IsMetadata(host) || strings.HasPrefix(host, "*")) {
			err = fmt.Errorf("no rule")
		}
		if err != nil {
			left = append(left, fmt.Sprintf("%s, port %d", printable(s.Host), s.Port))
			continue
		}
		kind := s.Kind
		if !slices.Contains(hostKinds, kind) {
			kind = defaultKind(s.Port)
		}
		key := fmt.Sprint(host, " ", s.Port)
		p := found[key]
		if p == nil {
			p = &seenDestination{host: host, port: s.Port, kind: kind, requests: map[string]map[string]bool{}}
			found[key] = p
			places = append(places, p)
		}
		if p.kind != kind { // a port has one kind, and only bytes cover two
			p.kind, p.open = TCP, true
		}
		p.count += max(s.Count, 1)
		path, _, _ := strings.Cut(s.Path, "?")
		method, err := methodName(s.Method)
		if err != nil || method != s.Method || !strings.HasPrefix(path, "/") || kind == TCP {
			p.open = true
			continue
		}
		if p.requests[method] == nil {
			p.requests[method] = map[string]bool{}
		}
		p.requests[method][path] = true
	}
	slices.SortFunc(places, func(a, b *seenDestination) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(b.port, a.port))
	})
	slices.Sort(left)
	return places, slices.Compact(left)
}

// proposal is one entry: methods that are used with the same paths.
type proposal struct{ methods, paths []string }

// proposals are the entries for a place with seen requests. Each method gets only the
// paths that it was seen with.
func (p *seenDestination) proposals() []proposal {
	methods := map[string][]string{} // by path
	for _, method := range slices.Sorted(maps.Keys(p.requests)) {
		for _, path := range generalise(slices.Sorted(maps.Keys(p.requests[method]))) {
			methods[path] = append(methods[path], method)
		}
	}
	var out []proposal
	for _, path := range slices.Sorted(maps.Keys(methods)) {
		at := slices.IndexFunc(out, func(one proposal) bool { return slices.Equal(one.methods, methods[path]) })
		if at < 0 {
			out = append(out, proposal{methods: methods[path]})
			at = len(out) - 1
		}
		out[at].paths = append(out[at].paths, path)
	}
	return out
}

// entriesOf counts the entries that places take.
func entriesOf(places []*seenDestination) (n int) {
	for _, p := range places {
		n += 1
		if !p.open {
			n += len(p.proposals())
		}
	}
	return n
}

// write is the file. coarse leaves out methods and paths, where with them it
// would be too long.
func write(places []*seenDestination, left []string, coarse bool) []byte {
	var b strings.Builder
	b.WriteString("version: 1\n")
	if len(places) == 0 {
		b.WriteString("# no destination was requested\n")
	} else {
		b.WriteString("network:\n  allow:\n")
	}
	for i := 0; i < len(places) && i < maxEntries; i++ {
		p := places[i]
		if !p.open && !coarse {
			p.write(&b)
			continue
		}
		count, text := p.count, p.text()
		if i+1 < len(places) && p.kind == TLS && p.port == 443 {
			if next := places[i+1]; next.host == p.host && next.port == 80 && next.kind == HTTP && (next.open || coarse) {
				count, text = count+next.count, p.host
				i++
			}
		}
		fmt.Fprintf(&b, "    - %s # seen %s\n", scalar(text), times(count))
	}
	if len(places) > maxEntries {
		left = append(left, fmt.Sprintf("destinations beyond the first %d, of %d", maxEntries, len(places)))
	}
	for i, text := range left {
		if i == shownErrors {
			fmt.Fprintf(&b, "# and %d more\n", len(left)-i)
			break
		}
		fmt.Fprintf(&b, "# left out, for no rule can name it: %s\n", strings.ToValidUTF8(text, "?"))
	}
	return []byte(b.String())
}

// text is the place as a destination that is written as text.
func (p *seenDestination) text() string {
	r := HostRule{Host: p.host, Ports: []int{p.port}}
	if p.kind != defaultKind(p.port) {
		r.Kind = p.kind
	}
	return r.String()
}

// write writes the place as mappings with methods and paths.
func (p *seenDestination) write(b *strings.Builder) {
	for i, one := range p.proposals() {
		fmt.Fprintf(b, "    - host: %s", scalar(p.host))
		if i == 0 {
			fmt.Fprintf(b, " # seen %s", times(p.count))
		}
		b.WriteString("\n")
		if p.port != 443 || p.kind != TLS {
			fmt.Fprintf(b, "      ports: [%d]\n", p.port)
		}
		if p.kind != defaultKind(p.port) {
			fmt.Fprintf(b, "      kind: %s\n", p.kind)
		}
		fmt.Fprintf(b, "      methods: [%s]\n      paths:\n", strings.Join(one.methods, ", "))
		for _, path := range one.paths {
			fmt.Fprintf(b, "        - %s\n", scalar(path))
		}
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// scalar is text as YAML reads it as text: unchanged if nothing in it means anything to
// YAML, else in quotes.
func scalar(text string) string {
	const plain = alphanumeric + "./-_:*"
	first := text[0]
	letter := first == '/' || first >= 'a' && first <= 'z'
	if letter && strings.Contains(text, "/") || letter && strings.Contains(text, ".") {
		if strings.Trim(text, plain) == "" && !strings.HasSuffix(text, ":") {
			return text
		}
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
