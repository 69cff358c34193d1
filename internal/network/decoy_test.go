package network

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const decoyValue = "AKIAX7QZ2MB5RT6KWPLN"

// trap is Decoys with one value.
type trap struct{}

func (trap) Detect(b []byte) []string {
	for _, form := range []string{decoyValue, strings.ToLower(decoyValue), base64.StdEncoding.EncodeToString([]byte("u:" + decoyValue + "x"))[3:24]} {
		if bytes.Contains(b, []byte(form)) {
			return []string{"aws"}
		}
	}
	return nil
}

func withTrap(c *Config) { c.Decoys = trap{} }

// sent returns the alarm that was raised, once it was.
func (w *world) sent(where string) event.Event {
	w.t.Helper()
	var found event.Event
	until(w.t, "an alarm "+where, func() bool {
		for _, e := range w.sink.all() {
			if e.Action == event.HoneySent && e.Detail["where"] == where {
				found = e
				return true
			}
		}
		return false
	})
	if found.Verdict != event.Denied || found.Layer != event.LayerEgress || found.Detail["severity"] != "critical" || found.Detail["kind"] != "aws" {
		w.t.Errorf("the alarm is %+v", decoyValue)
	}
	return found
}

func (w *world) quiet() {
	w.t.Helper()
	for _, e := range w.sink.all() {
		if e.Action == event.HoneySent {
			w.t.Errorf("alarm without a honeytoken: %+v", e)
		}
	}
}

// TestDecoysInRequests sends one in every place of a request, in the clear and
// through the explicit proxy. There are no credentials.
func TestDecoysInRequests(t *testing.T) {
	t.Parallel()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+decoyValue+"x"))
	for _, tt := range []struct{ name, line, head, body, where string }{
		{"in the path", "GET /a/" + decoyValue + " HTTP/1.1", "", "", "in its URL"},
		{"in the query", "GET /a?k=" + decoyValue + " HTTP/1.1", "", "", "in its URL"},
		{"in the method", decoyValue + " /a HTTP/1.1", "", "", "in its head"},
		{"in a header", "GET /a HTTP/1.1", "X-Any: x" + decoyValue + "y\r\n", "", "in its head"},
		{"in the name of a header, that net/http spells anew", "GET /a HTTP/1.1", "X-" + decoyValue + ": 1\r\n", "", "in its head"},
		{"in Basic authentication", "GET /a HTTP/1.1", "Authorization: " + basic + "\r\n", "", "in its head"},
		{"in a cookie", "GET /a HTTP/1.1", "Cookie: a=" + decoyValue + "\r\n", "", "in its head"},
		{"in a body", "POST /a HTTP/1.1", "", "x=" + decoyValue, "in its body"},
		{"late in a body", "POST /a HTTP/1.1", "", strings.Repeat("x", 300<<10) + decoyValue, "in its body"},
		{"in a request that no rule allows", "DELETE /b?" + decoyValue + " HTTP/1.1", "", "", "in its URL"},
		{"in the body of a request that no rule allows", "DELETE /b HTTP/1.1", "", "x=" + decoyValue, "in its body"},
		{"in a malformed request", "GET /a HTTP/1.1", "X " + decoyValue + " : 1\r\n", "", "in a request that is refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rule := permits("plain.example.org", 80, policy.HTTP)
			rule.Methods = []string{"GET", "POST"}
			w := start(t, withTrap, rule)
			var reached lockedBuffer
			w.server("plain.example.org:80", func(c *net.TCPConn) { io.Copy(&reached, c) })
			words := tt.line + "\r\nHost: plain.example.org\r\n" + tt.head
			if tt.body != "" {
				words += "Content-Length: " + strconv.Itoa(len(tt.body)) + "\r\n"
			}
			got, _ := roundTrip(t, w.doorTo("plain.example.org", 80), words+"\r\n"+tt.body)
			e := w.sent(tt.where)
			if e.Object != "plain.example.org:80" {
				t.Errorf("the object is %q", e.Object)
			}
			if !strings.HasPrefix(string(got), "HTTP/1.1 4") {
				t.Errorf("answered was %.200q", got)
			}
			w.Close()
			if strings.Contains(reached.String(), decoyValue) {
				t.Error("it reached the server")
			}
		})
	}
}

func TestDecoysAtTheProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, words, where string }{
		{"CONNECT to a name", "CONNECT " + decoyValue + ".evil.example.org:443 HTTP/1.1\r\n\r\n", "in a request to the proxy"},
		{"a header of CONNECT", "CONNECT tls.example.org:443 HTTP/1.1\r\nProxy-Authorization: " + decoyValue + "\r\n\r\n", "in a request to the proxy"},
		{"a forwarded request", "GET http://other.example.org/?" + decoyValue + " HTTP/1.1\r\nHost: other.example.org\r\n\r\n", "in a request to the proxy"},
		{"a malformed request", "GET http://" + decoyValue + "@x/ HTTP/1.1\r\n\r\n", inName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, withTrap, permits("tls.example.org", 443, policy.TLS))
			got, _ := roundTrip(t, w.proxy, tt.words)
			w.sent(tt.where)
			if !strings.HasPrefix(string(got), "HTTP/1.1 4") {
				t.Errorf("answered was %.200q", got)
			}
		})
	}
}

func TestADecoyInASOCKSName(t *testing.T) {
	t.Parallel()
	w := start(t, withTrap, policy.HostRule{Host: "*.example.org", Ports: []int{443}, Kind: policy.TLS})
	name := strings.ToLower(decoyValue) + ".example.org"
	words := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(name))}, name...)
	got, _ := roundTrip(t, w.proxy, string(append(words, 1, 187)))
	w.sent(inName)
	if len(got) < 4 || got[3] != socksNotAllowed {
		t.Errorf("answered was %v", got)
	}
}

func TestDecoysInNameQueries(t *testing.T) {
	t.Parallel()
	w := start(t, withTrap, policy.HostRule{Host: "*.example.org", Ports: []int{443}, Kind: policy.TLS})
	ask := func(name string, kind uint16) int {
		m := new(dns.Msg).SetQuestion(name, kind)
		data, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var answer dns.Msg
		if err := answer.Unpack(w.server1(data)); err != nil {
			t.Fatal(err)
		}
		return answer.Rcode
	}
	if code := ask("fine.example.org.", dns.TypeA); code != dns.RcodeSuccess {
		t.Fatalf("an honest name: %d", code)
	}
	w.quiet()
	mixed := ""
	for i, c := range strings.ToLower(decoyValue) {
		if i%2 == 0 {
			c = []rune(strings.ToUpper(string(c)))[0]
		}
		mixed += string(c)
	}
	for _, name := range []string{decoyValue + ".example.org.", strings.ToLower(decoyValue) + ".evil.example.com.", mixed + ".example.org.", decoyValue[:9] + "." + decoyValue[9:] + ".example.org."} {
		before := len(w.sink.all())
		if code := ask(name, dns.TypeTXT); code != dns.RcodeRefused {
			t.Errorf("%s: answered with %d", name, code)
		}
		if e := w.sent("in a name query"); len(w.sink.all()) == before || e.Detail["door"] != "dns" {
			t.Errorf("%s: no alarm of its own", name)
		}
	}
	if a, ok := w.names.Name(netip.MustParseAddr("198.18.0.2")); ok && strings.Contains(a, strings.ToLower(decoyValue)) {
		t.Error("the name got an address")
	}
	if got := w.server1([]byte(decoyValue)); len(got) > 12 {
		t.Errorf("a datagram that is no query was answered with %q", got)
	}
}

// server1 asks the name server without a socket.
func (w *world) server1(query []byte) []byte {
	return w.Engine.server.answer(query, plainSize, packetSize)
}

func TestDecoysInBytesThatNobodyUnderstands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		write []string // each a segment
		stays bool     // it is too late to look
	}{
		{name: "at once", write: []string{"hello " + decoyValue}},
		{name: "in two parts", write: []string{"hello " + decoyValue[:7], decoyValue[7:] + " end"}},
		{name: "after a while", write: []string{strings.Repeat("x", 100<<10), decoyValue}},
		{name: "after more than is looked at", write: []string{strings.Repeat("x", inspectBytes+256<<10), decoyValue}, stays: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, withTrap, permits("db.example.org", 5432, policy.TCP))
			reached := make(chan []byte, 1)
			w.server("db.example.org:5432", func(c *net.TCPConn) {
				var all bytes.Buffer
				b := make([]byte, 4096)
				for {
					n, err := c.Read(b)
					all.Write(b[:n])
					if err != nil {
						break
					}
					c.Write([]byte("."))
				}
				reached <- all.Bytes()
			})
			c := connect(t, w.doorTo("db.example.org", 5432))
			for i, part := range tt.write {
				if _, err := c.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
				if i+1 < len(tt.write) {
					c.Read(make([]byte, 1)) // the part arrived, and was not joined with the next
				}
			}
			if tt.stays {
				c.CloseWrite()
			}
			_, err := io.Copy(io.Discard, c)
			got := <-reached
			if tt.stays {
				if !bytes.Contains(got, []byte(decoyValue)) {
					t.Error("the bytes that nobody looks at did not arrive")
				}
				return
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection ended with %v", err)
			}
			if bytes.Contains(got, []byte(decoyValue)) {
				t.Error("it reached the server")
			}
			if e := w.sent("in what it sent"); e.Object != "db.example.org:5432" {
				t.Errorf("the object is %q", e.Object)
			}
		})
	}
}

