package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// opened counts the descriptors of this process.
func opened(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// inTime fails a test that holds for longer than its bound, which no machine
// comes near that is only busy.
func inTime(t *testing.T) {
	begun := time.Now()
	t.Cleanup(func() {
		if took := time.Since(begun); took > 150*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestAThousandIdleConnectionsHoldLittle(t *testing.T) {
	inTime(t)
	testenv.NoGoroutines(t)
	const many = 1000
	w := start(t, nil, permits("a.example.org", 22, policy.TCP))
	w.server("a.example.org:22", func(c *net.TCPConn) {
		b := make([]byte, 1)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			c.Write(b)
		}
	})
	door := w.doorTo("a.example.org", 22)
	fds, before := opened(t), heap()
	conns := make([]*net.TCPConn, many)
	for i := range conns {
		conns[i] = connect(t, door)
		send(t, conns[i], "x")
		expect(t, conns[i], "x")
	}
	// Client and server are in this process too: a descriptor each, and a
	// goroutine for the server.
	if n := opened(t) - fds; n > 4*many+16 {
		t.Errorf("%d descriptors for %d connections, of which half are the engine's", n, many)
	}
	if held := (heap() - before) / many; held > 45<<10 {
		t.Errorf("%d bytes a connection", held)
	} else {
		t.Logf("%d bytes a connection, with the test's own", held)
	}
	if n := w.relayPool.large.Load(); n != 0 {
		t.Errorf("%d large buffers are in use", n)
	}
	for _, c := range conns {
		c.Close()
	}
	until(t, "no connection open", func() bool { return w.Stats().Open == 0 })
	until(t, "descriptors closed", func() bool { return opened(t) <= fds+16 })
}

func TestTenThousandShortConnectionsLeaveNothing(t *testing.T) {
	inTime(t)
	w := start(t, nil, permits("a.example.org", 22, policy.TCP))
	w.sink.err = nil
	w.config.Sink = nil
	w.server("a.example.org:22", func(c *net.TCPConn) { io.WriteString(c, "hello") })
	door := w.doorTo("a.example.org", 22)
	round := func(n int) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range n / 8 {
					if got, err := roundTrip(t, door, ""); err != nil || string(got) != "hello" {
						t.Errorf("%q, %v", got, err)
						return
					}
				}
			})
		}
		wg.Wait()
		until(t, "no connection open", func() bool { return w.Stats().Open == 0 })
	}
	round(800)
	fds, goroutines, before := opened(t), runtime.NumGoroutine(), heap()
	round(10_000)
	until(t, "descriptors closed", func() bool { return opened(t) <= fds+8 })
	until(t, "goroutines ended", func() bool { return runtime.NumGoroutine() <= goroutines+8 })
	if after := heap(); after > before+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}

func TestMoreConnectionsThanAreAllowedAreRefused(t *testing.T) {
	inTime(t)
	w := start(t, func(c *Config) { c.Limits.Connections = 3 }, permits("a.example.org", 22, policy.TCP))
	w.server("a.example.org:22", echo)
	door := w.doorTo("a.example.org", 22)
	var held []*net.TCPConn
	for range 3 {
		c := connect(t, door)
		send(t, c, "x")
		expect(t, c, "x")
		held = append(held, c)
	}
	for range 5 {
		wantReset(t, door)
	}
	if rs := w.Refusals(); len(rs) != 1 || rs[0].Reason != "too many connections are open" || rs[0].Count != 5 {
		t.Errorf("%+v", rs)
	}
	held[0].Close()
	until(t, "a free place", func() bool { return w.Stats().Open == 2 })
	c := connect(t, door)
	send(t, c, "y")
	expect(t, c, "y")
}

func TestClientsThatDisappearLeaveNothing(t *testing.T) {
	inTime(t)
	testenv.NoGoroutines(t)
	w := start(t, nil, permits("a.example.org", 22, policy.TCP), permits("b.example.org", 22, policy.TCP))
	w.server("a.example.org:22", func(c *net.TCPConn) { io.Copy(c, endless{}) })
	release := make(chan struct{})
	w.out.do["b.example.org:22"] = func() (net.Conn, error) { <-release; return nil, errors.New("late") }
	fds := opened(t)
	a, b := w.doorTo("a.example.org", 22), w.doorTo("b.example.org", 22)
	for _, tt := range []struct{ at, input string }{
		{a, ""}, {b, ""}, {w.proxy, ""}, {w.proxy, "CONNECT a.exam"}, {w.proxy, "CONNECT a.example.org:22 HTTP/1.1\r\n\r\n"},
		{w.proxy, "\x05"}, {w.proxy, "\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x00\x16"}, {w.proxy, "CONNECT b.example.org:22 HTTP/1.1\r\n\r\n"},
		{w.proxy, "CONNECT c.example.org:22 HTTP/1.1\r\n\r\n"},
	} {
		for range 20 {
			c := connect(t, tt.at)
			send(t, c, tt.input)
			c.SetLinger(0)
			c.Close()
		}
	}
	close(release)
	until(t, "no connection open", func() bool { return w.Stats().Open == 0 })
	until(t, "descriptors closed", func() bool { return opened(t) <= fds+16 })
}

