package network

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"holdfast.dev/holdfast/internal/testenv"
)

// inUse is the memory that is in use, in bytes.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHeadWithoutEnd(t *testing.T) {
	s := newShop(t, http.NotFoundHandler(), shopConfig{})
	for name, line := range map[string]string{
		"of many headers":    "X-A: " + strings.Repeat("a", 1000) + "\r\n",
		"of one long header": strings.Repeat("a", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			before := inUse()
			c := connect(t, s.at)
			send(t, c, "GET / HTTP/1.1\r\nHost: "+apiName+"\r\nX-A: ")
			sent := 0
			for sent < 1<<30 {
				n, err := io.WriteString(c, line)
				if sent += n; err != nil {
					break
				}
			}
			if sent > 8<<20 {
				t.Errorf("%d bytes of a head were taken in", sent)
			}
			if got := inUse(); got > before+4<<20 {
				t.Errorf("memory in use went from %d to %d", before, got)
			}
		})
	}
	c := connect(t, s.at)
	send(t, c, "GET / HTTP/1.1\r\nHost: "+apiName+"\r\nX-A: "+strings.Repeat("a", 100<<10))
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("the answer is %v (%v)", resp, err)
	}
}

// TestSlowHeads has a head come a byte at a time: its time counts from its first
// byte, on a fresh connection and on one that is kept.
func TestSlowHeads(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), shopConfig{config: func(c *Config) { c.Limits.HeadTime = 300 * time.Millisecond }})
	for _, first := range []string{"", "GET / HTTP/1.1\r\nHost: " + apiName + "\r\n\r\n"} {
		c := connect(t, s.at)
		in := bufio.NewReader(c)
		if send(t, c, first); first != "" {
			if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range 1000 {
				if _, err := io.WriteString(c, "G"); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		begun := time.Now()
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("after %q the answer is %v (%v)", first, resp, err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		c.Close()
		<-over
	}
}

// TestBodyWithoutEnd streams: nothing grows, and it ends with the client.
func TestBodyWithoutEnd(t *testing.T) {
	var read atomic.Int64
	over := make(chan struct{})
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		read.Store(n)
		close(over)
	}), shopConfig{})
	c := connect(t, s.at)
	send(t, c, "POST / HTTP/1.1\r\nHost: "+apiName+"\r\nTransfer-Encoding: chunked\r\n\r\n")
	before := inUse()
	chunk := []byte("8000\r\n" + strings.Repeat("x", 0x8000) + "\r\n")
	for range 2000 {
		if _, err := c.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if got := inUse(); got > before+4<<20 {
		t.Errorf("memory in use went from %d to %d", before, got)
	}
	c.Close()
	eventually(t, "upstream learns of the end", patience, over)
	if n := read.Load(); n < 60<<20 {
		t.Errorf("upstream read %d bytes", n)
	}
	until(t, "the connection ends", func() bool { return s.Stats().Open == 0 })
}

func TestManyConnectionsLeaveNothing(t *testing.T) {
	testenv.NoGoroutines(t)
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") }), shopConfig{secure: true, old: true})
	rounds := func(n int) {
		for range n {
			if _, got := s.ask("GET", "/", nil, "Connection", "close"); got != "x" {
				t.Fatalf("answered %q", got)
			}
		}
		until(t, "the connections end", func() bool { return s.Stats().Open == 0 })
	}
	rounds(50)
	before := inUse()
	rounds(400)
	if got := inUse(); got > before+2<<20 {
		t.Errorf("memory in use went from %d to %d", before, got)
	}
	s.Close()
}

// second is a client that writes frames of HTTP/2 by hand.
type second struct {
	*http2.Framer
	conn  *tls.Conn
	heads bytes.Buffer
	enc   *hpack.Encoder
}

func dialSecond(t *testing.T, s *shop) *second {
	t.Helper()
	c := tls.Client(connect(t, s.at), &tls.Config{InsecureSkipVerify: true, ServerName: apiName, NextProtos: []string{"h2"}})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	send(t, c, http2.ClientPreface)
	f := &second{Framer: http2.NewFramer(c, c), conn: c}
	f.enc = hpack.NewEncoder(&f.heads)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.AllowIllegalWrites = true
	f.WriteSettings()
	return f
}

