package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// nameDoorOf gives a configuration a door for names and returns where it is.
func nameDoorOf(t *testing.T, c *Config) string {
	t.Helper()
	l, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c.Doors.DNS, err = l.(*net.UDPConn).File(); err != nil {
		t.Fatal(err)
	}
	return l.LocalAddr().String()
}

func TestANameLeadsFromItsQueryToItsServer(t *testing.T) {
	testenv.NoGoroutines(t)
	var at string
	w := start(t, func(c *Config) { at = nameDoorOf(t, c) }, permits("a.example.org", 22, policy.TCP))
	w.server("a.example.org:22", echo)
	stream := w.door(netip.MustParseAddrPort("192.0.2.53:53")) // whichever server is asked over TCP
	for network, server := range map[string]string{"udp": at, "tcp": stream} {
		client := dns.Client{Net: network, Timeout: patience}
		var q dns.Msg
		q.SetQuestion("A.example.ORG.", dns.TypeA)
		a, _, err := client.Exchange(&q, server)
		if err != nil || len(a.Answer) != 1 {
			t.Fatalf("%s: %v, %v", network, a, err)
		}
		addr, _ := netip.AddrFromSlice(a.Answer[0].(*dns.A).A.To4())
		c := connect(t, w.door(netip.AddrPortFrom(addr, 22)))
		send(t, c, "x")
		expect(t, c, "x")
		q.SetQuestion("b.test.", dns.TypeA)
		if a, _, err = client.Exchange(&q, server); err != nil || a.Rcode != dns.RcodeNameError {
			t.Fatalf("%s: %v, %v", network, a, err)
		}
	}
	if rs := w.Refusals(); len(rs) != 1 || rs[0].Name != "b.test" || rs[0].Port != 0 || rs[0].Flag != "--allow b.test" {
		t.Errorf("%+v", rs)
	}
	w.Close()
}

func TestConnectionsWaitUntilADescriptorIsFree(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}
	w := start(t, nil)
	l := listenLocal(t)
	var conns []*net.TCPConn
	for range 40 {
		conns = append(conns, connect(t, l.Addr().String()))
	}
	settle(t)
	scarce := limit
	scarce.Cur = uint64(highest(t) + 2)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &scarce); err != nil {
		t.Fatal(err)
	}
	defer restore()
	hold, err := os.Open(os.DevNull) // the last that is free below the limit, or there was none
	for err == nil {
		defer hold.Close()
		hold, err = os.Open(os.DevNull)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Fatal(err)
	}
	at := &net.TCPAddr{IP: net.IPv4(93, 184, 216, 9), Port: 22}
	d := listener{inPlace{l, at}, func(ctx context.Context, c net.Conn) { w.intercept(ctx, c, localAddress) }}
	w.listeners = append(w.listeners, d)
	w.wait.Go(func() { w.accept(d) })
	w.refused("connections")
	restore()
	for _, c := range conns {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v, want a reset", err)
		}
	}
}

// settle waits until nothing that earlier tests left is given back any more.
func settle(t *testing.T) {
	t.Helper()
	before, since := 0, time.Now()
	until(t, "the descriptors are those of this test", func() bool {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil || len(open) != before {
			before, since = len(open), time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}

// highest is the largest descriptor of this process.
func highest(t *testing.T) int {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return int(f.Fd())
}

func TestWhatIsLearnedByDoingIsPassedOn(t *testing.T) {
	w := start(t, func(c *Config) { c.Learn = Through })
	w.server("new.example.org:22", echo)
	w.server("web.example.org:80", func(c *net.TCPConn) {
		io.ReadAtLeast(c, make([]byte, 4096), 10)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
	})
	c := connect(t, w.doorTo("new.example.org", 22))
	send(t, c, "x")
	expect(t, c, "x")
	got, err := roundTrip(t, w.doorTo("web.example.org", 80), "GET /p?q HTTP/1.1\r\nHost: web.example.org\r\nConnection: close\r\n\r\n")
	if err != nil || len(got) < 12 || string(got[:12]) != "HTTP/1.1 200" {
		t.Errorf("%q, %v", got, err)
	}
	seen := false
	for _, o := range w.Observations() {
		seen = seen || o == Observation{Name: "web.example.org", Port: 80, Kind: policy.HTTP, Method: "GET", Path: "/p", Count: 1}
	}
	if !seen {
		t.Errorf("observations: %+v", w.Observations())
	}
}

func TestAHalfClosedConnectionIsIdleSooner(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.IdleTime = 6 * time.Second }, permits("a.example.org", 22, policy.TCP))
	over := make(chan struct{})
	defer close(over)
	w.server("a.example.org:22", func(c *net.TCPConn) {
		b := make([]byte, 1)
		for {
			if _, err := c.Read(b); err == io.EOF {
				<-over // says no more, and does not end either
				return
			} else if err != nil {
				return
			}
			c.Write(b)
		}
	})
	door := w.doorTo("a.example.org", 22)
	half, whole := connect(t, door), connect(t, door)
	for _, c := range []*net.TCPConn{half, whole} {
		send(t, c, "x")
		expect(t, c, "x")
	}
	half.CloseWrite()
	if _, err := half.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the half-closed one: %v, want a reset", err)
	}
	send(t, whole, "y")
	expect(t, whole, "y")
}
