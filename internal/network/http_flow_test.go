package network

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// ways are how apiName is reached in tests of what flows.
var ways = []struct {
	name string
	shopConfig
}{
	{"in the clear", shopConfig{}},
	{"HTTP/1.1 in TLS", shopConfig{secure: true, old: true}},
	{"HTTP/2", shopConfig{secure: true}},
}

// everyWay runs a test over each of them, with h upstream.
func everyWay(t *testing.T, h http.HandlerFunc, test func(t *testing.T, s *shop, http2 bool)) {
	t.Helper()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { test(t, newShop(t, h, w.shopConfig), w.secure && !w.old) })
	}
}

// TestStreamsFlow has server-sent events come one by one, each after the one
// before was seen.
func TestStreamsFlow(t *testing.T) {
	seen := make(chan struct{}, 1)
	everyWay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		for i := range 20 {
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
			fmt.Fprintf(w, "data: %d %d\n\n", i, time.Now().UnixNano())
			http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, s *shop, _ bool) {
		resp, err := s.client.Get(s.url("/events"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		least := time.Hour
		for i := range 20 {
			seen <- struct{}{}
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now().UnixNano()
			var n, sent int64
			if fmt.Sscanf(line, "data: %d %d", &n, &sent); n != int64(i) {
				t.Fatalf("event %d is %q", i, line)
			}
			least = min(least, time.Duration(now-sent))
			in.ReadString('\n')
		}
		if least > 10*time.Millisecond {
			t.Errorf("the fastest event took %v", least)
		}
	})
}

// TestBothWaysAtOnce is what gRPC does: both bodies at the same time, and the
// status in trailers.
func TestBothWaysAtOnce(t *testing.T) {
	everyWay(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set("Content-Type", "application/grpc")
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			fmt.Fprintf(w, "re: %s", line)
			http.NewResponseController(w).Flush()
		}
		w.Header().Set("Grpc-Status", "0 "+r.Header.Get("Te")+" "+r.Trailer.Get("X-Sum"))
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "late")
	}, func(t *testing.T, s *shop, http2 bool) {
		out, pipe := io.Pipe()
		r, err := http.NewRequest("POST", s.url("/pkg.Service/Method"), out)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("TE", "trailers")
		r.Trailer = http.Header{"X-Sum": nil}
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		for i := range 10 {
			fmt.Fprintf(pipe, "message %d\n", i)
			line, err := in.ReadString('\n')
			if want := fmt.Sprintf("re: message %d\n", i); err != nil || line != want {
				t.Fatalf("read %q (%v), want %q", line, err, want)
			}
		}
		r.Trailer.Set("X-Sum", "10")
		pipe.Close()
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("then came %q (%v)", rest, err)
		}
		if got := resp.Trailer.Get("Grpc-Status"); got != "0 trailers 10" {
			t.Errorf("Grpc-Status is %q, want the TE and trailer of the request in it", got)
		}
		if got := resp.Trailer.Get("Grpc-Message"); got != "late" {
			t.Errorf("a trailer that was not announced is %q", got)
		}
	})
}

func TestWebSocket(t *testing.T) {
	upgraded := func(w http.ResponseWriter, r *http.Request) {
		c, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAlt-Svc: h3=\":443\"\r\n\r\nfirst", r.Header.Get("Upgrade"))
		io.Copy(c, in)
	}
	for _, w := range ways[:2] {
		t.Run(w.name, func(t *testing.T) {
			s := newShop(t, http.HandlerFunc(upgraded), w.shopConfig)
			r, err := http.NewRequest("GET", s.url("/socket"), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			resp, err := s.client.Transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != 101 || resp.Header.Get("Alt-Svc") != "" {
				t.Fatalf("answered %d %v", resp.StatusCode, resp.Header)
			}
			c := resp.Body.(io.ReadWriteCloser)
			defer c.Close()
			for i, input := range []string{"", "GET / HTTP/1.1\r\n", strings.Repeat("x", 100000)} {
				if i == 0 {
					input = "first"
				} else if _, err := io.WriteString(c, input); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(input))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != input {
					t.Fatalf("read %.20q (%v)", got, err)
				}
			}
			c.Close()
			until(t, "the event of the request", func() bool { return s.event("net.request", "status", "101") })
		})
	}
}

// event reports whether there is an event with a detail.
func (w *world) event(action, key, value string) bool {
	for _, ev := range w.sink.all() {
		if ev.Action == action && ev.Detail[key] == value {
			return true
		}
	}
	return false
}

func TestUpgradesToOtherProtocolsDoNotHappen(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
	}), shopConfig{})
	for _, ask := range []string{"raw", "websocket"} {
		if resp, got := s.ask("GET", "/", nil, "Connection", "Upgrade", "Upgrade", ask); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("who asks for %s, and is switched to raw, gets %d %q", ask, resp.StatusCode, got)
		}
	}
}