func TestAnUpstreamThatHangsIsGivenUp(t *testing.T) {
	inTime(t)
	w := start(t, func(c *Config) { c.Limits.DialTime = 200 * time.Millisecond }, permits("a.example.org", 22, policy.TCP))
	w.dial = newDialer(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, newNameGuard(w.limits), w.limits)
	wantReset(t, w.doorTo("a.example.org", 22))
	got, _ := roundTrip(t, w.proxy, "CONNECT a.example.org:22 HTTP/1.1\r\n\r\n")
	if !strings.HasPrefix(string(got), "HTTP/1.1 502 ") {
		t.Errorf("%q", got)
	}
}

func TestCloseEndsWhateverIsGoingOn(t *testing.T) {
	inTime(t)
	testenv.NoGoroutines(t)
	w := start(t, nil, permits("a.example.org", 22, policy.TCP), permits("b.example.org", 22, policy.TCP), permits("c.example.org", 80, policy.HTTP), permits("d.example.org", 443, policy.TLS))
	w.server("a.example.org:22", func(c *net.TCPConn) { io.Copy(c, endless{}) })
	a := w.doorTo("a.example.org", 22)
	w.server("b.example.org:22", echo)
	b := w.doorTo("b.example.org", 22)
	var conns []*net.TCPConn
	for _, tt := range []struct{ at, input string }{
		{a, ""}, {b, "x"}, {w.proxy, ""}, {w.proxy, "CONN"}, {w.proxy, "\x05\x01"}, {w.proxy, "CONNECT a.example.org:22 HTTP/1.1\r\n\r\n"},
		{w.doorTo("c.example.org", 80), "GET /"}, {w.doorTo("d.example.org", 443), "\x16\x03\x01"}, {w.door(netip.MustParseAddrPort("203.0.113.1:80")), ""},
		{w.door(netip.MustParseAddrPort("203.0.113.1:53")), "\x00"},
	} {
		for range 10 {
			c := connect(t, tt.at)
			send(t, c, tt.input)
			conns = append(conns, c)
		}
	}
	half := connect(t, b)
	half.CloseWrite()
	until(t, "connections", func() bool { return w.Stats().Opened >= 90 })
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- w.Close() }()
	}
	for range 2 {
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("Close does not return")
		}
	}
	for _, c := range conns {
		c.Close()
	}
}

// hungry is a listener that has no descriptors free a few times.
type hungry struct {
	net.Listener
	mu    sync.Mutex
	times int
	asked int
}

func (f *hungry) Accept() (net.Conn, error) {
	f.mu.Lock()
	f.asked++
	left := f.times
	f.times--
	f.mu.Unlock()
	if left > 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}[left%3])}
	}
	return f.Listener.Accept()
}

func TestAcceptThatFailsIsTriedAgain(t *testing.T) {
	inTime(t)
	l := &hungry{Listener: listenLocal(t), times: 5}
	at := l.Addr().String()
	w := start(t, func(c *Config) { c.Listeners = []net.Listener{l} })
	wantReset(t, at) // its address is loopback
	w.refused("127.0.0.1")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked > 10 {
		t.Errorf("accept was called %d times", l.asked)
	}
}

func TestALedgerIsBounded(t *testing.T) {
	w := start(t, func(c *Config) { c.Learn = Observe })
	for range 3 {
		for i := range 1000 {
			w.refuse(Destination{Name: fmt.Sprintf("h%d.test", i), Port: 443}, "no")
			w.refuse(Destination{Name: fmt.Sprintf("h%d.test", i), Port: 443}, "smuggling", highSeverity)
			w.observe(Observation{Name: "a", Port: i})
		}
	}
	rs := w.Refusals()
	if len(rs) != 2*maxRefusals+1 || !rs[0].High || rs[0].Count != 3 || rs[0].Flag != "" || rs[maxRefusals].Flag != "--allow h0.test" {
		t.Errorf("%d refusals, first %+v, then %+v", len(rs), rs[0], rs[maxRefusals])
	}
	if last := rs[len(rs)-1]; last.Name != "" || last.Count != 6000-6*maxRefusals || !last.High {
		t.Errorf("last: %+v", last)
	}
	if got := w.Observations(); len(got) != 1000 || got[0].Count != 3 {
		t.Errorf("%d observations", len(got))
	}
}

func TestWhatAUserIsToldFitsATerminal(t *testing.T) {
	w := start(t, nil)
	for in, want := range map[string]string{
		"example.org":            "example.org",
		"\x1b[31mred":            `\x1b[31mred`,
		"a\nb":                   `a\nb`,
		"\u202eevil":             `\u202eevil`,
		"b\xff":                  `b\xff`,
		strings.Repeat("a", 999): strings.Repeat("a", maxShown) + `\u2026`,
	} {
		if r := w.refuse(Destination{Name: in, Port: 1}, "no", unflagged); r.Name != want && r.Name != strings.ReplaceAll(want, `\u2026`, "…") {
			t.Errorf("%q is shown as %q, want %q", in, r.Name, want)
		}
	}
}
