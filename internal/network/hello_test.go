package network

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// recorded is a connection that says some bytes, a piece at a time, and then
// ends.
type recorded struct {
	net.Conn
	input []byte
	piece int
}

func (r *recorded) Read(p []byte) (int, error) {
	if len(r.input) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.input[:min(len(r.input), max(r.piece, 1))])
	r.input = r.input[n:]
	return n, nil
}

func (r *recorded) Write(p []byte) (int, error)      { return len(p), nil }
func (r *recorded) SetReadDeadline(time.Time) error  { return nil }
func (r *recorded) SetWriteDeadline(time.Time) error { return nil }
func (r *recorded) SetDeadline(time.Time) error      { return nil }
func (r *recorded) Close() error                     { return nil }

// clientHello is what crypto/tls says first with a configuration.
func clientHello(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	var written bytes.Buffer
	keep := &keeper{written: &written}
	tls.Client(keep, c).Handshake() // fails: there is no server
	return written.Bytes()
}

type keeper struct {
	net.Conn
	written *bytes.Buffer
}

func (k *keeper) Write(p []byte) (int, error)      { return k.written.Write(p) }
func (k *keeper) Read([]byte) (int, error)         { return 0, io.EOF }
func (k *keeper) SetWriteDeadline(time.Time) error { return nil }
func (k *keeper) SetDeadline(time.Time) error      { return nil }
func (k *keeper) Close() error                     { return nil }

// inRecords cuts the handshake message of one record into records of n bytes.
func inRecords(record []byte, n int) []byte {
	var out []byte
	for rest := record[5:]; len(rest) > 0; {
		k := min(n, len(rest))
		out = append(out, recordHandshake, 3, 1, byte(k>>8), byte(k))
		out = append(out, rest[:k]...)
		rest = rest[k:]
	}
	return out
}

func TestReadHello(t *testing.T) {
	whole := clientHello(t, &tls.Config{ServerName: "api.example.org", NextProtos: []string{"h2"}})
	greased := withExtension(t, whole, 0xfe0d, append([]byte{0, 0, 1, 0, 1, 7, 0, 32}, append(make([]byte, 32), 0, 4, 1, 2, 3, 4)...))
	rows := []struct {
		name   string
		input  []byte
		piece  int
		server string
		err    string
	}{
		{"a hello in one piece", whole, 1 << 16, "api.example.org", ""},
		{"a hello a byte at a time", whole, 1, "api.example.org", ""},
		{"a hello in records of one byte", inRecords(whole, 1), 1 << 16, "api.example.org", ""},
		{"a hello in records of 100 bytes, 7 bytes at a time", inRecords(whole, 100), 7, "api.example.org", ""},
		{"a hello without a name", clientHello(t, &tls.Config{InsecureSkipVerify: true}), 1 << 16, "", ""},
		{"a hello with a made-up encrypted one", greased, 1 << 16, "api.example.org", ""},
		{"a request in the clear", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 1 << 16, "", "not TLS"},
		{"ssh", []byte("SSH-2.0-OpenSSH_9.6\r\n"), 3, "", "not TLS"},
		{"a hello that breaks off", whole[:len(whole)/2], 1 << 16, "", "unexpected EOF"},
		{"nothing", nil, 1, "", "unexpected EOF"},
		{"a name that ends in a dot", renamed(whole, "api.example.org", "api.example.or."), 1 << 16, "", "understanding"},
		{"records without content for ever", bytes.Repeat([]byte{recordHandshake, 3, 1, 0, 0}, 20000), 1 << 16, "", "understanding"},
		{"a message of 16 MB", append([]byte{recordHandshake, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 1<<17)...), 1 << 16, "", "understanding"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			h, again, err := readHello(&recorded{input: r.input, piece: r.piece})
			if r.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), r.err) {
				t.Fatalf("error %v, want one with %q", err, r.err)
			}
			if h.server != r.server {
				t.Errorf("server %q, want %q", h.server, r.server)
			}
			if err != nil && !errors.Is(err, errNotTLS) {
				return
			}
			if replayed, _ := io.ReadAll(again); !bytes.Equal(replayed, r.input) {
				t.Errorf("the connection says %d bytes again, it said %d", len(replayed), len(r.input))
			}
		})
	}
}

func renamed(hello []byte, from, to string) []byte {
	return bytes.Replace(hello, []byte(from), []byte(to), 1)
}

// withExtension adds an extension to the hello of one record.
func withExtension(t testing.TB, record []byte, id uint16, data []byte) []byte {
	t.Helper()
	b := bytes.Clone(record)
	at := 5 + 4 + 2 + 32
	at += 1 + int(b[at])                   // session id
	at += 2 + int(b[at])<<8 + int(b[at+1]) // cipher suites
	at += 1 + int(b[at])                   // compression
	ext := append([]byte{byte(id >> 8), byte(id), byte(len(data) >> 8), byte(len(data))}, data...)
	n := int(b[at])<<8 + int(b[at+1]) + len(ext)
	b[at], b[at+1] = byte(n>>8), byte(n)
	b = append(b, ext...)
	n = len(b) - 5
	b[3], b[4] = byte(n>>8), byte(n)
	n = len(b) - 9
	b[6], b[7], b[8] = byte(n>>16), byte(n>>8), byte(n)
	return b
}

func TestConfirms(t *testing.T) {
	rows := []struct {
		name, server, to string
		ok               bool
	}{
		{"the same name", "api.example.org", "api.example.org", true},
		{"the same name in capitals", "API.Example.ORG", "api.example.org", true},
		{"another name", "evil.example.org", "api.example.org", false},
		{"the public name of an encrypted hello", "cloudflare-ech.com", "api.example.org", false},
		{"a name that ends in the name", "xapi.example.org", "api.example.org", false},
		{"a name with a NUL", "api.example.org\x00.evil.org", "api.example.org", false},
		{"no name", "", "api.example.org", false},
		{"no name, to an address", "", "192.0.2.7", true},
		{"a name, to an address", "api.example.org", "192.0.2.7", false},
		{"an address as name", "192.0.2.7", "api.example.org", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if why := confirms(tlsHello{server: r.server}, Destination{Name: r.to, Port: 443}); why == "" != r.ok {
				t.Errorf("confirms says %q", why)
			}
		})
	}
}

func FuzzHello(f *testing.F) {
	whole := clientHello(f, &tls.Config{ServerName: "api.example.org", NextProtos: []string{"h2"}})
	f.Add(whole, 1)
	f.Add(inRecords(whole, 3), 5)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 2)
	f.Fuzz(func(t *testing.T, input []byte, piece int) {
		h, again, err := readHello(&recorded{input: input, piece: piece & 0xff})
		replayed, _ := io.ReadAll(again)
		if !bytes.Equal(replayed, input) {
			t.Fatalf("%d bytes are said again, of %d", len(replayed), len(input))
		}
		if err != nil && (h.server != "" || h.protocols != nil) {
			t.Fatalf("error %v, and a hello of %q", err, h.server)
		}
	})
}
