package netstack

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const patience = time.Minute // under the race detector, among others

// world is a stack and what is inside of it.
type world struct {
	*inside
	s *Stack
}

func launch(t testing.TB, l limits) *world {
	t.Helper()
	i := makeInside(t)
	s, err := start(i.tun, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &world{i, s}
}

func sockaddr(to string) (family int, sa unix.Sockaddr) {
	a := netip.MustParseAddrPort(to)
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// dial connects from inside, in at most patience.
func (w *world) dial(kind int, to string) (net.Conn, error) {
	w.t.Helper()
	family, sa := sockaddr(to)
	fd := w.socket(family, kind, 0)
	limit := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		w.t.Fatal(err)
	}
	for {
		err := unix.Connect(fd, sa)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			unix.Close(fd)
			return nil, err
		}
		break
	}
	c := fileConn(w.t, fd)
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	return c, nil
}

// fileConn is a socket as a net.Conn, which owns it.
func fileConn(t testing.TB, fd int) net.Conn {
	t.Helper()
	f := os.NewFile(uintptr(fd), "inside")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) accept() net.Conn {
	w.t.Helper()
	c, err := w.s.Listener().Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// pair is a connection: its end inside and its end here.
func (w *world) pair(to string) (in *net.TCPConn, here *conn) {
	w.t.Helper()
	c, err := w.dial(unix.SOCK_STREAM, to)
	if err != nil {
		w.t.Fatalf("connecting to %s: %v", to, err)
	}
	return c.(*net.TCPConn), w.accept().(*conn)
}

func TestRootEveryAddressIsAccepted(t *testing.T) {
	w := launch(t, usual)
	for _, to := range []string{
		"198.51.100.7:443", "10.0.0.1:1", "8.8.8.8:65535", "169.254.169.254:80", "10.77.0.1:53",
		"[2001:db8::1]:22", "[fd00::5]:8080", "[2606:4700::1111]:443",
	} {
		in, here := w.pair(to)
		if got := here.LocalAddr().String(); got != to {
			t.Errorf("dialled %s, local address is %s", to, got)
		}
		if got, want := here.RemoteAddr().String(), in.LocalAddr().String(); got != want {
			t.Errorf("client is %s, remote address is %s", want, got)
		}
		in.Close()
		if _, err := here.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: after the client closed: %v", to, err)
		}
	}
}

// exchange sends n random bytes each way at once, and compares hashes.
func exchange(a, b net.Conn, n int64) error {
	type end interface {
		net.Conn
		CloseWrite() error
	}
	sums := make(chan [sha256.Size]byte, 4)
	errs := make(chan error, 4)
	one := func(from, to end) {
		data := make([]byte, n)
		rand.Read(data)
		sums <- sha256.Sum256(data)
		_, err := from.Write(data)
		errs <- errors.Join(err, from.CloseWrite())
	}
	other := func(from end) {
		h := sha256.New()
		_, err := io.Copy(h, from)
		errs <- err
		sums <- [sha256.Size]byte(h.Sum(nil))
	}
	ea, eb := a.(end), b.(end)
	go one(ea, eb)
	go one(eb, ea)
	go other(ea)
	go other(eb)
	count := map[[sha256.Size]byte]int{}
	var failed error
	for range 4 {
		failed = errors.Join(failed, <-errs)
		count[<-sums]++
	}
	for _, n := range count {
		if n%2 != 0 && failed == nil {
			failed = errors.New("what arrived is not what was sent")
		}
	}
	return failed
}

func TestRootDataArrivesBothWays(t *testing.T) {
	w := launch(t, usual)
	for _, to := range []string{"198.51.100.7:443", "[2001:db8::1]:443"} {
		for _, n := range []int64{0, 1, 1459, 65521, 20 << 20} {
			in, here := w.pair(to)
			if err := exchange(in, here, n); err != nil {
				t.Errorf("%d bytes with %s: %v", n, to, err)
			}
			in.Close()
			here.Close()
		}
	}
}

func TestRootSmallSegmentsAreGathered(t *testing.T) {
	w := launch(t, usual)
	fd := w.socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1400); err != nil {
		t.Fatal(err)
	}
	_, sa := sockaddr("198.51.100.7:80")
	if err := unix.Connect(fd, sa); err != nil {
		t.Fatal(err)
	}
	in := fileConn(t, fd)
	defer in.Close()
	if err := in.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := exchange(in, w.accept(), 8<<20); err != nil {
		t.Errorf("with a maximum segment of 1400 bytes: %v", err)
	}
}

func TestRootManyAtOnce(t *testing.T) {
	w := launch(t, usual)
	type ends struct{ in, here net.Conn }
	var pairs []ends // and not by the client's address: to another destination the kernel may give the same port again
	for i := range 32 {
		in, here := w.pair(fmt.Sprintf("198.51.100.%d:443", i+1))
		pairs = append(pairs, ends{in, here})
	}
	var all sync.WaitGroup
	for i, p := range pairs {
		all.Go(func() {
			if err := exchange(p.in, p.here, 2<<20); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestRootHalfClose(t *testing.T) {
	w := launch(t, usual)
	for _, tt := range []struct {
		name  string
		first func(in *net.TCPConn, here *conn) (net.Conn, net.Conn) // the end that closes its half first, and the other end
	}{
		{name: "the client closes its half first", first: func(in *net.TCPConn, here *conn) (net.Conn, net.Conn) { return in, here }},
		{name: "we close our half first", first: func(in *net.TCPConn, here *conn) (net.Conn, net.Conn) { return here, in }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, to := tt.first(w.pair("198.51.100.7:443"))
			if err := from.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if n, err := to.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Fatalf("the other end reads %d bytes, %v", n, err)
			}
			if _, err := to.Write([]byte("late")); err != nil {
				t.Fatalf("writing against a half that is closed: %v", err)
			}
			to.Close()
			if got, err := io.ReadAll(from); err != nil || string(got) != "late" {
				t.Errorf("read %q, %v", got, err)
			}
			if _, err := from.Write([]byte("x")); err == nil {
				t.Error("a half that was closed takes data")
			}
		})
	}
}

func TestRootResets(t *testing.T) {
	w := launch(t, usual)
	in, here := w.pair("198.51.100.7:443")
	if err := in.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if _, err := here.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reset: Read says %v", err)
	}
	in, here = w.pair("198.51.100.7:443")
	if err := here.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	here.Close()
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("we reset: the client reads %v", err)
	}
	if _, err := here.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if _, err := here.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if err := here.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a second Close: %v", err)
	}
}

func TestRootDeadlines(t *testing.T) {
	w := launch(t, usual)
	in, here := w.pair("198.51.100.7:443")
	if err := here.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read past its deadline: %v", err)
	}
	if err := here.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := here.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Errorf("Read with the deadline taken away: %d, %v", n, err)
	}
	waiting := make(chan error)
	go func() { _, err := here.Read(make([]byte, 1)); waiting <- err }()
	if err := here.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a Read that waits, with a deadline of the past: %v", err)
	}
	much := make([]byte, 64<<20)
	if err := here.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := here.Write(much); !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 {
		t.Errorf("Write to a client that does not read: %d, %v", n, err)
	}
	go func() { _, err := here.Read(make([]byte, 1)); waiting <- err }()
	if err := here.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	here.Close()
	if err := <-waiting; !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a Read that waits for ever, after Close: %v", err)
	}
}
