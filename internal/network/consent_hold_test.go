package network

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// pathsUnder asks about requests whose path begins with prefix.
func pathsUnder(prefix string) func(event.Attempt) event.Verdict {
	return func(a event.Attempt) event.Verdict {
		if a.Kind == event.KindRequest && strings.HasPrefix(a.URLPath, prefix) {
			return event.Unknown
		}
		return event.Allowed
	}
}

func TestWhatIsHeldIsBounded(t *testing.T) {
	testenv.NoGoroutines(t)
	d := newTestGate(unknowns)
	w := start(t, withGate(d, func(c *Config) { c.Limits.Connections, c.Limits.Held = 64, 8 }), permits("a.example.org", 22, policy.TCP))
	defer w.Close()
	w.server("a.example.org:22", echo)
	door := w.doorTo(newHost, 22)
	var refusals atomic.Int32
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			c, err := net.Dial("tcp", door)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			io.WriteString(c, "x")
			if _, err := c.Read(make([]byte, 1)); err != nil {
				refusals.Add(1)
			}
		})
	}
	var held []*question
	for range 8 {
		held = append(held, d.next(t))
	}
	until(t, "all others are refused", func() bool { return refusals.Load() == 200-8 })
	d.quiet(t)
	c := connect(t, w.doorTo("a.example.org", 22)) // what is allowed has its places
	send(t, c, "y")
	expect(t, c, "y")
	for _, q := range held {
		q.deny()
	}
	all.Wait()
	c.Close()
}

func TestNoDeadlineEndsWhatIsHeld(t *testing.T) {
	// Long enough for a handshake on a busy machine, and for less than what waits.
	short := func(c *Config) { c.Limits.HeadTime, c.Limits.IdleTime = time.Second, 1500*time.Millisecond }
	const held = 4 * time.Second
	t.Run("a connection", func(t *testing.T) {
		t.Parallel()
		d := newTestGate(func(a event.Attempt) event.Verdict { return event.Unknown })
		w := start(t, withGate(d, short))
		w.server(newHost+":22", echo)
		c := connect(t, w.doorTo(newHost, 22))
		q := d.next(t)
		time.Sleep(held)
		q.allow()
		send(t, c, "x")
		expect(t, c, "x")
	})
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			d := newTestGate(pathsUnder("/"))
			way.config = withGate(d, short)
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), way.shopConfig)
			got := make(chan string, 1)
			go func() {
				_, body := s.ask("POST", "/held", strings.NewReader("the body"))
				got <- body
			}()
			q := d.next(t)
			if q.Method != "POST" || q.URLPath != "/held" || q.Host != apiName || !q.Known {
				t.Errorf("asked about %+v", q.Attempt)
			}
			time.Sleep(held)
			q.allow()
			if body := <-got; body != "the body" {
				t.Errorf("the answer is %q", body)
			}
		})
	}
}

func TestARequestThatIsDeniedAndOthersGoOn(t *testing.T) {
	everyHeld(t, func(t *testing.T, s *shop, d *testGate) {
		status := make(chan string, 1)
		go func() {
			resp, body := s.ask("DELETE", "/held", nil)
			status <- resp.Status + " " + body
		}()
		q := d.next(t)
		for range 3 {
			if resp, body := s.ask("GET", "/free", nil); resp.StatusCode != 200 || body != "/free" {
				t.Errorf("another request: %s %q", resp.Status, body)
			}
		}
		q.deny()
		if got := <-status; !strings.HasPrefix(got, "403 Forbidden holdfast refused") || !strings.Contains(got, "not today (policy.yaml:9)") {
			t.Errorf("denied: %q", got)
		}
		var recorded []event.Event
		for _, e := range s.sink.all() {
			if e.Action == event.NetRequest && e.Verdict == event.Denied {
				recorded = append(recorded, e)
			}
		}
		if len(recorded) != 1 || recorded[0].Layer != event.LayerConsent || recorded[0].Detail["path"] != "/held" {
			t.Errorf("recorded as %+v", recorded)
		}
	})
}

// everyHeld runs a test over each way in which requests are seen; what is below
// /held is asked about.
func everyHeld(t *testing.T, test func(t *testing.T, s *shop, d *testGate)) {
	t.Helper()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			d := newTestGate(pathsUnder("/held"))
			way.config = withGate(d)
			test(t, newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }), way.shopConfig), d)
		})
	}
}

