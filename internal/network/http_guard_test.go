package network

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// smuggled are requests that two servers could read as different ones, or as
// two; %s is the rest of a good head.
var smuggled = []struct{ name, input string }{
	{"CL and TE", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"TE and CL", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nContent-Length: 30\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"two TE of which one lies", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n"},
	{"a TE list", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
	{"identity", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n"},
	{"a quoted TE", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"},
	{"a TE with a vertical tab", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"},
	{"a TE name with a space", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
	{"a TE name with an underscore", "POST / HTTP/1.1\r\nHost: H\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"a CL name with an underscore", "POST / HTTP/1.1\r\nHost: H\r\nContent_Length: 5\r\nContent-Length: 0\r\n\r\n"},
	{"a Host name with an underscore is another Host", "GET / HTTP/1.1\r\nHost: H\r\nHOST: evil.example.org\r\n\r\n"},
	{"TE in HTTP/1.0", "POST / HTTP/1.0\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"two CL", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"},
	{"two CL that agree", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
	{"a CL list", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 5, 5\r\n\r\nhello"},
	{"a signed CL", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: +5\r\n\r\nhello"},
	{"a negative CL", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: -1\r\n\r\nhello"},
	{"a CL in octal", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 05\r\n\r\nhello"},
	{"a CL in hexadecimal", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 0x5\r\n\r\nhello"},
	{"a CL that overflows", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 18446744073709551621\r\n\r\nhello"},
	{"an empty CL", "POST / HTTP/1.1\r\nHost: H\r\nContent-Length: \r\n\r\nhello"},
	{"a folded header", "GET / HTTP/1.1\r\nHost: H\r\nX-A: b\r\n Transfer-Encoding: chunked\r\n\r\n"},
	{"a first header that is folded", "GET / HTTP/1.1\r\n Host: evil.example.org\r\nHost: H\r\n\r\n"},
	{"a bare LF in the head", "GET / HTTP/1.1\r\nHost: H\nX-A: b\r\n\r\n"},
	{"a head that ends in bare LF", "GET / HTTP/1.1\r\nHost: H\r\n\nGET /evil HTTP/1.1\r\n"},
	{"a bare CR in a value", "GET / HTTP/1.1\r\nHost: H\r\nX-A: b\rTransfer-Encoding: chunked\r\n\r\n"},
	{"a NUL in a value", "GET / HTTP/1.1\r\nHost: H\r\nX-A: b\x00c\r\n\r\n"},
	{"a NUL in Host", "GET / HTTP/1.1\r\nHost: H\x00.evil.example.org\r\n\r\n"},
	{"a header without a colon", "GET / HTTP/1.1\r\nHost: H\r\nfoo\r\n\r\n"},
	{"a header without a name", "GET / HTTP/1.1\r\nHost: H\r\n: b\r\n\r\n"},
	{"a name that is no token", "GET / HTTP/1.1\r\nHost: H\r\nX[0]: b\r\n\r\n"},
	{"no Host", "GET / HTTP/1.1\r\nX-A: b\r\n\r\n"},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: H\r\nHost: evil.example.org\r\n\r\n"},
	{"two Hosts that agree", "GET / HTTP/1.1\r\nHost: H\r\nHost: H\r\n\r\n"},
	{"another Host", "GET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"},
	{"userinfo in Host", "GET / HTTP/1.1\r\nHost: H@evil.example.org\r\n\r\n"},
	{"the name as userinfo", "GET / HTTP/1.1\r\nHost: evil@H\r\n\r\n"},
	{"a space in Host", "GET / HTTP/1.1\r\nHost: H evil.example.org\r\n\r\n"},
	{"a path in Host", "GET / HTTP/1.1\r\nHost: H/evil\r\n\r\n"},
	{"another port in Host", "GET / HTTP/1.1\r\nHost: H:8080\r\n\r\n"},
	{"a port with a zero before", "GET / HTTP/1.1\r\nHost: H:080\r\n\r\n"},
	{"an empty port", "GET / HTTP/1.1\r\nHost: H:\r\n\r\n"},
	{"two dots after Host", "GET / HTTP/1.1\r\nHost: H..\r\n\r\n"},
	{"a longer Host", "GET / HTTP/1.1\r\nHost: evil-H\r\n\r\n"},
	{"two hosts in one", "GET / HTTP/1.1\r\nHost: H, evil.example.org\r\n\r\n"},
	{"an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
	{"a target in absolute form", "GET http://H/ HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"CONNECT", "CONNECT evil.example.org:443 HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"a target of *", "OPTIONS * HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"two spaces in the request line", "GET  / HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"a target with a space", "GET /a b HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"a tab in the request line", "GET\t/ HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"a fragment in the target", "GET /a#b HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"no version", "GET /\r\nHost: H\r\n\r\n"},
	{"version 1.2", "GET / HTTP/1.2\r\nHost: H\r\n\r\n"},
	{"version 1.10", "GET / HTTP/1.10\r\nHost: H\r\n\r\n"},
	{"a version in small letters", "GET / http/1.1\r\nHost: H\r\n\r\n"},
	{"HTTP/2 in the clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	{"an empty line first", "\r\nGET / HTTP/1.1\r\nHost: H\r\n\r\n"},
	{"a chunk with an extension", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\nb\r\nhello\r\n0\r\n\r\n"},
	{"a chunk with a sign", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n"},
	{"a chunk in 0x", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"},
	{"a chunk with a space", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n"},
	{"a chunk size that overflows", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n"},
	{"a chunk size in bare LF", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"},
	{"a chunk size that ends in CR CR", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5\r\rhello\r\n0\r\n\r\n"},
	{"a chunk that is longer than its size", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n"},
	{"a chunk that ends in bare LF", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n"},
	{"a trailer that frames", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n"},
	{"a trailer that routes", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-Host: evil\r\n\r\n"},
	{"a trailer that is folded", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n"},
	{"trailers in bare LF", "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\n"},
	{"a list of trailers that frame", "POST / HTTP/1.1\r\nHost: H\r\nTrailer: Host\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"Connection that strips credentials", "GET / HTTP/1.1\r\nHost: H\r\nConnection: close, Authorization\r\nAuthorization: x\r\n\r\n"},
	{"Connection that strips a filter", "GET / HTTP/1.1\r\nHost: H\r\nConnection: X-Filter\r\nX-Filter: x\r\n\r\n"},
	{"Connection that strips the length", "POST / HTTP/1.1\r\nHost: H\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\nhello"},
}

// TestSmuggling sends each shape and after it, on the same connection, a good
// request: upstream sees neither a request that was hidden nor that one.
func TestSmuggling(t *testing.T) {
	var evil atomic.Int64
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/" || r.Host != apiName {
			evil.Add(1)
		}
		w.Write([]byte("upstream"))
	}), shopConfig{})
	for _, r := range smuggled {
		t.Run(r.name, func(t *testing.T) {
			before := len(s.sink.all())
			c := connect(t, s.at)
			send(t, c, strings.ReplaceAll(r.input, "H\r\n", apiName+"\r\n")+"GET /evil HTTP/1.1\r\nHost: "+apiName+"\r\n\r\n")
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
			if err != nil {
				t.Fatalf("the answer is %q: %v", got, err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode/100 != 4 || !strings.HasPrefix(string(body), "holdfast refused") || strings.Count(string(body), "\n") != 1 {
				t.Errorf("answered %d %q", resp.StatusCode, body)
			}
			grave := false
			for _, ev := range s.sink.all()[before:] {
				if got, want := ev.Detail["method"]+" "+ev.Detail["path"], wantDetail(r.input); strings.HasPrefix(ev.Detail["reason"], "request smuggling: ") && got != want {
					t.Errorf("the event is of %q, want %q: %v", got, want, ev)
				}
				grave = grave || ev.Detail["severity"] == "high" && strings.HasPrefix(ev.Detail["reason"], "request smuggling: ")
			}
			if !grave {
				t.Errorf("there is no grave event: %v", s.sink.all()[before:])
			}
		})
	}
	if n := evil.Load(); n != 0 {
		t.Errorf("upstream saw %d requests that were hidden", n)
	}
}

// wantDetail is the method and path in the event about input, if its first line has both.
func wantDetail(input string) string {
	for odd, want := range map[string]string{
		"GET http://H/ ": "GET /", "CONNECT ": "CONNECT evil.example.org:443", "OPTIONS ": "OPTIONS *", "GET /a b ": "GET /a b",
		"GET\t/ ": " ", "GET /a#b ": "GET /a#b", "PRI ": "PRI *", "\r\n": " ",
	} {
		if strings.HasPrefix(input, odd) {
			return want
		}
	}
	f := strings.Fields(input)
	return f[0] + " /"
}

func TestFramed(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %v", r.Method, r.RequestURI, b, r.Trailer)
	}), shopConfig{})
	rows := []struct{ name, input, want string }{
		{"a body of chunks", "POST /a HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "POST /a hello world map[]"},
		{"chunk sizes with zeros and capitals", "POST /a HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: Chunked\r\n\r\n000A\r\n0123456789\r\n00\r\n\r\n", "POST /a 0123456789 map[]"},
		{"trailers", "POST /a HTTP/1.1\r\nHost: H\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n", "POST /a a map[X-Sum:[7]]"},
		{"GET with a body", "GET /a HTTP/1.1\r\nHost: H\r\nContent-Length: 5\r\n\r\nhello", "GET /a hello map[]"},
		{"GET with chunks", "GET /a HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "GET /a a map[]"},
		{"a body that looks like a request", "POST /a HTTP/1.1\r\nHost: H\r\nContent-Length: 27\r\n\r\nGET /evil HTTP/1.1\r\nHost: H", "POST /a GET /evil HTTP/1.1\r\nHost: H map[]"},
		{"a target that net/url would rewrite", "GET //a/..%2f%zz HTTP/1.1\r\nHost: H\r\n\r\n", ""},
		{"a target with what is usually escaped", "GET /a|b\"{c}^`%41?x=|\" HTTP/1.1\r\nHost: H\r\n\r\n", "GET /a|b\"{c}^`%41?x=|\"  map[]"},
		{"two slashes first", "GET //a/b?c HTTP/1.1\r\nHost: H\r\n\r\n", "GET //a/b?c  map[]"},
		{"an empty query", "GET /a? HTTP/1.1\r\nHost: H\r\n\r\n", "GET /a?  map[]"},
		{"HTTP/2 by upgrade is not taken up", "GET /a HTTP/1.1\r\nHost: H\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", "GET /a  map[]"},
	}
	for _, r := range rows {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow %v", r.name, slow), func(t *testing.T) {
				c := connect(t, s.at)
				input := strings.ReplaceAll(r.input, "H\r\n", apiName+"\r\n")
				if slow {
					for i := range input {
						send(t, c, input[i:i+1])
					}
				} else {
					send(t, c, input+"GET /next HTTP/1.1\r\nHost: "+apiName+"\r\n\r\n")
				}
				in := bufio.NewReader(c)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				if r.want == "" {
					if resp.StatusCode != 400 {
						t.Errorf("answered %d %q", resp.StatusCode, b)
					}
					return
				}
				if string(b) != r.want {
					t.Errorf("answered %d %q, want %q", resp.StatusCode, b, r.want)
				}
				if !slow {
					if resp, err = http.ReadResponse(in, nil); err != nil {
						t.Fatal(err)
					}
					if b, _ := io.ReadAll(resp.Body); string(b) != "GET /next  map[]" {
						t.Errorf("the next request is answered %q", b)
					}
				}
			})
		}
	}
}

// guardFor is a guard over bytes, with an httpConn that records nothing outside.
func guardFor(t testing.TB, input []byte, piece int) *guard {
	rules, err := NewRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{limits: Limits{HeadBytes: 4 << 10, HeadTime: time.Minute}, ledger: &ledger{}}
	e.rules.Store(rules)
	v := &httpConn{engine: e, to: Destination{Name: "h", Port: 80}}
	return v.guarded(&recorded{input: input, piece: piece})
}

// FuzzGuard compares what passes the guard with how net/http reads it: it takes
// each request that passed, and frames it alike.
func FuzzGuard(f *testing.F) {
	for _, r := range smuggled {
		f.Add([]byte(r.input), 7)
	}
	f.Add([]byte("POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.0\r\n\r\n"), 1)
	f.Add([]byte("GET /a?b HTTP/1.1\r\nHost: H\r\nContent-Length: 3\r\n\r\nabcPUT / HTTP/1.1\r\nHost: x\r\n\r\n"), 100)
	f.Fuzz(func(t *testing.T, input []byte, piece int) {
		g := guardFor(t, input, piece&0xff)
		for range 10 {
			var passed bytes.Buffer
			bodyless, whole, _ := passOne(g, &passed)
			if passed.Len() == 0 {
				return
			}
			in := bufio.NewReader(bytes.NewReader(passed.Bytes()))
			r, err := http.ReadRequest(in)
			if err != nil {
				t.Fatalf("net/http does not read %q: %v", passed.Bytes(), err)
			}
			if r.RequestURI != g.current().target {
				t.Fatalf("net/http reads target %q, the guard %q", r.RequestURI, g.current().target)
			}
			_, err = io.Copy(io.Discard, r.Body)
			if !whole {
				return
			}
			if rest, _ := io.ReadAll(in); err != nil || len(rest) > 0 {
				t.Fatalf("net/http ends %q before %q (%v)", passed.Bytes(), rest, err)
			}
			if bodyless != (r.ContentLength == 0 && len(r.TransferEncoding) == 0) {
				t.Fatalf("net/http and the guard differ on whether %q has a body", passed.Bytes())
			}
			g.next()
		}
	})
}

// passOne reads what the guard lets through of one request; whole says that it
// was all of it.
func passOne(g *guard, to *bytes.Buffer) (bodyless, whole bool, err error) {
	p := make([]byte, 512)
	for {
		n, err := g.Read(p)
		to.Write(p[:n])
		if err != nil {
			return false, false, err
		}
		if g.ready == 0 && !g.body.more() {
			h := g.current().body
			return !h.more(), true, nil
		}
	}
}

func TestGuardBySingleBytes(t *testing.T) {
	input := "POST / HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	g := guardFor(t, []byte(input+"GET"), 1)
	got := make([]byte, len(input))
	if _, err := io.ReadFull(iotest.OneByteReader(g), got); err != nil || string(got) != input {
		t.Errorf("read %q (%v)", got, err)
	}
}
