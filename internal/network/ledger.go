package network

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// What a ledger keeps at most; a program that asks for names at random can fill
// no more.
const (
	maxRefusals     = 256
	maxObservations = 4096
	maxShown        = 300 // bytes of a name: as much as a DNS name has, and a little
)

// ledger holds what was refused and what was observed, each once.
type ledger struct {
	mu           sync.Mutex
	refusals     counted[refusalKey, Refusal]
	grave        counted[refusalKey, Refusal] // High: has room of its own, so that a flood cannot push it out
	failures     counted[refusalKey, Refusal] // allowed, and did not answer
	observations counted[Observation, Observation]
	refused      int64
}

type refusalKey struct {
	name   string
	port   int
	reason string
}

// counted keeps the first max different things, in order, and how many times
// others came.
type counted[K comparable, V any] struct {
	at    map[K]int
	list  []V
	extra int
}

// note calls again on what is kept under k, or keeps v.
func (c *counted[K, V]) note(k K, v V, max int, again func(*V)) {
	if i, ok := c.at[k]; ok {
		again(&c.list[i])
		return
	}
	if len(c.list) >= max {
		c.extra++
		return
	}
	if c.at == nil {
		c.at = map[K]int{}
	}
	c.at[k] = len(c.list)
	c.list = append(c.list, v)
}

func (l *ledger) refuse(r Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	r.Count = 1
	into := &l.refusals
	if r.High {
		into = &l.grave
	}
	into.note(refusalKey{r.Name, r.Port, r.Reason}, r, maxRefusals, func(old *Refusal) { old.Count++ })
}

func (l *ledger) fail(r Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Count = 1
	l.failures.note(refusalKey{r.Name, r.Port, r.Reason}, r, maxRefusals, func(old *Refusal) { old.Count++ })
}

func (l *ledger) observe(o Observation) {
	o.Name, o.Count = printable(o.Name), 0
	key := o
	o.Count = 1
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observations.note(key, o, maxObservations, func(old *Observation) { old.Count++ })
}

// Refusals returns what was refused, the grave first, else in the order of the
// first time. When there was more than is kept, the last entry has no name and
// counts the rest.
func (e *Engine) Refusals() []Refusal {
	l := e.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append(append([]Refusal{}, l.grave.list...), l.refusals.list...)
	connected := map[string]bool{} // a query for the name alone says nothing more
	for _, r := range all {
		if r.Port != 0 {
			connected[r.Name] = true
		}
	}
	all = slices.DeleteFunc(all, func(r Refusal) bool {
		return r.Port == 0 && !r.High && (connected[r.Name] || connected[serviceOf(r.Name)])
	})
	if n := l.grave.extra + l.refusals.extra; n > 0 {
		all = append(all, Refusal{Reason: "more was refused than is listed", High: l.grave.extra > 0, Count: n})
	}
	return all
}

// Unreachable returns the destinations that were allowed and did not answer, in
// the order of the first time.
func (e *Engine) Unreachable() []Refusal {
	l := e.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Refusal{}, l.failures.list...)
}

// Observations returns the requests that were made, in the order of the first
// time; at most 4096 different ones.
func (e *Engine) Observations() []Observation {
	l := e.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := map[hostPort]bool{} // where requests were seen, the connection alone says nothing more
	for _, o := range l.observations.list {
		if o.Method != "" {
			asked[hostPort{o.Name, o.Port}] = true
		}
	}
	var out []Observation
	for _, o := range l.observations.list {
		if o.Method != "" || !asked[hostPort{o.Name, o.Port}] {
			out = append(out, o)
		}
	}
	return out
}

// flagFor returns the command-line flag that would allow name at port; "" if there is
// none. Port 0 means the name alone.
func flagFor(name string, port int) string {
	addr, err := netip.ParseAddr(name)
	if err != nil {
		if normal, err := Normalize(name); err != nil || normal != name || policy.IsMetadata(name) {
			return ""
		}
		if port == 0 || port == 80 || port == 443 {
			return "--allow " + name
		}
		return fmt.Sprintf("--allow %s:%d", name, port)
	}
	addr = addr.Unmap()
	if (addr == loopback4 || addr == netip.IPv6Loopback()) && port != 0 {
		return fmt.Sprintf("--host-port %d", port)
	}
	if reach, _ := classify(addr); reach != public || port == 0 {
		return "" // never, or by a rule with internal: true only
	}
	return "--allow " + net.JoinHostPort(addr.String(), strconv.Itoa(port))
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1}) // what a host port reaches, with ::1

// synthetic is where the addresses of names come from; none of them is routed anywhere
// (RFC 2544).
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

// printable makes a name from inside fit for a terminal and a log.
func printable(name string) string { return text.Exact(text.Cut(name, maxShown)) }
