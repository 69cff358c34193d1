package network

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// FuzzSocks checks that whatever is taken from a SOCKS5 client is a destination
// in normal form, and that nothing is read beyond the request.
func FuzzSocks(f *testing.F) {
	for _, s := range []string{
		"\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x01\xbbrest",
		"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50rest",
		"\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xa9\xfe\xa9\xfe\x00\x50",
		"\x05\x01\x00\x05\x01\x00\x03\x14b.test\x00.a.example.org\x00\x16",
		"\x05\x00", "\x05\xff", "\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		var replies bytes.Buffer
		host, port, err := readSocks(struct {
			io.Reader
			io.Writer
		}{in, &replies})
		if err != nil {
			if host != "" {
				t.Errorf("host %q with an error", host)
			}
			return
		}
		if normal, err := normalizeHost(host); err != nil || normal != host {
			t.Errorf("host %q is not in normal form", host)
		}
		if port < 1 || port > 65535 {
			t.Errorf("port %d", port)
		}
		if used := len(b) - in.Len(); used > 2+255+4+1+255+2 {
			t.Errorf("%d bytes were read", used)
		}
		if replies.String() != "\x05\x00" {
			t.Errorf("said %q before the decision", replies.String())
		}
	})
}

// FuzzProxyHead checks that a head is cut in one way however it arrives, and that
// what is taken from it is a destination in normal form which no other Host, no
// body and no bare line end contradicts.
func FuzzProxyHead(f *testing.F) {
	for _, s := range []string{
		"CONNECT a.example.org:443 HTTP/1.1\r\nHost: a.example.org:443\r\n\r\nrest",
		"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n",
		"GET http://a.example.org/x HTTP/1.1\r\nHost: a.example.org\r\n\r\n",
		"GET HTTP://A.example.org.:80?x HTTP/1.0\r\nhost: a.example.org:80\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\nHost: b\r\n\r\n",
		"CONNECT a@b:1 HTTP/1.1\r\nHost: b\r\n c\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		const most = 4096
		head, rest, err := readProxyHead(&script{b: b, size: int(size)%7 + 1}, nil, most)
		if err != nil {
			return
		}
		whole, more, err := readProxyHead(&script{b: b, size: 2 * most}, nil, most)
		if err != nil || !bytes.Equal(whole, head) || !bytes.HasPrefix(more, rest) {
			t.Fatalf("in pieces %q, at once %q (%v)", head, whole, err)
		}
		if bytes.Contains(bytes.ReplaceAll(head, []byte("\r\n"), nil), []byte("\n")) || bytes.Count(head, []byte("\r\n\r\n")) != 1 {
			t.Errorf("head %q", head)
		}
		h, err := parseProxyHead(head)
		if err != nil {
			return
		}
		if normal, err := normalizeHost(h.host); err != nil || normal != h.host {
			t.Errorf("host %q is not in normal form", h.host)
		}
		if h.port < 1 || h.port > 65535 || strings.ContainsAny(h.target, "\x00\r\n \\") {
			t.Errorf("%+v", h)
		}
	})
}

// script is a connection that says b in pieces.
type script struct {
	net.Conn
	b    []byte
	size int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.size)], s.b)
	s.b = s.b[n:]
	return n, nil
}
