package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// testGate is a Gate whose answers a test gives.
type testGate struct {
	about func(event.Attempt) event.Verdict // Unknown asks; nil asks about everything

	asked chan *question
}

// question is what waits for an answer.
type question struct {
	event.Attempt
	input chan event.Ruling
	gone  chan struct{} // closed when no caller waits any more
}

func newTestGate(about func(event.Attempt) event.Verdict) *testGate {
	return &testGate{about: about, asked: make(chan *question, 4096)}
}

func (d *testGate) Judge(a event.Attempt) event.Ruling {
	verdict := event.Unknown
	if d.about != nil {
		verdict = d.about(a)
	}
	switch verdict {
	case event.Allowed:
		return event.Ruling{Verdict: event.Allowed}
	case event.Denied:
		return event.Ruling{Verdict: event.Denied, Rule: "policy.yaml:7", Reason: "it is never done"}
	}
	return event.Ruling{Rule: "policy.yaml:9", Wait: func(ctx context.Context) event.Ruling {
		q := &question{Attempt: a, input: make(chan event.Ruling, 1), gone: make(chan struct{})}
		defer close(q.gone)
		if ctx.Err() == nil {
			d.asked <- q
		}
		select {
		case r := <-q.input:
			return r
		case <-ctx.Done():
			return event.Ruling{Verdict: event.Denied, Reason: "nobody said"}
		}
	}}
}

// next is the next question.
func (d *testGate) next(t testing.TB) *question {
	t.Helper()
	select {
	case q := <-d.asked:
		return q
	case <-time.After(patience):
		t.Fatal("nothing was asked")
		return nil
	}
}

// quiet fails when something is asked.
func (d *testGate) quiet(t testing.TB) {
	t.Helper()
	select {
	case q := <-d.asked:
		t.Errorf("asked about %+v", q.Attempt)
	default:
	}
}

func (q *question) allow() { q.input <- event.Ruling{Verdict: event.Allowed, Granted: true} }
func (q *question) deny()  { q.input <- event.Ruling{Verdict: event.Denied, Reason: "not today"} }

func (q *question) ended(t testing.TB) {
	t.Helper()
	select {
	case <-q.gone:
	case <-time.After(patience):
		t.Errorf("%s is still asked about", q.Host)
	}
}

func withGate(d *testGate, more ...func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Gate = d
		for _, m := range more {
			m(c)
		}
	}
}

// unknowns asks about what no rule names, and nothing else.
func unknowns(a event.Attempt) event.Verdict {
	if a.Kind == event.KindConnect && !a.Known {
		return event.Unknown
	}
	return event.Allowed
}

const newHost = "new.example.org"

// oneAnswer serves HTTP: whatever is asked, once a connection.
func oneAnswer(c *net.TCPConn) {
	io.ReadAtLeast(c, make([]byte, 4096), 10)
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
}

// waysIn are how a client asks for newHost at a port, and what it reads when it gets there.
var waysIn = []struct {
	name       string
	port       int
	door       func(*world) string
	input, get string
	refused    string // what it reads else; "" for a reset
	attempt    event.Attempt
}{
	{
		name: "intercepted", port: 22, door: func(w *world) string { return w.doorTo(newHost, 22) }, input: "x", get: "x",
		attempt: event.Attempt{Host: newHost, Port: 22, Protocol: "tcp"},
	},
	{
		name: "intercepted HTTP", port: 80, door: func(w *world) string { return w.doorTo(newHost, 80) },
		input: "GET /p HTTP/1.1\r\nHost: " + newHost + "\r\nConnection: close\r\n\r\n", get: "HTTP/1.1 200 OK", refused: "HTTP/1.1 403 ",
		attempt: event.Attempt{Host: newHost, Port: 80, Protocol: "http"},
	},
	{
		name: "CONNECT", port: 22, door: func(w *world) string { return w.proxy },
		input: "CONNECT " + newHost + ":22 HTTP/1.1\r\n\r\nx", get: "HTTP/1.1 200 Connection established\r\n\r\nx", refused: "HTTP/1.1 403 ",
		attempt: event.Attempt{Host: newHost, Port: 22, Protocol: "tcp"},
	},
	{
		name: "an absolute target", port: 8080, door: func(w *world) string { return w.proxy },
		input: "GET http://" + newHost + ":8080/p HTTP/1.1\r\nHost: " + newHost + ":8080\r\n\r\n", get: "HTTP/1.1 200 OK", refused: "HTTP/1.1 403 ",
		attempt: event.Attempt{Host: newHost, Port: 8080, Protocol: "http"},
	},
	{
		name: "SOCKS5", port: 22, door: func(w *world) string { return w.proxy },
		input: "\x05\x01\x00\x05\x01\x00\x03\x0f" + newHost + "\x00\x16x", get: "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00x", refused: "\x05\x00\x05\x02",
		attempt: event.Attempt{Host: newHost, Port: 22, Protocol: "tcp"},
	},
}

