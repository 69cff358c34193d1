package network

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// tcpPair is the two ends of a connection over loopback.
func tcpPair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l := listenLocal(t)
	defer l.Close()
	near = connect(t, l.Addr().String())
	far, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	far.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { far.Close() })
	return near, far
}

// bare is a connection that the relay cannot look through.
type bare struct{ net.Conn }

func (b bare) CloseWrite() error { return closeWrite(b.Conn) }

// pour writes size random bytes in random pieces, ends that direction, and
// returns their hash.
func pour(c *net.TCPConn, seed uint64, size int) (sum [32]byte, err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	source := rand.NewChaCha8([32]byte{byte(seed)})
	h := sha256.New()
	for size > 0 {
		piece := make([]byte, min(size, 1+random.IntN(300<<10)))
		source.Read(piece)
		h.Write(piece)
		if _, err := c.Write(piece); err != nil {
			return sum, err
		}
		size -= len(piece)
	}
	return [32]byte(h.Sum(nil)), c.CloseWrite()
}

func TestRelayPassesTheSameBytesBothWays(t *testing.T) {
	for name, around := range map[string]func(*world, net.Conn) net.Conn{
		"connections of the kernel":           func(_ *world, c net.Conn) net.Conn { return c },
		"connections that are something else": func(_ *world, c net.Conn) net.Conn { return bare{c} },
		"without pipes":                       func(w *world, c net.Conn) net.Conn { w.relayPool.noPipe = true; return c },
		"with every large buffer in use": func(w *world, c net.Conn) net.Conn {
			w.relayPool.large.Store(largeSteps)
			w.relayPool.noPipe = true
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoGoroutines(t)
			w := start(t, nil)
			for _, size := range []int{0, 1, smallStep, spliceAfter + 1, 1<<20 + rand.IntN(9<<20), spliceSlice + 12345} {
				client, a := tcpPair(t)
				server, b := tcpPair(t)
				type result struct {
					sum [32]byte
					err error
				}
				up, down := make(chan result, 2), make(chan result, 2)
				for i, c := range []*net.TCPConn{client, server} {
					sent, got := up, down
					if i == 1 {
						sent, got = down, up
					}
					go func() {
						sum, err := pour(c, uint64(size+i), size/(i+1))
						sent <- result{sum, err}
					}()
					go func() {
						h := sha256.New()
						_, err := io.Copy(h, c)
						got <- result{[32]byte(h.Sum(nil)), err}
					}()
				}
				s := &session{}
				err := w.relay(context.WithValue(context.Background(), sessionKey{}, s), around(w, a), around(w, b), nil)
				if in, out := s.in.Load(), s.out.Load(); err != nil || in != int64(size/2) || out != int64(size) {
					t.Errorf("%d bytes: in %d, out %d, %v", size, in, out, err)
				}
				for _, way := range []chan result{up, down} {
					if x, y := <-way, <-way; x.err != nil || y.err != nil || x.sum != y.sum {
						t.Errorf("%d bytes: %v, %v", size, x, y)
					}
				}
			}
			if n := w.relayPool.pipes.Load(); n != 0 {
				t.Errorf("%d pipes are still counted", n)
			}
		})
	}
}

func TestRelayPassesAnEndOnByItself(t *testing.T) {
	w := start(t, nil)
	client, a := tcpPair(t)
	server, b := tcpPair(t)
	done := make(chan error, 1)
	go func() { err := w.relay(context.Background(), a, b, nil); done <- err }()
	send(t, client, "question")
	client.CloseWrite()
	if got, err := io.ReadAll(server); err != nil || string(got) != "question" {
		t.Fatalf("%q, %v", got, err)
	}
	send(t, server, "answer")
	expect(t, client, "answer")
	send(t, server, ", and more")
	server.Close()
	if got, err := io.ReadAll(client); err != nil || string(got) != ", and more" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRelayPassesAResetOnAsAReset(t *testing.T) {
	w := start(t, nil)
	for _, bulk := range []int{0, 4 << 20} {
		client, a := tcpPair(t)
		server, b := tcpPair(t)
		done := make(chan error, 1)
		go func() { err := w.relay(context.Background(), a, b, nil); done <- err }()
		go pour(client, 1, bulk+1)
		if _, err := io.CopyN(io.Discard, server, int64(bulk+1)); err != nil {
			t.Fatal(err)
		}
		client.SetLinger(0)
		client.Close()
		// The end of what the client poured may come before its reset.
		for err := error(nil); err == nil; {
			if _, err = server.Write([]byte("x")); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("server: %v, want a reset", err)
			}
			time.Sleep(time.Millisecond)
		}
		<-done
	}
}