// ask sends a head and returns the status, or how the stream or the connection
// ended.
func (f *second) ask(fields ...string) string {
	f.heads.Reset()
	for i := 0; i < len(fields); i += 2 {
		f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.heads.Bytes(), EndStream: true, EndHeaders: true})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "end: " + err.Error()
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.GoAwayFrame:
			return "goaway"
		}
	}
}

func TestSecondVersionByHand(t *testing.T) {
	var evil atomic.Int64
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/" || r.Host != apiName || len(r.TransferEncoding) > 0 {
			evil.Add(1)
		}
	}), shopConfig{secure: true})
	good := []string{":method", "GET", ":scheme", "https", ":path", "/", ":authority", apiName}
	replaced := func(name, value string) []string {
		out := append([]string{}, good...)
		for i := 0; i < len(out); i += 2 {
			if out[i] == name {
				out[i+1] = value
			}
		}
		return out
	}
	more := func(fields ...string) []string { return append(append([]string{}, good...), fields...) }
	rows := []struct {
		name   string
		fields []string
		ok     bool
	}{
		{"a good one", good, true},
		{"the name in capitals with the port", replaced(":authority", "API.example.org.:443"), true},
		{"Host that agrees", more("host", apiName), true},
		{"another authority", replaced(":authority", "evil.example.org"), false},
		{"another port", replaced(":authority", apiName+":80"), false},
		{"userinfo", replaced(":authority", "x@"+apiName), false},
		{"no authority", replaced(":authority", ""), false},
		{"another Host", more("host", "evil.example.org"), false},
		{"two authorities", more(":authority", "evil.example.org"), false},
		{"two paths", more(":path", "/evil"), false},
		{"a path with a space and a version", replaced(":path", "/ HTTP/1.1\t/evil"), false},
		{"a path that ends the line", replaced(":path", "/ HTTP/1.1\r\nHost: evil\r\n\r\n"), false},
		{"a path with a fragment", replaced(":path", "/#evil"), false},
		{"an absolute path", replaced(":path", "https://evil.example.org/"), false},
		{"*", replaced(":path", "*"), false},
		{"a method that ends the line", replaced(":method", "GET /evil HTTP/1.1\r\nX: "), false},
		{"a method with a space", replaced(":method", "GET /evil"), false},
		{"CONNECT", []string{":method", "CONNECT", ":authority", "evil.example.org:443"}, false},
		{"an extended CONNECT", more(":protocol", "websocket"), false},
		{"Transfer-Encoding", more("transfer-encoding", "chunked"), false},
		{"Connection", more("connection", "authorization"), false},
		{"Upgrade", more("upgrade", "h2c"), false},
		{"a name in capitals", more("X-A", "b"), false},
		{"a value that ends the line", more("x-a", "b\r\nhost: evil"), false},
		{"a name that ends the line", more("x-a: b\r\nhost", "evil"), false},
		{"a pseudo-header behind a header", []string{":method", "GET", ":scheme", "https", "x-a", "b", ":path", "/", ":authority", apiName}, false},
		{"an unknown pseudo-header", more(":evil", "1"), false},
		{"two Content-Lengths", more("content-length", "0", "content-length", "5"), false},
		{"a Content-Length without a body", more("content-length", "5"), false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := dialSecond(t, s).ask(r.fields...)
			if r.ok != (got == "200") {
				t.Errorf("it ended with %s", got)
			}
		})
	}
	if n := evil.Load(); n > 0 {
		t.Errorf("upstream saw %d requests that it should not", n)
	}
}

func TestAgrees(t *testing.T) {
	d := Destination{Name: apiName, Port: 8443}
	six := Destination{Name: "2001:db8::1", Port: 443}
	rows := []struct {
		host string
		to   Destination
		ok   bool
	}{
		{apiName + ":8443", d, true},
		{apiName, d, false}, // means port 443
		{apiName + ":443", d, false},
		{apiName + ":8443:8443", d, false},
		{apiName + ":+8443", d, false},
		{apiName + ":08443", d, false},
		{"[2001:db8::1]", six, true},
		{"[2001:DB8:0::1]:443", six, true},
		{"2001:db8::1", six, false},
		{"[2001:db8::1", six, false},
		{"[2001:db8::1%25eth0]", six, false},
		{"[2001:db8::2]", six, false},
	}
	for _, r := range rows {
		if why := agrees(r.host, r.to, true); (why == "") != r.ok {
			t.Errorf("%q for %s: %q", r.host, net.JoinHostPort(r.to.Name, fmt.Sprint(r.to.Port)), why)
		}
	}
}
