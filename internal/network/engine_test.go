package network

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestServerThatSpeaksFirstIsHeardThroughAnInterceptedConnection(t *testing.T) {
	testenv.NoGoroutines(t)
	w := start(t, nil, permits("ssh.example.org", 22, policy.TCP))
	w.server("ssh.example.org:22", func(c *net.TCPConn) { io.WriteString(c, "SSH-2.0-x\r\n"); echo(c) })
	c := connect(t, w.doorTo("ssh.example.org", 22))
	expect(t, c, "SSH-2.0-x\r\n")
	send(t, c, "hello")
	expect(t, c, "hello")
	c.CloseWrite()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	until(t, "net.close", func() bool { return len(w.sink.all()) == 2 })
	ev := w.sink.all()
	if ev[0].Action != "net.connect" || ev[0].Verdict != event.Allowed || ev[0].Rule != "holdfast.yaml:22" || ev[0].Object != "ssh.example.org:22" || ev[0].Session != "test" {
		t.Errorf("first event: %+v", ev[0])
	}
	if d := ev[1].Detail; ev[1].Action != "net.close" || d["in"] != "16" || d["out"] != "5" || d["ms"] == "" || d["reason"] != "" {
		t.Errorf("last event: %+v", ev[1])
	}
	w.Close()
	if st := w.Stats(); st.Open != 0 || st.Opened != 1 || st.In != 16 || st.Out != 5 {
		t.Errorf("stats: %+v", st)
	}
}

func TestWhatIsNotPermittedIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		to     string // an address or a name with port
		send   string
		answer string // what the answer holds; "" for a reset
		reason string
		flag   string
	}{
		{"HTTP to an unmapped address gets a line", "93.184.216.9:80", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "403 holdfast refused 93.184.216.9:80: no name maps", "no name maps to that address", "--allow 93.184.216.9:80"},
		{"other bytes to an unmapped address are reset", "93.184.216.9:25", "EHLO", "", "no name maps to that address", "--allow 93.184.216.9:25"},
		{"a silent client is reset", "93.184.216.9:22", "", "", "no name maps to that address", "--allow 93.184.216.9:22"},
		{"the pool of synthetic addresses leads nowhere by itself", "198.18.255.1:443", "\x16\x03\x01", "", "no name maps to that address", ""},
		{"loopback leads nowhere", "127.0.0.1:5432", "x", "", "services of the host's loopback are reached through host ports", "--host-port 5432"},
		{"another address of loopback has no host port", "127.77.0.1:15001", "x", "", "services of the host's loopback are reached through host ports", ""},
		{"loopback of IPv6 leads nowhere", "[::1]:5432", "x", "", "services of the host's loopback are reached through host ports", "--host-port 5432"},
		{"IPv4 loopback inside IPv6 leads nowhere", "[::ffff:127.0.0.1]:80", "GET / HTTP/1.0\r\n\r\n", "403", "services of the host's loopback are reached through host ports", "--host-port 80"},
		{"the unspecified address leads nowhere", "0.0.0.0:80", "", "", "services of the host's loopback are reached through host ports", ""},
		{"the metadata service leads nowhere and no flag helps", "169.254.169.254:80", "GET /latest HTTP/1.1\r\n\r\n", "403", "no name maps to that address, the metadata service of most clouds", ""},
		{"a private address needs a rule that says so", "10.1.2.3:80", "GET / HTTP/1.1\r\n\r\n", "internal: true", "no name maps to that address, a private address (RFC 1918); a rule that names it needs internal: true", ""},
		{"addresses for documentation are not offered", "[2001:db8::1]:443", "\x16\x03", "", "no name maps to that address, an address for documentation (RFC 3849); a rule that names it needs internal: true", ""},
		{"another port of a known name says which are allowed", "known.example.org:81", "GET / HTTP/1.1\r\n\r\n", "--allow known.example.org:81", "port 81 is not allowed, only 80", "--allow known.example.org:81"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // silent clients are waited for
			w := start(t, nil, permits("known.example.org", 80, policy.HTTP))
			var door string
			if at, err := netip.ParseAddrPort(tt.to); err == nil {
				door = w.door(at)
			} else {
				door = w.doorTo("known.example.org", 81)
			}
			got, err := roundTrip(t, door, tt.send)
			switch {
			case tt.answer == "" && !errors.Is(err, syscall.ECONNRESET):
				t.Errorf("read %q, %v; want a reset", got, err)
			case tt.answer != "" && (err != nil || !strings.Contains(string(got), tt.answer)):
				t.Errorf("read %q, %v; want %q", got, err, tt.answer)
			}
			rs := w.Refusals()
			if len(rs) != 1 || rs[0].Reason != tt.reason || rs[0].Flag != tt.flag || rs[0].High {
				t.Errorf("refusals: %+v", rs)
			}
			if ev := w.sink.all(); len(ev) != 1 || ev[0].Verdict != event.Denied || ev[0].Detail["reason"] != tt.reason {
				t.Errorf("events: %+v", ev)
			}
		})
	}
}

