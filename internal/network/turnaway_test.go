package network

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"holdfast.dev/holdfast/internal/policy"
)

// refusing is an engine that allows nothing of what is asked for, and a certificate
// authority for what refuses.
func refusing(t *testing.T, change func(*Config)) (*world, *tls.Config) {
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, func(c *Config) {
		c.Authority = a
		if change != nil {
			change(c)
		}
	}, permits("far.test", 22, policy.TCP))
	pool, err := rootsOf(t, a.PEM()).pool()
	if err != nil {
		t.Fatal(err)
	}
	return w, &tls.Config{RootCAs: pool, ServerName: "denied.example.org", NextProtos: []string{"h2", "http/1.1"}}
}

const (
	deniedTLS = "holdfast refused denied.example.org:443: no rule allows it; to allow it: --allow denied.example.org"
	asText    = "text/plain; charset=utf-8"
)

// TestRefusalsInTLS has clients of HTTPS read why a host is refused, each as it shows it.
func TestRefusalsInTLS(t *testing.T) {
	for _, tt := range []struct {
		name, head string
		status     int
		reason     string // of the status line
		kind, body string
	}{
		{"a client that takes anything", "GET / HTTP/1.1\r\nHost: denied.example.org\r\nAccept: */*\r\n\r\n", 403, deniedTLS, asText, deniedTLS + "\n"},
		{"one that says nothing of it", "POST /x HTTP/1.0\r\n\r\n", 403, deniedTLS, asText, deniedTLS + "\n"},
		{"npm", "GET /left-pad HTTP/1.1\r\nHost: denied.example.org\r\naccept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*\r\n\r\n", 403, deniedTLS, "application/json", `{"error":"` + deniedTLS + `"}` + "\n"},
		{"a browser", "GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html,application/json\r\n\r\n", 403, deniedTLS, asText, deniedTLS + "\n"},
		{"pip", "GET /simple/x/ HTTP/1.1\r\nHost: x\r\nUser-Agent: pip/24.2 {}\r\nAccept: application/vnd.pypi.simple.v1+json, text/html; q=0.01\r\n\r\n", 300, deniedTLS, "text/plain; " + deniedTLS, deniedTLS + "\n"},
		{"what is no head", "GET / HTTP/1.1\nHost: x\n\n", 403, deniedTLS, asText, deniedTLS + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, config := refusing(t, nil)
			c := tls.Client(connect(t, w.doorTo("denied.example.org", 443)), config)
			send(t, c, tt.head)
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Status != fmt.Sprint(tt.status, " ", tt.reason) || r.Header.Get("Content-Type") != tt.kind || string(body) != tt.body {
				t.Errorf("%v: %s %q %q", err, r.Status, r.Header, body)
			}
			if p := c.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
				t.Errorf("the protocol is %q", p)
			}
			if all := w.Refusals(); len(all) != 1 || all[0].Where() != "denied.example.org:443" {
				t.Errorf("refused are %+v", all)
			}
		})
	}
}

// TestRefusalsInTLSAreForOneHost offers no certificate of the session for another host
// than the one that was refused, and says nothing to what is not HTTP.
func TestRefusalsInTLSAreForOneHost(t *testing.T) {
	w, config := refusing(t, nil)
	config.ServerName = "other.example.org"
	if err := tls.Client(connect(t, w.doorTo("denied.example.org", 443)), config).Handshake(); err == nil || !strings.Contains(err.Error(), "certificate is valid for denied.example.org") {
		t.Errorf("the handshake for another name: %v", err)
	}
	config.ServerName = "denied.example.org"
	c := tls.Client(connect(t, w.doorTo("denied.example.org", 443)), config)
	send(t, c, "\x00\x00\x00\x08\x04\xd2\x16\x2f")
	if got, err := io.ReadAll(c); err == nil {
		t.Errorf("read %q; want a reset", got)
	}
}

// TestDecoysInRefusedTLS notices a honeytoken that only the end of TLS can see.
func TestDecoysInRefusedTLS(t *testing.T) {
	w, config := refusing(t, withTrap)
	c := tls.Client(connect(t, w.doorTo("denied.example.org", 443)), config)
	send(t, c, "GET / HTTP/1.1\r\nHost: denied.example.org\r\nX-Pad: "+strings.Repeat("x", 4000)+"\r\nAuthorization: "+decoyValue+"\r\n\r\n")
	expect(t, c, "HTTP/1.1 403 ")
	w.sent("in what it sent first")
}

// TestDecoysInRefusedTLSOfOtherProtocols notices one that is not in a request of HTTP.
func TestDecoysInRefusedTLSOfOtherProtocols(t *testing.T) {
	w, config := refusing(t, withTrap)
	c := tls.Client(connect(t, w.doorTo("denied.example.org", 443)), config)
	send(t, c, "login: "+decoyValue+"\r\n")
	if got, err := io.ReadAll(c); err == nil {
		t.Errorf("read %q; want a reset", got)
	}
	w.sent("in what it sent first")
}