func TestRelayEndsWithItsContext(t *testing.T) {
	testenv.NoGoroutines(t)
	w := start(t, nil)
	client, a := tcpPair(t)
	server, b := tcpPair(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	done := make(chan error, 1)
	go func() { err := w.relay(ctx, a, b, nil); done <- err }()
	send(t, client, "x")
	expect(t, server, "x")
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("relay: %v", err)
	}
	for _, c := range []net.Conn{client, server} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v, want a reset", err)
		}
	}
}

func TestAReplayedConnectionSaysItsHeadFirst(t *testing.T) {
	w := start(t, nil)
	client, a := tcpPair(t)
	server, b := tcpPair(t)
	go w.relay(context.Background(), replay(replay(a, []byte("two ")), []byte("one ")), replay(b, []byte("banner ")), nil)
	send(t, client, "three")
	expect(t, server, "one two three")
	expect(t, client, "banner ")
	read := replay(replay(a, []byte("two ")), []byte("one "))
	got := make([]byte, 8)
	if _, err := io.ReadFull(read, got); err != nil || string(got) != "one two " {
		t.Errorf("%q, %v", got, err)
	}
}

func TestIdleConnectionsAreEnded(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.IdleTime = 3 * time.Second }, permits("a.example.org", 22, policy.TCP))
	w.server("a.example.org:22", echo)
	door := w.doorTo("a.example.org", 22)
	busy, idle := connect(t, door), connect(t, door)
	ended := make(chan error, 1)
	go func() {
		_, err := idle.Read(make([]byte, 1))
		ended <- err
	}()
	for {
		send(t, busy, "x")
		expect(t, busy, "x")
		select {
		case err := <-ended:
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the idle one: %v, want a reset", err)
			}
			send(t, busy, "y")
			expect(t, busy, "y")
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestAnAnswerArrivesThoughTheServerDoesNotReadOn(t *testing.T) {
	w := start(t, nil)
	const answer = 200 << 10
	for _, upload := range []int{1, 64 << 10, 8 << 20} {
		client, a := tcpPair(t)
		server, b := tcpPair(t)
		done := make(chan error, 1)
		go func() { err := w.relay(context.Background(), a, b, nil); done <- err }()
		go func() {
			io.ReadFull(server, make([]byte, 1))
			server.Write(make([]byte, answer))
			server.Close() // with unread bytes this is a reset
		}()
		wrote := make(chan error, 1)
		go func() { _, err := client.Write(make([]byte, upload)); wrote <- err }()
		got, err := io.ReadAll(client)
		if werr := <-wrote; err == nil {
			err = werr // the kernel reports a reset once, to the first caller
		}
		if upload > 1 && len(got) < answer {
			t.Logf("%d bytes came before %v", len(got), err) // a reset may overtake them on any path
		}
		if len(got) < answer && err == nil {
			t.Errorf("upload of %d: %d bytes look like the whole answer", upload, len(got))
		}
		client.CloseWrite()
		<-done
	}
}

func TestAConnectionThatFallsSilentGivesItsPipeBack(t *testing.T) {
	w := start(t, nil)
	client, a := tcpPair(t)
	server, b := tcpPair(t)
	go w.relay(context.Background(), a, b, nil)
	for range 2 {
		const size = 4 << 20
		go server.Write(make([]byte, size))
		held := false
		for n := 0; n < size; {
			got, err := client.Read(make([]byte, 64<<10))
			if err != nil {
				t.Fatal(err)
			}
			n += got
			held = held || w.relayPool.pipes.Load() > 0
		}
		if !held {
			t.Error("nothing was spliced")
		}
		until(t, "the pipe is given back", func() bool { return w.relayPool.pipes.Load() == 0 })
		send(t, server, "x")
		expect(t, client, "x")
		if n := w.relayPool.pipes.Load(); n != 0 {
			t.Errorf("%d pipes for a byte", n)
		}
	}
}

// TestCopyEnds: a relay that cannot be spliced ends with what the one side cannot send
// or the other not take, and takes nothing more of it then.
func TestCopyEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name  string
		src   io.Reader
		taken int
		want  error
	}{
		{"the end", strings.NewReader("text"), 4, nil},
		{"who takes nothing more", iotest.OneByteReader(strings.NewReader("text")), 2, broken},
		{"who breaks off", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("text"))), 4, iotest.ErrTimeout},
		{"who breaks off with his last words", iotest.DataErrReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("text")))), 4, iotest.ErrTimeout},
	} {
		var count atomic.Int64
		left := tt.taken
		err := newRelayPool().copy(&count, writing(func(b []byte) (int, error) {
			if left -= len(b); left < 0 {
				return 0, broken
			}
			return len(b), nil
		}), tt.src)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if left < -1 {
			t.Errorf("%s: it went on for %d bytes", tt.name, -left)
		}
	}
}

type writing func([]byte) (int, error)

func (w writing) Write(b []byte) (int, error) { return w(b) }