func TestANewHostIsHeldUntilAHumanAllowsIt(t *testing.T) {
	for _, way := range waysIn {
		t.Run(way.name, func(t *testing.T) {
			testenv.NoGoroutines(t)
			d := newTestGate(unknowns)
			w := start(t, withGate(d))
			defer w.Close()
			serve := echo
			if strings.HasPrefix(way.get, "HTTP/1.1 200 OK") {
				serve = oneAnswer
			}
			w.server(Destination{Name: newHost, Port: way.port}.String(), serve)
			c := connect(t, way.door(w))
			send(t, c, way.input)
			q := d.next(t)
			q.Attempt.Kind = ""
			if q.Host != way.attempt.Host || q.Port != way.attempt.Port || q.Protocol != way.attempt.Protocol || q.Known {
				t.Errorf("asked about %+v", q.Attempt)
			}
			time.Sleep(20 * time.Millisecond)
			for _, e := range w.sink.all() {
				if e.Action == event.NetConnect && e.Verdict == event.Allowed {
					t.Errorf("before the answer: %+v", e)
				}
			}
			q.allow()
			expect(t, c, way.get)
			c.Close()
			if rs := w.Refusals(); len(rs) != 0 {
				t.Errorf("%+v", rs)
			}
			for _, e := range w.sink.all() {
				if e.Action == event.NetConnect && (e.Verdict != event.Allowed || e.Rule != "policy.yaml:9") {
					t.Errorf("recorded as %+v", e)
				}
			}
		})
	}
}

func TestANewHostThatIsDeniedIsAnError(t *testing.T) {
	for _, way := range waysIn {
		for _, asks := range []bool{true, false} {
			d := newTestGate(func(a event.Attempt) event.Verdict {
				if asks {
					return event.Unknown
				}
				return event.Denied
			})
			w := start(t, withGate(d))
			door := way.door(w)
			want := "it is never done (policy.yaml:7)"
			if asks {
				want = "not today (policy.yaml:9)"
				go func() { d.next(t).deny() }()
			}
			got, err := roundTrip(t, door, way.input)
			if way.refused != "" && (err != nil || !strings.HasPrefix(string(got), way.refused)) {
				t.Errorf("%s, asks %v: %q, %v", way.name, asks, got, err)
			}
			if strings.HasPrefix(way.refused, "HTTP") && !strings.Contains(string(got), want+"\n") {
				t.Errorf("%s, asks %v: %q, want %q", way.name, asks, got, want)
			}
			if way.refused == "" && err == nil {
				t.Errorf("%s, asks %v: %q, want a reset", way.name, asks, got)
			}
			w.Close()
			if r := w.refused(newHost); r.Flag != "" || r.Rule == "" {
				t.Errorf("%s: %+v", way.name, r)
			}
			if es := w.sink.all(); len(es) != 1 || es[0].Layer != event.LayerConsent || es[0].Verdict != event.Denied {
				t.Errorf("%s: recorded as %+v", way.name, es)
			}
		}
	}
}

// TestWhereNobodyIsThereAllIsAsBefore compares what a client gets with a rule that asks
// only while a human is present with what it gets without any rule.
func TestWhereNobodyIsThereAllIsAsBefore(t *testing.T) {
	absent := func(c *Config) {
		c.Gate = newTestGate(func(event.Attempt) event.Verdict { return event.Allowed })
		c.Asks = func(event.Kind) bool { return false }
	}
	literal := struct{ input string }{"CONNECT 93.184.216.9:443 HTTP/1.1\r\n\r\n"}
	answers := map[bool][]string{}
	for _, gated := range []bool{false, true} {
		var names string
		w := start(t, func(c *Config) {
			names = nameDoorOf(t, c)
			if gated {
				absent(c)
			}
		}, permits("near.example.org", 443, policy.TLS))
		list := []string{}
		for _, way := range waysIn {
			got, err := roundTrip(t, way.door(w), way.input)
			list = append(list, string(got)+" "+errText(err))
		}
		got, err := roundTrip(t, w.proxy, literal.input)
		list = append(list, string(got)+" "+errText(err))
		for _, name := range []string{newHost, "a.b.test", "_https._tcp.new.example.org"} {
			list = append(list, query(t, names, name, dns.TypeA))
		}
		w.Close()
		for _, r := range w.Refusals() {
			list = append(list, r.Line())
		}
		answers[gated] = list
	}
	if !slices.Equal(answers[false], answers[true]) {
		t.Errorf("without:\n%q\nwith:\n%q", answers[false], answers[true])
	}
}