func TestAClientThatGoesEndsTheQuestion(t *testing.T) {
	testenv.NoGoroutines(t)
	d := newTestGate(nil)
	w := start(t, withGate(d))
	defer w.Close()
	for _, way := range waysIn {
		c := connect(t, way.door(w))
		send(t, c, way.input)
		q := d.next(t)
		c.Close()
		q.ended(t)
	}
	everyHeld(t, func(t *testing.T, s *shop, d *testGate) {
		for _, body := range []int{0, 16 << 10} { // none of it is read
			ctx, leave := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "POST", s.url("/held"), io.LimitReader(zeros{}, int64(body)))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := s.client.Do(r); err == nil {
					resp.Body.Close()
				}
			}()
			q := d.next(t)
			leave()
			q.ended(t)
			<-done
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestTheEndOfTheRunEndsWhatIsHeld(t *testing.T) {
	d := newTestGate(nil)
	w := start(t, withGate(d))
	for _, way := range waysIn {
		c := connect(t, way.door(w))
		send(t, c, way.input)
		d.next(t)
	}
	overSoon(t, w)
	everyHeld(t, func(t *testing.T, s *shop, d *testGate) {
		go func() {
			if resp, err := s.client.Post(s.url("/held"), "", strings.NewReader("x")); err == nil {
				resp.Body.Close()
			}
		}()
		d.next(t)
		overSoon(t, s.world)
	})
}

func overSoon(t *testing.T, w *world) {
	t.Helper()
	over := make(chan struct{})
	go func() { w.Close(); close(over) }()
	select {
	case <-over:
	case <-time.After(patience):
		t.Fatal("the engine does not end")
	}
}

// TestAnAnswerIsForOneNameAndPort allows one destination, and tries others by what
// was allowed: two names lead to one server.
func TestAnAnswerIsForOneNameAndPort(t *testing.T) {
	d := newTestGate(unknowns)
	w := start(t, withGate(d))
	for _, at := range []string{newHost + ":443", newHost + ":80", "other.example.org:443"} {
		w.server(at, oneAnswer)
	}
	go func() {
		for q := range d.asked {
			if q.Host == newHost && (q.Port == 443 || q.Port == 80) {
				q.allow()
			} else {
				q.deny()
			}
		}
	}()
	defer func() { w.Close(); close(d.asked) }()
	for _, at := range []string{"other.example.org:443", newHost + ":8443", "sub." + newHost + ":443", "93.184.216.9:443"} {
		if got, _ := roundTrip(t, w.proxy, "CONNECT "+at+" HTTP/1.1\r\n\r\n"); !strings.HasPrefix(string(got), "HTTP/1.1 403 ") {
			t.Errorf("%s: %q", at, got)
		}
	}
	// The connection is made, and then the client says another name.
	for _, name := range []string{"other.example.org", "sub." + newHost, ""} {
		c := connect(t, w.doorTo(newHost, 443))
		err := tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		if err == nil {
			t.Errorf("a handshake for %q", name)
		}
		c.Close()
	}
	c := connect(t, w.doorTo(newHost, 443))
	if err := tls.Client(c, &tls.Config{ServerName: newHost}).Handshake(); !strings.Contains(errText(err), "first record does not look like a TLS handshake") {
		t.Errorf("for the name itself: %v; the server answers in the clear", err)
	}
	for _, input := range []string{
		"GET / HTTP/1.1\r\nHost: other.example.org\r\n\r\n",
		"GET http://other.example.org/ HTTP/1.1\r\nHost: " + newHost + "\r\n\r\n",
	} {
		if got, _ := roundTrip(t, w.doorTo(newHost, 80), input); !strings.HasPrefix(string(got), "HTTP/1.1 4") {
			t.Errorf("%q: %q", input, got)
		}
	}
	if got, _ := roundTrip(t, w.proxy, "GET http://"+newHost+"/ HTTP/1.1\r\nHost: "+newHost+"\r\n\r\nGET http://other.example.org/ HTTP/1.1\r\nHost: other.example.org\r\n\r\n"); strings.Count(string(got), "200 OK") != 1 {
		t.Errorf("a second request to another host: %q", got)
	}
}

// TestWhatIsAllowedByAHumanLeadsToPublicAddressesAlone has the real dialler.
func TestWhatIsAllowedByAHumanLeadsToPublicAddressesAlone(t *testing.T) {
	d := newTestGate(unknowns)
	var at netip.Addr
	w := start(t, withGate(d))
	limits := Limits{}.withDefaults()
	w.dial = newDialer(func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{at}, nil }, newNameGuard(limits), limits)
	for _, a := range []string{"10.0.0.1", "169.254.169.254", "127.0.0.1", "100.100.100.200", "::1", "fd00:ec2::254", "::ffff:10.0.0.1"} {
		at = netip.MustParseAddr(a)
		go func() { d.next(t).allow() }()
		got, _ := roundTrip(t, w.proxy, "CONNECT "+newHost+":22 HTTP/1.1\r\n\r\n")
		if !strings.HasPrefix(string(got), "HTTP/1.1 403 ") {
			t.Errorf("%s: %q", a, got)
		}
	}
}

func TestRulesThatChangeWhileItIsHeldAskAnew(t *testing.T) {
	d := newTestGate(func(a event.Attempt) event.Verdict {
		if a.Kind == event.KindConnect {
			return event.Unknown
		}
		return event.Allowed
	})
	rule := permits("a.example.org", 22, policy.TCP)
	w := start(t, withGate(d), rule)
	w.server("a.example.org:22", echo)
	c := connect(t, w.doorTo("a.example.org", 22))
	q := d.next(t)
	if err := w.Reload(nil); err != nil {
		t.Fatal(err)
	}
	q.allow() // of what a rule allowed
	if q = d.next(t); q.Known {
		t.Errorf("asked anew about %+v", q.Attempt)
	}
	if err := w.Reload([]policy.HostRule{rule}); err != nil {
		t.Fatal(err)
	}
	q.allow()
	if q = d.next(t); !q.Known {
		t.Errorf("asked a third time about %+v", q.Attempt)
	}
	q.allow()
	send(t, c, "x")
	expect(t, c, "x")

	everyHeld(t, func(t *testing.T, s *shop, d *testGate) {
		got := make(chan int, 1)
		go func() {
			resp, _ := s.ask("GET", "/held", nil)
			got <- resp.StatusCode
		}()
		q := d.next(t)
		stays := *s.rules.Load().exact[apiName][0]
		stays.HostRule.Methods = []string{"POST"}
		if err := s.Reload([]policy.HostRule{stays.HostRule}); err != nil {
			t.Fatal(err)
		}
		q.allow()
		if status := <-got; status != 403 && status != 0 {
			t.Errorf("a request that no rule permits any more: %d", status)
		}
	})
}
