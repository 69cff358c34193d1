package netstack

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

func TestRootLimits(t *testing.T) {
	w := launch(t, limits{connections: 3, halfOpen: 256})
	_, first := w.pair("198.51.100.7:443")
	w.pair("198.51.100.7:443")
	if _, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443"); err != nil { // waits to be accepted, and counts
		t.Fatal(err)
	}
	if _, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("one too many: %v", err)
	}
	if err := first.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if _, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443"); err != nil {
		t.Errorf("after one was reset: %v", err)
	}
}

// A client that does not take its data keeps its place until it is swept.
func TestRootWhoDoesNotReadKeepsItsPlace(t *testing.T) {
	w := launch(t, limits{connections: 1, halfOpen: 256})
	_, here := w.pair("198.51.100.7:443")
	if err := here.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	here.Close()
	if _, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("a buffer full of data is not counted any more: %v", err)
	}
	w.s.mu.Lock()
	w.s.sweep(time.Now().Add(lingering))
	w.s.mu.Unlock()
	if _, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443"); err != nil {
		t.Errorf("after the sweep: %v", err)
	}
}

// flood sends n SYNs with forged sources, which will never be acknowledged.
func (w *world) flood(n int) {
	w.t.Helper()
	fd := w.socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	defer unix.Close(fd)
	_, to := sockaddr("198.51.100.7:443")
	dst := netip.MustParseAddr("198.51.100.7")
	for i := range n {
		src := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
		b := make([]byte, head4+headTCP)
		ipHead(b, src, dst, tcpProto)
		copy(b[head4:], []byte{0x10, byte(i), 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0})
		if err := unix.Sendto(fd, b, 0, to); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestRootFlood(t *testing.T) {
	testenv.NoGoroutines(t)
	w := launch(t, limits{connections: 1024, halfOpen: 16})
	w.flood(2000)
	w.s.mu.Lock()
	used := w.s.used
	w.s.mu.Unlock()
	if used > 16 {
		t.Errorf("%d connections of a flood count, not 16", used)
	}
	// The places are free again when the forged clients have not answered; that
	// takes longer than a test should, and Close must not wait for it.
	before := time.Now()
	w.s.Close()
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("Close during handshakes took %v", took)
	}
}

func TestRootCloseEndsEverything(t *testing.T) {
	testenv.NoGoroutines(t)
	launch(t, usual).stop() // the runtime keeps descriptors of its own from the first one that it waits for
	before := descriptors(t)
	w := launch(t, usual)
	var clients []net.Conn
	reads := make(chan error, 8)
	for range 8 {
		in, here := w.pair("198.51.100.7:443")
		clients = append(clients, in)
		go func() { _, err := here.Read(make([]byte, 1)); reads <- err }()
	}
	_, closing := w.pair("198.51.100.7:443")
	closing.Close() // waits for its client to close the other half
	accepts, queries := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.s.Listener().Accept(); accepts <- err }()
	go func() { _, _, _, err := w.s.Packets().Read(make([]byte, 1)); queries <- err }()
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	for range clients {
		if err := <-reads; err == nil {
			t.Error("a Read returned data after Close")
		}
	}
	if err := <-accepts; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if err := <-queries; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of queries: %v", err)
	}
	for _, c := range clients {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a client reads %v", err)
		}
		c.Close()
	}
	w.s.Close()
	w.stop()
	// One socket of the pair that was closed, and the clients' of its clean-up.
	if after := descriptors(t); after > before+1 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestRootListenerClosed(t *testing.T) {
	w := launch(t, usual)
	_, here := w.pair("198.51.100.7:443")
	queued, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.s.Listener().Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := queued.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("whom nobody accepted reads %v", err)
	}
	if _, err := w.dial(unix.SOCK_STREAM, "198.51.100.7:443"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a new connection: %v", err)
	}
	if _, err := w.s.Listener().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if _, err := here.Write([]byte("x")); err != nil {
		t.Errorf("an accepted connection: %v", err)
	}
}

func TestRootTheDeviceGoes(t *testing.T) {
	testenv.NoGoroutines(t)
	w := launch(t, usual)
	_, here := w.pair("198.51.100.7:443")
	if _, err := unix.Write(w.ctl, removeDevice[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Listener().Accept(); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept without a device: %v", err)
	}
	if _, err := here.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNABORTED) {
		t.Errorf("Read without a device: %v", err)
	}
	w.s.Close()
}

func TestWhatIsNoDeviceIsRefused(t *testing.T) {
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := New(r); err == nil {
		t.Error("a pipe is taken for a device")
	}
	if _, err := r.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file stays open: %v", err)
	}
}
