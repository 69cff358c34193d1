package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const patience = 20 * time.Second // for what happens at once on a machine that is not busy

// outside simulates the world: names and the loopback servers behind them.
type outside struct {
	mu sync.Mutex
	at map[string]string                   // "name:port" to an address
	do map[string]func() (net.Conn, error) // where there is no server
}

func (o *outside) Dial(ctx context.Context, d Destination, _ Permit) (net.Conn, error) {
	o.mu.Lock()
	addr, do := o.at[d.String()], o.do[d.String()]
	o.mu.Unlock()
	if do != nil {
		return do()
	}
	if addr == "" {
		return nil, errors.New("nothing is there")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// records is a sink that keeps events, or fails.
type records struct {
	mu   sync.Mutex
	list []event.Event
	err  error
}

func (r *records) Emit(ev event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.list = append(r.list, ev)
	return nil
}

func (r *records) all() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]event.Event{}, r.list...)
}

// world is an engine with a fake outside.
type world struct {
	*Engine
	t     testing.TB
	out   *outside
	sink  *records
	proxy string // address of the proxy door
}

func permits(host string, port int, kind policy.HostKind) policy.HostRule {
	return policy.HostRule{Host: host, Ports: []int{port}, Kind: kind, Origin: policy.Origin{File: "holdfast.yaml", Line: port}}
}

func listenLocal(t testing.TB) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func fileOf(t testing.TB, l *net.TCPListener) *os.File {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return f
}

// start makes an engine with a proxy door; change may add to its configuration.
func start(t testing.TB, change func(*Config), rules ...policy.HostRule) *world {
	t.Helper()
	w := &world{t: t, out: &outside{at: map[string]string{}, do: map[string]func() (net.Conn, error){}}, sink: &records{}}
	l := listenLocal(t)
	w.proxy = l.Addr().String()
	config := Config{Session: "test", Allow: rules, Doors: boundary.Doors{Proxy: fileOf(t, l)}, Sink: w.sink}
	if change != nil {
		change(&config)
	}
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Engine = e
	e.dial = w.out
	if config.Learn == Observe {
		e.dial = observing{w.out}
	}
	e.Serve()
	t.Cleanup(func() { e.Close() })
	return w
}

// inPlace is a listener whose connections have another local address: what
// TPROXY does.
type inPlace struct {
	net.Listener
	at net.Addr
}

type inPlaceConn struct {
	net.Conn
	at net.Addr
}

func (l inPlace) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return inPlaceConn{c, l.at}, nil
}

func (c inPlaceConn) LocalAddr() net.Addr        { return c.at }
func (c inPlaceConn) unread() ([]byte, net.Conn) { return nil, c.Conn }
func (c inPlaceConn) SetLinger(sec int) error    { return setLinger(c.Conn, sec) }
func (c inPlaceConn) CloseWrite() error          { return closeWrite(c.Conn) }

// door opens one more door, for connections to an address, and returns where it is.
func (w *world) door(to netip.AddrPort) string {
	w.t.Helper()
	l := listenLocal(w.t)
	d := listener{inPlace{l, net.TCPAddrFromAddrPort(to)}, func(ctx context.Context, c net.Conn) { w.intercept(ctx, c, localAddress) }}
	w.listeners = append(w.listeners, d)
	w.wait.Go(func() { w.accept(d) })
	return l.Addr().String()
}

// doorTo is door for a name.
func (w *world) doorTo(name string, port int) string {
	w.t.Helper()
	a, err := w.names.Address(name, wildName)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.door(netip.AddrPortFrom(a, uint16(port)))
}

// server serves connections to name:port outside.
func (w *world) server(at string, serve func(*net.TCPConn)) {
	w.t.Helper()
	l := listenLocal(w.t)
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	w.out.mu.Lock()
	w.out.at[at] = l.Addr().String()
	w.out.mu.Unlock()
}

// lockedBuffer is what a server received so far.
type lockedBuffer struct {
	mu  sync.Mutex
	all []byte
}

func (b *lockedBuffer) Write(part []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, part...)
	return len(part), nil
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.all)
}

func echo(c *net.TCPConn) { io.Copy(c, struct{ io.Reader }{c}); c.CloseWrite() }

func connect(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func send(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	if err != nil || string(got) != want {
		t.Fatalf("read %q (%v), want %q", got[:n], err, want)
	}
}

// until waits for something to become true.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// refused waits for a refusal of name and returns it.
func (w *world) refused(name string) Refusal {
	w.t.Helper()
	var found Refusal
	until(w.t, "a refusal of "+name, func() bool {
		for _, r := range w.Refusals() {
			if r.Name == name {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// roundTrip connects, sends and reads to the end. A connection that is reset
// before connect has returned is one that was reset.
func roundTrip(t testing.TB, addr, words string) ([]byte, error) {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, words); err != nil {
		return nil, err
	}
	return io.ReadAll(c)
}

func wantReset(t testing.TB, addr string) {
	t.Helper()
	if got, err := roundTrip(t, addr, ""); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %q, %v; want a reset", got, err)
	}
}