func TestStatusLine(t *testing.T) {
	t.Parallel()
	if got := string(plainAnswer(http.StatusForbidden, "type export KEY=… é", noField)); !strings.HasPrefix(got, "HTTP/1.1 403 type export KEY=... ?\r\n") {
		t.Errorf("got %q", got)
	}
}

// TestRefusedWithoutLogin: for the host of a login that is missing, a program reads what to
// type, and no flag that would not help. Another port, and a host that a rule names, are
// refused as any other.
func TestRefusedWithoutLogin(t *testing.T) {
	w, config := refusing(t, func(c *Config) {
		for _, name := range []string{"denied.example.org", "far.test"} {
			c.NoLogin = append(c.NoLogin, policy.Login{Host: policy.HostPort{Host: name, Port: 443}, Title: "Forge", Text: "forge login"})
		}
	})
	const want = "holdfast refused denied.example.org:443: no rule allows it, for Forge has no login: forge login\n"
	c := tls.Client(connect(t, w.doorTo("denied.example.org", 443)), config)
	send(t, c, "GET / HTTP/1.1\r\nHost: denied.example.org\r\n\r\n")
	if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "\r\n\r\n"+want) {
		t.Errorf("read %q, %v", got, err)
	}
	if r := w.refused("denied.example.org"); r.Flag != "" {
		t.Errorf("refused is %+v", r)
	}
	for place, want := range map[string]string{"denied.example.org:80": "no rule allows it; to allow it", "far.test:443": "port 443 is not allowed, only 22 (holdfast.yaml:22); to allow it"} {
		if got, err := roundTrip(t, w.proxy, "CONNECT "+place+" HTTP/1.1\r\n\r\n"); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: read %q, %v", place, got, err)
		}
	}
}

// TestRefusedSSH reads the reason in the message by which a server of ssh ends a
// connection.
func TestRefusedSSH(t *testing.T) {
	w, _ := refusing(t, nil)
	got, err := roundTrip(t, w.doorTo("denied.example.org", 22), "SSH-2.0-OpenSSH_9.2p1\r\n")
	version, packet, ok := strings.Cut(string(got), "\r\n")
	if err != nil || !ok || version != "SSH-2.0-holdfast" || len(packet) < 16 {
		t.Fatalf("read %q, %v", got, err)
	}
	size, padding := binary.BigEndian.Uint32([]byte(packet)), int(packet[4])
	if int(size) != len(packet)-4 || len(packet)%8 != 0 || padding < 4 || packet[5] != 1 {
		t.Errorf("the packet of %d bytes begins with %q", len(packet), packet[:6])
	}
	text := packet[10+4 : len(packet)-padding-4]
	if n := binary.BigEndian.Uint32([]byte(packet[10:])); int(n) != len(text) || text != "holdfast refused denied.example.org:22: no rule allows it; to allow it: --allow denied.example.org:22" {
		t.Errorf("it says %q", text)
	}
}

// TestRefusedNamesHaveAnAddress where connections to them are answered, as long as they
// could be names of hosts and are not too many. The query is still recorded as refused.
func TestRefusedNamesHaveAnAddress(t *testing.T) {
	var names string
	w, _ := refusing(t, func(c *Config) {
		names = nameDoorOf(t, c)
		c.Listeners = append(c.Listeners, listenLocal(t))
		c.Limits.Queries = 1 << 20
	})
	for _, tt := range []struct {
		name string
		kind uint16
		want string
	}{
		{"denied.example.org", dns.TypeA, "\t198.1"},
		{"denied.example.org", dns.TypeAAAA, "status: NOERROR"},
		{"denied.example.org", dns.TypeTXT, "status: NOERROR"},
		{"_https._tcp.denied.example.org", dns.TypeSRV, "NXDOMAIN"},
		{"db", dns.TypeA, "NXDOMAIN"},
		{"api.invalid", dns.TypeA, "NXDOMAIN"},
		{"x.onion", dns.TypeA, "NXDOMAIN"},
	} {
		if got := query(t, names, tt.name, tt.kind); !strings.Contains(got, tt.want) || !strings.Contains(got, "to allow it") {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	if w.refused("denied.example.org").Flag != "--allow denied.example.org" {
		t.Errorf("refused are %+v", w.Refusals())
	}
	answered := 0
	for i := range mapRefused + 50 {
		if strings.Contains(query(t, names, fmt.Sprintf("n%d.example.org", i), dns.TypeA), "\t198.1") {
			answered++
		}
	}
	if answered != mapRefused-1 {
		t.Errorf("%d names have an address, besides the first", answered)
	}
	if got := query(t, names, "far.test", dns.TypeA); !strings.Contains(got, "\t198.1") {
		t.Errorf("an allowed name after a flood: %s", got)
	}
}