func errText(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// query asks for a name and returns the answer without its id.
func query(t *testing.T, server, name string, kind uint16) string {
	t.Helper()
	var q dns.Msg
	q.SetQuestion(dns.Fqdn(name), kind)
	q.SetEdns0(1232, false)
	q.Id = 7
	a, _, err := (&dns.Client{Timeout: patience}).Exchange(&q, server)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func TestAnUnknownNameIsAnsweredWhileAHumanCanBeAsked(t *testing.T) {
	d := newTestGate(unknowns)
	var there atomic.Bool
	there.Store(true)
	var names string
	w := start(t, withGate(d, func(c *Config) {
		names = nameDoorOf(t, c)
		c.Asks = func(k event.Kind) bool { return there.Load() && k == event.KindConnect }
	}), permits("a.example.org", 22, policy.TCP))
	for name, want := range map[string]string{
		newHost: "198.1", "localnames": "NXDOMAIN", "_ldap._tcp." + newHost: "NXDOMAIN", "8.8.8.8.in-addr.arpa": "NXDOMAIN",
	} {
		if got := query(t, names, name, dns.TypeA); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := query(t, names, newHost, dns.TypeAAAA); !strings.Contains(got, "NOERROR") || strings.Contains(got, "\tAAAA\t") {
		t.Errorf("AAAA: %s", got)
	}
	there.Store(false)
	if got := query(t, names, "other.example.org", dns.TypeA); !strings.Contains(got, "NXDOMAIN") {
		t.Errorf("with nobody there: %s", got)
	}
	d.quiet(t) // a name query alone asks no question
	for _, e := range w.sink.all() {
		if e.Object == newHost && (e.Verdict != event.Allowed || e.Detail["reason"] == "") {
			t.Errorf("%+v", e)
		}
	}
}

// TestAFloodOfNamesHasItsBounds asks for names at random while a human can be asked.
func TestAFloodOfNamesHasItsBounds(t *testing.T) {
	var names string
	w := start(t, withGate(newTestGate(unknowns), func(c *Config) {
		names = nameDoorOf(t, c)
		c.Limits.Queries = 1 << 20
	}), permits("*.wild.example.org", 22, policy.TCP))
	answered := 0
	for i := range 500 {
		name := "n" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".exfil.example"
		if strings.Contains(query(t, names, name, dns.TypeA), "NOERROR") {
			answered++
		}
	}
	if limit := w.limits.NamesMinute; answered > limit+2 || answered < limit {
		t.Errorf("%d names were answered, %d a minute are the most", answered, limit)
	}
	if got := query(t, names, strings.Repeat("a", 50)+".example", dns.TypeA); !strings.Contains(got, "NXDOMAIN") {
		t.Errorf("a long label: %s", got)
	}
	if got := query(t, names, "x.wild.example.org", dns.TypeA); !strings.Contains(got, "NOERROR") {
		t.Errorf("what a rule allows: %s", got)
	}
	m := NewNameMap()
	for i := range mapAsked + 1 {
		_, err := m.Address(strings.Repeat("a", i%60+1)+"."+string(rune('a'+i/60%26))+".test", askedName)
		if i < mapAsked && err != nil || i == mapAsked && !errors.Is(err, errMapFull) {
			t.Fatalf("name %d: %v", i, err)
		}
	}
	if _, err := m.Address("wild.test", wildName); err != nil {
		t.Errorf("below a wildcard after that: %v", err)
	}
}

func TestAnAddressThatNoRuleNamesIsAskedAboutWhenItIsPublic(t *testing.T) {
	d := newTestGate(unknowns)
	w := start(t, withGate(d))
	w.server("93.184.216.9:22", echo)
	for _, a := range []string{"10.0.0.1", "169.254.169.254", "127.0.0.1", "100.100.100.200", "198.18.3.4", "[::1]", "[fd00:ec2::254]", "[2002:7f00:1::]"} {
		if got, _ := roundTrip(t, w.proxy, "CONNECT "+a+":22 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(string(got), "HTTP/1.1 403 ") {
			t.Errorf("%s: %q", a, got)
		}
		d.quiet(t)
	}
	c := connect(t, w.door(netip.MustParseAddrPort("93.184.216.9:22")))
	send(t, c, "x")
	if q := d.next(t); q.Host != "93.184.216.9" || q.Known {
		t.Errorf("%+v", q.Attempt)
	} else {
		q.allow()
	}
	expect(t, c, "x")
}