func TestAnAddressThatThePolicyNamesIsReached(t *testing.T) {
	w := start(t, nil, permits("203.0.113.9", 9000, policy.TCP))
	w.server("203.0.113.9:9000", echo)
	c := connect(t, w.door(netip.MustParseAddrPort("203.0.113.9:9000")))
	send(t, c, "ping")
	expect(t, c, "ping")
}

func TestNothingIsDialledWhenTheRecordIsLost(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 22, policy.TCP))
	w.sink.err = errors.New("disk full")
	w.out.do["a.example.org:22"] = func() (net.Conn, error) { t.Error("dialled"); return nil, errors.New("no") }
	wantReset(t, w.doorTo("a.example.org", 22))
}

func TestReloadEndsWhatIsNoLongerPermitted(t *testing.T) {
	keep, drop := permits("keep.example.org", 22, policy.TCP), permits("drop.example.org", 22, policy.TCP)
	w := start(t, nil, keep, drop)
	w.server("keep.example.org:22", echo)
	w.server("drop.example.org:22", echo)
	kept, dropped := connect(t, w.doorTo("keep.example.org", 22)), connect(t, w.doorTo("drop.example.org", 22))
	for _, c := range []net.Conn{kept, dropped} {
		send(t, c, "x")
		expect(t, c, "x")
	}
	if err := w.Reload([]policy.HostRule{{Host: "Not Normal"}}); err == nil {
		t.Fatal("a rule that is not in normal form was taken")
	}
	for _, c := range []net.Conn{kept, dropped} {
		send(t, c, "y")
		expect(t, c, "y")
	}
	if err := w.Reload([]policy.HostRule{keep}); err != nil {
		t.Fatal(err)
	}
	if _, err := dropped.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the dropped one: %v, want a reset", err)
	}
	send(t, kept, "z")
	expect(t, kept, "z")
	if r := w.refused("drop.example.org"); !strings.Contains(r.Reason, "is gone") {
		t.Errorf("%+v", r)
	}
	wantReset(t, w.doorTo("drop.example.org", 22))
}

func TestAHostPortReachesTheServiceOfItsNumberOnly(t *testing.T) {
	service := listenLocal(t)
	go func() {
		for {
			c, err := service.AcceptTCP()
			if err != nil {
				return
			}
			go func() { defer c.Close(); echo(c) }()
		}
	}()
	door := listenLocal(t)
	port := service.Addr().(*net.TCPAddr).Port
	at := door.Addr().String()
	w := start(t, func(c *Config) { c.Doors.HostPorts = map[int]*os.File{port: fileOf(t, door)} })
	c := connect(t, at)
	send(t, c, "select")
	expect(t, c, "select")
	if ev := w.sink.all(); len(ev) != 1 || ev[0].Detail["door"] != "host-port" || ev[0].Verdict != event.Allowed {
		t.Errorf("events: %+v", ev)
	}
	service.Close()
	wantReset(t, at)
}

func TestUpstreamThatFailsResetsTheClient(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 22, policy.TCP))
	wantReset(t, w.doorTo("a.example.org", 22))
	until(t, "net.close", func() bool { return len(w.sink.all()) == 2 })
	if ev := w.sink.all()[1]; ev.Detail["reason"] != "nothing is there" {
		t.Errorf("%+v", ev)
	}
	if rs := w.Refusals(); len(rs) != 0 {
		t.Errorf("a failure was recorded as a refusal: %+v", rs)
	}
}

func TestAnAddressThatTheDialerRefusesIsARefusal(t *testing.T) {
	for _, never := range []bool{false, true} {
		w := start(t, nil, permits("a.example.org", 22, policy.TCP))
		w.out.do["a.example.org:22"] = func() (net.Conn, error) {
			return nil, &AddressError{Name: "a.example.org", Address: netip.MustParseAddr("10.0.0.1"), Class: "private", Never: never}
		}
		wantReset(t, w.doorTo("a.example.org", 22))
		if r := w.refused("a.example.org"); r.High != never || r.Flag != "" || r.Rule != "holdfast.yaml:22" {
			t.Errorf("%+v", r)
		}
	}
}

func TestNewClosesTheDoorsWhenItFails(t *testing.T) {
	f := fileOf(t, listenLocal(t))
	_, err := New(Config{Doors: boundary.Doors{Proxy: f}, Allow: []policy.HostRule{{Host: "Not Normal"}}})
	if err == nil {
		t.Fatal("rules that are not in normal form were taken")
	}
	if f.Close() == nil {
		t.Error("the door was left open")
	}
}

func TestWhatIsLearnedByLookingLeavesNothing(t *testing.T) {
	w := start(t, func(c *Config) { c.Learn = Observe })
	w.out.do["new.example.org:22"] = func() (net.Conn, error) { t.Error("dialled"); return nil, errors.New("no") }
	wantReset(t, w.doorTo("new.example.org", 22))
	if got := w.Observations(); len(got) != 1 || got[0] != (Observation{Name: "new.example.org", Port: 22, Kind: policy.TCP, Count: 1}) {
		t.Errorf("observations: %+v", got)
	}
}
