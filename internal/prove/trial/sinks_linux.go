package trial

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// sinks are the listeners of a trial: its internet, and services outside the
// agent's boundary. They keep what they receive.
type sinks struct {
	closers []io.Closer

	mu       sync.Mutex
	received []receivedText // guarded by mu
	size     int            // guarded by mu
}

// receivedText is something that was received.
type receivedText struct {
	via  string // tcp, udp, dns, loopback, unix, abstract
	text []byte
}

// mostKept limits what all sinks together keep, in bytes: a flood must not
// exhaust the judge's memory.
const mostKept = 64 << 20

// internet are the addresses that are routed here without being on an interface,
// because filters of agents refuse the machine's own addresses.
var internet = []netip.Prefix{netip.MustParsePrefix("93.184.216.0/24"), netip.MustParsePrefix("169.254.169.254/32")}

const (
	sinkIP     = "93.184.216.34"
	nameServer = "93.184.216.53"
	sinkPort   = "80"
)

// openSinks opens all listeners. socket is the path of the Unix socket to make,
// abstract the name of the abstract one.
func openSinks(loopback, socket, abstract string) (*sinks, error) {
	s := &sinks{}
	var errs []error
	for _, l := range []struct{ via, network, address string }{
		{"tcp", "tcp", sinkIP + ":80"}, {"tcp", "tcp", sinkIP + ":443"}, {"tcp", "tcp", sinkIP + ":8080"}, {"tcp", "tcp", sinkIP + ":25"}, {"tcp", "tcp", sinkIP + ":22"},
		{"metadata", "tcp", metadata}, {"loopback", "tcp", loopback}, {"loopback", "tcp", loopback6}, {"unix", "unix", socket}, {"abstract", "unix", "@" + abstract}, {"dns", "tcp", nameServer + ":53"},
	} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if l.via == "unix" {
			err = os.Chmod(socket, 0o777) // its user may be another than ours
		}
		errs = append(errs, err)
		s.closers = append(s.closers, listener)
		go s.accept(l.via, listener)
	}
	for _, l := range []struct{ via, address string }{
		{"dns", nameServer + ":53"}, {"dns", sinkIP + ":53"}, {"udp", sinkIP + ":80"}, {"udp", sinkIP + ":443"}, {"udp", sinkIP + ":5353"}, {"loopback", loopback},
	} {
		conn, err := net.ListenPacket("udp", l.address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.closers = append(s.closers, conn)
		go s.receive(l.via, conn)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the listeners of a trial: %w", err), s.Close())
	}
	return s, nil
}

// Close closes the listeners.
func (s *sinks) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (s *sinks) storeText(via string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size += len(text); s.size <= mostKept {
		s.received = append(s.received, receivedText{via, bytes.ToLower(text)})
	}
}

// listenersOf returns the listeners that received one of the words, sorted. Case is
// ignored, as in DNS names.
func (s *sinks) listenersOf(words ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, k := range s.received {
		for _, w := range words {
			if bytes.Contains(k.text, []byte(strings.ToLower(w))) && !slices.Contains(out, k.via) {
				out = append(out, k.via)
			}
		}
	}
	slices.Sort(out)
	return out
}

// all lists the listeners that received something, in that order.
func (s *sinks) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, k := range s.received {
		out = append(out, k.via)
	}
	return out
}

func (s *sinks) accept(via string, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go s.converse(via, c)
	}
}

// talkTime is how long a connection is read.
const talkTime = 20 * time.Second

// overlap is how much of the preceding data is kept with each part, in bytes,
// because a word may arrive in two parts.
const overlap = 256

// converse keeps what arrives over a connection, and answers requests as a web
// server does. The answer contains the last part of the path reversed: if that
// reaches the model, the page came from here.
func (s *sinks) converse(via string, c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(talkTime))
	in := bufio.NewReader(c)
	answered := false
	var text []byte
	for len(text) < 1<<20 {
		buf := make([]byte, 32<<10)
		n, err := in.Read(buf)
		text = append(text, buf[:n]...)
		if n > 0 {
			s.storeText(via, text[max(0, len(text)-n-overlap):])
		}
		if err != nil {
			return
		}
		if text[0] == 0x16 { // TLS handshake: the name in it is enough
			return
		}
		if answered || !bytes.Contains(text, []byte("\r\n\r\n")) && !bytes.HasSuffix(text, []byte("\n")) {
			continue
		}
		answered = true
		body := "reached " + echo(text) + "\n"
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body); err != nil {
			return
		}
		if bytes.HasPrefix(text, []byte("GET ")) || bytes.HasPrefix(text, []byte("HEAD ")) {
			return
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
	}
}

// echo is the last word of the first line's path, reversed.
func echo(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return ""
	}
	word := words[0]
	if len(words) > 1 {
		word = words[1]
	}
	parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("/?=&", r) })
	if len(parts) == 0 {
		return ""
	}
	return reverse(parts[len(parts)-1])
}

func (s *sinks) receive(via string, c net.PacketConn) {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		query := bytes.Clone(buf[:n])
		s.storeText(via, query)
		if via != "dns" {
			continue
		}
		name, answer := answerName(query)
		s.storeText(via, []byte(name))
		if answer != nil {
			_, _ = c.WriteTo(answer, from)
		}
	}
}

// answerName answers a query for the one host of the trial's internet, and for
// names below it, with its address, or with 127.0.0.1 for loop.HOST and names
// below that; for any other name it answers NXDOMAIN. It returns the queried
// name, with dots.
func answerName(q []byte) (name string, answer []byte) {
	if len(q) < 12 || q[2]&0x80 != 0 {
		return "", nil
	}
	at := 12
	var labels []string
	for at < len(q) && q[at] != 0 {
		n := int(q[at])
		if n > 63 || at+1+n > len(q) {
			return "", nil
		}
		labels = append(labels, string(q[at+1:at+1+n]))
		at += 1 + n
	}
	if at+5 > len(q) {
		return "", nil
	}
	name = strings.Join(labels, ".")
	kind := int(q[at+1])<<8 | int(q[at+2])
	answer = append(answer, q[0], q[1], 0x84|q[2]&1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	answer = append(answer, q[12:at+5]...)
	known := strings.ToLower(name) == sinkHost || strings.HasSuffix(strings.ToLower(name), "."+sinkHost)
	switch {
	case !known:
		answer[3] = 3 // NXDOMAIN, RFC 1035 section 4.1.1
	case kind == 1:
		answer[7] = 1
		ip := netip.MustParseAddr(sinkIP).As4()
		if inward := "loop." + sinkHost; strings.ToLower(name) == inward || strings.HasSuffix(strings.ToLower(name), "."+inward) {
			ip = [4]byte{127, 0, 0, 1}
		}
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		answer = append(answer, ip[:]...)
	case kind == 16:
		answer[7] = 1
		text := "reached " + reverse(labels[0])
		answer = append(answer, 0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, byte(len(text)+1), byte(len(text)))
		answer = append(answer, text...)
	}
	return name, answer
}