func TestHeadersThatDoNotPass(t *testing.T) {
	everyWay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("Location", "http://169.254.169.254/")
		w.WriteHeader(302)
		r.Header.Write(w)
	}, func(t *testing.T, s *shop, http2 bool) {
		header := []string{"X-Kept", "1", "X-Kept", "2", "Authorization", "Bearer t", "Accept-Encoding", "gzip"}
		for _, f := range droppedFields {
			header = append(header, strings.Replace(f.name, "*", "host", 1), "evil")
		}
		header = append(header, "X_Forwarded_Host", "evil", "X-Forwarded-Host", "evil", "X-Original-URL", "/evil")
		if !http2 {
			header = append(header, "Keep-Alive", "5", "Proxy-Connection", "keep-alive")
		}
		resp, got := s.ask("GET", "/", nil, header...)
		if want := "Accept-Encoding: gzip\r\nAuthorization: Bearer t\r\nUser-Agent: Go-http-client/"; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\r\nX-Kept: 1\r\nX-Kept: 2\r\n") || strings.Contains(got, "evil") {
			t.Errorf("upstream got\n%s", got)
		}
		if resp.StatusCode != 302 || resp.Header.Get("Location") != "http://169.254.169.254/" || resp.Header.Get("Alt-Svc") != "" {
			t.Errorf("the client got %d %v", resp.StatusCode, resp.Header)
		}
	})
}

func gzipped(s string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	io.WriteString(z, s)
	z.Close()
	return out.Bytes()
}

func TestBodiesPassUntouched(t *testing.T) {
	zipped := gzipped(strings.Repeat("text ", 10000))
	everyWay(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zipped)
		case "/none":
			w.WriteHeader(204)
		default:
			http.NewResponseController(w).EnableFullDuplex()
			io.Copy(w, r.Body)
		}
	}, func(t *testing.T, s *shop, _ bool) {
		if _, got := s.ask("GET", "/gzip", nil, "Accept-Encoding", "gzip"); got != string(zipped) {
			t.Errorf("%d bytes came of %d that were compressed", len(got), len(zipped))
		}
		large := strings.Repeat("0123456789abcdef", 1<<17)
		for _, body := range []io.Reader{strings.NewReader(large), struct{ io.Reader }{strings.NewReader(large)}} {
			if _, got := s.ask("POST", "/echo", body); got != large {
				t.Errorf("%d bytes came back of %d", len(got), len(large))
			}
		}
		if resp, got := s.ask("GET", "/none", nil); resp.StatusCode != 204 || got != "" {
			t.Errorf("nothing is %d %q", resp.StatusCode, got)
		}
		if resp, got := s.ask("HEAD", "/gzip", nil); resp.StatusCode != 200 || got != "" {
			t.Errorf("HEAD is answered %d %q", resp.StatusCode, got)
		}
	})
}

func TestInterimAnswers(t *testing.T) {
	everyWay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	}, func(t *testing.T, s *shop, _ bool) {
		for path, want := range map[string]string{"/take": "200 hello", "/refuse": "413 "} {
			r, err := http.NewRequest("PUT", s.url(path), strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Expect", "100-continue")
			r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				if code != 100 {
					t.Errorf("interim answer %d came through", code)
				}
				return nil
			}}))
			resp, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if got := fmt.Sprintf("%d %s", resp.StatusCode, b); got != want || resp.Header.Get("Link") != "" {
				t.Errorf("%s is answered %q %v", path, got, resp.Header)
			}
		}
	})
}

func TestHTTP10(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		fmt.Fprint(w, r.Proto, " ", r.Host)
	}), shopConfig{})
	c := connect(t, s.at)
	send(t, c, "GET / HTTP/1.0\r\n\r\n")
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.0 200 OK\r\n") || !strings.HasSuffix(string(got), "\r\n\r\nHTTP/1.1 api.example.org") {
		t.Errorf("read %q (%v)", got, err)
	}
}

func TestForwardDoor(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.RequestURI)
	}), shopConfig{})
	rows := []struct{ name, target, host, want string }{
		{"an absolute target", "http://api.example.org/a?b", apiName, "api.example.org /a?b"},
		{"one without a path", "http://api.example.org?b", apiName, "api.example.org /?b"},
		{"one in capitals with the port", "HTTP://API.example.org.:80/a", apiName, "api.example.org /a"},
		{"another Host", "http://api.example.org/", "evil.example.org", ""},
		{"userinfo", "http://evil@api.example.org/", apiName, ""},
		{"a fragment", "http://api.example.org/#evil", apiName, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := connect(t, s.proxy)
			send(t, c, "GET "+r.target+" HTTP/1.1\r\nHost: "+r.host+"\r\nProxy-Authorization: Basic eDp5\r\n\r\nGET http://evil.example.org/ HTTP/1.1\r\nHost: evil.example.org\r\n\r\n")
			in := bufio.NewReader(c)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil || (r.want != "") != (string(b) == r.want) || !resp.Close {
				t.Errorf("answered %d %q (%v), close %v", resp.StatusCode, b, err, resp.Close)
			}
			if rest, _ := io.ReadAll(in); len(rest) > 0 {
				t.Errorf("then came %q", rest)
			}
		})
	}
}