func TestADecoyInATLSHello(t *testing.T) {
	t.Parallel()
	w := start(t, withTrap, permits("tls.example.org", 443, policy.TLS))
	c := connect(t, w.doorTo("tls.example.org", 443))
	go func() { // ALPN may hold anything
		tls.Client(c, &tls.Config{ServerName: "tls.example.org", NextProtos: []string{"h2", decoyValue}, InsecureSkipVerify: true}).Handshake()
	}()
	w.sent("in its TLS hello")
}

func TestADecoyToWhereNoRuleGoes(t *testing.T) {
	t.Parallel()
	w := start(t, withTrap, permits("plain.example.org", 80, policy.HTTP))
	roundTrip(t, w.door(netip.MustParseAddrPort("203.0.113.7:80")), "GET /?"+decoyValue+" HTTP/1.1\r\nHost: x\r\n\r\n")
	if e := w.sent("in what it sent first"); e.Object != "203.0.113.7:80" {
		t.Errorf("the object is %q", e.Object)
	}
}

// TestDecoysEveryWay sends them in the clear, in TLS that is terminated, and over
// HTTP/2.
func TestDecoysEveryWay(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			arrived := make(chan string, 10)
			c := way.shopConfig
			c.config = withTrap
			s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					arrived <- r.RequestURI + string(body) + fmt.Sprint(r.Header, r.Trailer)
				}
			}), c)
			for _, tt := range []struct {
				where, path, header string
				body                io.Reader
				trailer, named      string
			}{
				{where: "in its URL", path: "/?" + decoyValue},
				{where: "in its head", path: "/", header: decoyValue},
				{where: "in its body", path: "/", body: strings.NewReader("x" + decoyValue)},
				{where: "in its body", path: "/", body: io.MultiReader(strings.NewReader("a"), strings.NewReader("b")), trailer: decoyValue},
				{where: "in its head", path: "/", body: io.MultiReader(strings.NewReader("a"), strings.NewReader("b")), trailer: "x", named: decoyValue},
			} {
				r, err := http.NewRequest("POST", s.url(tt.path), tt.body)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Any", tt.header)
				if tt.trailer != "" {
					r.Trailer = http.Header{http.CanonicalHeaderKey("X-Last" + tt.named): {tt.trailer}}
				}
				answer, err := s.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusForbidden {
					t.Errorf("%s: answered %s", tt.where, answer.Status)
				}
				s.sent(tt.where)
			}
			close(arrived)
			for text := range arrived {
				t.Errorf("%.300q arrived", text)
			}
		})
	}
}

// TestAFloodOfDecoysIsBounded sends many; the alarms are few, and there is one.
func TestAFloodOfDecoysIsBounded(t *testing.T) {
	t.Parallel()
	w := start(t, withTrap)
	m := new(dns.Msg).SetQuestion(decoyValue+".example.org.", dns.TypeA)
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for range 2000 {
		w.server1(data)
	}
	n := 0
	for _, e := range w.sink.all() {
		if e.Action == event.HoneySent {
			n++
		}
	}
	if minutes := int(time.Since(begun)/time.Minute) + 1; n == 0 || n > refusedSame*minutes {
		t.Errorf("%d alarms", n)
	}
}

func TestHonestTrafficRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	w := start(t, withTrap, permits("plain.example.org", 80, policy.HTTP), permits("db.example.org", 5432, policy.TCP))
	w.server("plain.example.org:80", func(c *net.TCPConn) {
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil { // what is left unread would break the connection
			io.Copy(io.Discard, r.Body)
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	})
	w.server("db.example.org:5432", echo)
	if got, err := roundTrip(t, w.doorTo("plain.example.org", 80), "POST /a HTTP/1.1\r\nHost: plain.example.org\r\nContent-Length: 4\r\nConnection: close\r\n\r\nAKIA"); err != nil || !strings.HasSuffix(string(got), "ok") {
		t.Errorf("%q, %v", got, err)
	}
	c := connect(t, w.doorTo("db.example.org", 5432))
	send(t, c, decoyValue[:19])
	expect(t, c, decoyValue[:19])
	w.quiet()
}
