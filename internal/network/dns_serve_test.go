package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const testWait = 20 * time.Second

// serveNames serves a socket bound to address until the test ends.
func serveNames(t testing.TB, w *nameWorld, network, address string) netip.AddrPort {
	t.Helper()
	at, err := net.ResolveUDPAddr(network, address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUDP(network, at)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.serveUDP(c) }()
	t.Cleanup(func() {
		c.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// askAt asks over UDP with a connected socket, which takes an answer from the
// asked address alone. It asks again as resolvers do: datagrams get lost.
func askAt(server netip.AddrPort, q []byte) ([]byte, error) {
	c, err := net.Dial("udp", server.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	b := make([]byte, 4096)
	for end := time.Now().Add(testWait); ; {
		if _, err := c.Write(q); err != nil {
			return nil, err
		}
		c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		n, err := c.Read(b)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			return b[:n], err
		}
	}
}

func TestAnswersComeFromTheAskedAddress(t *testing.T) {
	for _, tt := range []struct{ name, network, bound, asked string }{
		{"IPv4 on a socket of its own", "udp4", "127.0.0.53:0", "127.0.0.53"},
		{"IPv4 on a socket for every address", "udp4", "0.0.0.0:0", "127.99.1.2"},
		{"IPv4 on a socket of both families", "udp", "[::]:0", "127.99.1.2"},
		{"IPv6 on a socket of both families", "udp", "[::]:0", "::1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := serveNames(t, newNameWorld(t, Off, Limits{}), tt.network, tt.bound)
			b, err := askAt(netip.AddrPortFrom(netip.MustParseAddr(tt.asked), server.Port()), packQuery(t, ednsQuery("allowed.test.", dns.TypeA)))
			if err != nil {
				t.Fatal(err)
			}
			if m := parseAnswer(t, b); len(m.Answer) != 1 {
				t.Errorf("got %v", m)
			}
		})
	}
}

func TestUDPFlood(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	server := serveNames(t, w, "udp4", "127.0.0.1:0")
	c, err := net.Dial("udp", server.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 20_000 {
		c.Write(packQuery(t, ednsQuery(fmt.Sprintf("f%d.wild.test.", i), dns.TypeA)))
		c.Write([]byte{byte(i), 1, 1, 0, 0, 1})
	}
	// The server is still there for others once the second is over.
	deadline := time.Now().Add(testWait)
	for time.Now().Before(deadline) {
		b, err := askAt(server, packQuery(t, ednsQuery("allowed.test.", dns.TypeA)))
		if err != nil {
			t.Fatal(err)
		}
		if parseAnswer(t, b).Rcode == dns.RcodeSuccess {
			return
		}
	}
	t.Error("it answers nobody any more")
}

// nameStream gives the server one end of a connection.
func nameStream(t testing.TB, w *nameWorld) (client net.Conn, done chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() { defer close(done); w.serveTCP(server) }()
	client.SetDeadline(time.Now().Add(testWait))
	t.Cleanup(func() { client.Close(); <-done })
	return client, done
}

func lengthPrefixed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

func TestStream(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	c, _ := nameStream(t, w)
	q := lengthPrefixed(packQuery(t, ednsQuery("allowed.test.", dns.TypeA)))
	both := append(append([]byte{}, q...), q...)
	for _, b := range both { // a byte at a time, and two queries in a row
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		var n [2]byte
		if _, err := io.ReadFull(c, n[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint16(n[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		if m := parseAnswer(t, b); len(m.Answer) != 1 {
			t.Errorf("got %v", m)
		}
	}
}

func TestStreamsThatAreClosed(t *testing.T) {
	for _, tt := range []struct {
		name string
		send []byte
	}{
		{"a query that is too long", []byte{0xff, 0xff}},
		{"what is no message", lengthPrefixed([]byte{1, 2, 3})},
		{"an answer", lengthPrefixed([]byte{0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, done := nameStream(t, newNameWorld(t, Off, Limits{}))
			if _, err := c.Write(tt.send); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(make([]byte, 1)); n != 0 || errors.Is(err, nil) {
				t.Errorf("read %d bytes, %v", n, err)
			}
			<-done
		})
	}
}

func TestStreamsAreLimited(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	for range streamMost {
		w.streams <- struct{}{}
	}
	_, done := nameStream(t, w)
	select {
	case <-done:
	case <-time.After(testWait):
		t.Error("one too many is served")
	}
	for range streamMost {
		<-w.streams
	}
}

func TestNameServerConcurrently(t *testing.T) {
	w := newNameWorld(t, Off, Limits{Queries: 1 << 20})
	var mu sync.Mutex
	w.record = func(nameQuery) error { mu.Lock(); defer mu.Unlock(); return nil }
	server := serveNames(t, w, "udp4", "127.0.0.1:0")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				q := packQuery(t, ednsQuery(fmt.Sprintf("g%di%d.wild.test.", g, i), dns.TypeA))
				if g%2 == 0 {
					w.answer(q, streamSize, streamSize)
				} else if _, err := askAt(server, q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkNameQueryUDP(b *testing.B) {
	w := newNameWorld(b, Off, Limits{Queries: 1 << 30})
	server := serveNames(b, w, "udp", "[::]:0")
	c, err := net.Dial("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.53"), server.Port()).String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	q, in := packQuery(b, ednsQuery("allowed.test.", dns.TypeA)), make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(q); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNameQuery(b *testing.B) {
	w := newNameWorld(b, Off, Limits{Queries: 1 << 30})
	q := packQuery(b, ednsQuery("allowed.test.", dns.TypeA))
	b.ReportAllocs()
	for b.Loop() {
		if w.answer(q, plainSize, packetSize) == nil {
			b.Fatal("no answer")
		}
	}
}
