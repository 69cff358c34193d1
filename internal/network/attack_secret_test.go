package network

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestNoSecretInFailures has an upstream answer with the secret instead of a status, so
// that the error of net/http quotes it.
func TestNoSecretInFailures(t *testing.T) {
	for _, line := range []string{"HTTP/1.1 %s x", "%s", "HTTP/1.1 200 OK\r\nX %s", "HTTP/1.1 200 OK\r\nContent-Length: %s", "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s"} {
		s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, line+"\r\n\r\n", r.Header.Get("Authorization"))
		}), shopConfig{secure: true, old: true, rule: bindForge, credentials: newVault(nil)})
		_, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
		all := fmt.Sprint(got, s.Refusals(), s.Unreachable(), s.Observations(), s.sink.all())
		if strings.Contains(all, testSecret) {
			t.Errorf("after %q the secret stands in %s", line, all)
		}
		if len(s.Unreachable()) == 0 {
			t.Errorf("after %q nothing says that there was no answer", line)
		}
	}
}

// TestEchoesInOlderAnswers has a server say in an answer that began before the
// first secret was lent what it heard in another request.
func TestEchoesInOlderAnswers(t *testing.T) {
	heard := make(chan string, 1)
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tell" {
			heard <- r.Header.Get("Authorization")
			return
		}
		w.(http.Flusher).Flush()
		fmt.Fprintf(w, "heard %s\n", <-heard)
	}), shopConfig{secure: true, rule: bindForge, credentials: newVault(nil)})
	r, err := http.NewRequest("GET", s.url("/listen"), nil)
	if err != nil {
		t.Fatal(err)
	}
	listening, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Body.Close()
	s.ask("GET", "/tell", nil, "Authorization", "Bearer "+testPlaceholder)
	got, err := io.ReadAll(listening.Body)
	if err != nil || !strings.HasPrefix(string(got), "heard Bearer ***") || strings.Contains(string(got), testSecret) {
		t.Errorf("the older answer says %q (%v)", got, err)
	}
}

// TestEchoAtAnotherPort has the same host show in the clear what it heard over TLS.
func TestEchoAtAnotherPort(t *testing.T) {
	var heard atomic.Value
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		heard.Store(r.Header.Get("Authorization"))
	}), shopConfig{secure: true, rule: bindForge, credentials: newVault(nil), config: func(c *Config) {
		c.Allow = append(c.Allow, permits(apiName, 80, policy.HTTP))
	}})
	status := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "heard ", heard.Load()) }))
	t.Cleanup(status.Close)
	s.out.at[Destination{Name: apiName, Port: 80}.String()] = status.Listener.Addr().String()
	s.ask("GET", "/tell", nil, "Authorization", "Bearer "+testPlaceholder)
	door := s.doorTo(apiName, 80)
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", door)
	}}}
	r, err := client.Get("http://" + apiName + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if got, err := io.ReadAll(r.Body); err != nil || !strings.HasPrefix(string(got), "heard Bearer ***") {
		t.Errorf("the other port says %q (%v)", got, err)
	}
}

// TestEchoedForms has a server write the secret as web frameworks do.
func TestEchoedForms(t *testing.T) {
	lower := func(s string) string { return strings.NewReplacer("%2F", "%2f", "%2B", "%2b").Replace(s) }
	escape := strings.NewReplacer("/", "%2F", "+", "%2B").Replace
	forms := map[string]func(string) string{
		"as it is":                      func(s string) string { return s },
		"in a URL":                      escape,
		"in a URL, in small letters":    func(s string) string { return lower(escape(s)) },
		"in JSON with escaped slashes":  func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
		"in HTML":                       html.EscapeString,
		"in HTML as Go's templates say": func(s string) string { return strings.ReplaceAll(s, "+", "&#43;") },
		"in hexadecimal":                func(s string) string { return hex.EncodeToString([]byte(s)) },
		"in hexadecimal, capitals":      func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	}
	for name, form := range forms {
		s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			echoed := form(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			w.Header().Set("X-Echo", echoed)
			w.Header().Set("Trailer", "X-Late")
			io.WriteString(w, echoed)
			w.Header().Set("X-Late", echoed)
		}), shopConfig{secure: true, rule: bindForge, credentials: newVault(nil)})
		resp, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
		for where, text := range map[string]string{"body": got, "header": resp.Header.Get("X-Echo"), "trailer": resp.Trailer.Get("X-Late")} {
			if strings.Trim(text, "*") != "" || text == "" {
				t.Errorf("%s the %s is %q", name, where, text)
			}
		}
	}
}

// TestEchoAsFieldName has a server take the secret for the name of a header.
func TestEchoAsFieldName(t *testing.T) {
	v := newVault(nil)
	const secret = "token-of-letters-alone-0123"
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "x")
	}), shopConfig{secure: true, rule: bindForge, credentials: fixed{v, secret}})
	resp, _ := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
	for name := range resp.Header {
		if strings.Contains(strings.ToLower(name), secret) {
			t.Errorf("a header is called %s", name)
		}
	}
}

// fixed is a vault with another secret.
type fixed struct {
	*vault
	secret string
}

func (f fixed) Issued() [][]byte { return [][]byte{[]byte(f.secret)} }

func (f fixed) Open(context.Context, string, Use) (Secret, error) {
	return Secret{Value: f.secret}, nil
}

// TestNoCompressedSockets: what WebSocket compresses cannot be searched.
func TestNoCompressedSockets(t *testing.T) {
	got := make(chan http.Header, 1)
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got <- r.Header.Clone() }),
		shopConfig{secure: true, old: true, rule: bindForge, credentials: newVault(nil)})
	s.ask("GET", "/", nil, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Extensions", "permessage-deflate", "Authorization", "Bearer "+testPlaceholder)
	if h := <-got; h.Get("Sec-Websocket-Extensions") != "" || h.Get("Upgrade") != "websocket" {
		t.Errorf("upstream is asked for %v", h)
	}
}

// TestHeaderThatIsTheSecretAlone: a format without anything around the secret.
func TestHeaderThatIsTheSecretAlone(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.Header.Get("X-Api-Key")))
	}), shopConfig{secure: true, rule: bindForge, credentials: newVault(func(b *Binding) { b.Header, b.Format = "X-Api-Key", "{}" })})
	if resp, got := s.ask("GET", "/", nil, "X-Api-Key", testPlaceholder); resp.StatusCode != 200 || got != fmt.Sprint(len(testSecret)) {
		t.Errorf("answered %d %q", resp.StatusCode, got)
	}
}

// TestSecondSpellingsInHTTP2: a server behind a server of HTTP/1 may take _ for -.
func TestSecondSpellingsInHTTP2(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("upstream saw %v", r.Header) }), shopConfig{secure: true})
	for _, field := range []string{"transfer_encoding", "content_length", "Content_Length"} {
		got := dialSecond(t, s).ask(":method", "GET", ":scheme", "https", ":path", "/", ":authority", apiName, field, "chunked")
		if got == "200" {
			t.Errorf("%s passed", field)
		}
	}
}

// TestSwitchToAnotherProtocol has upstream answer 101 to what was not asked.
func TestSwitchToAnotherProtocol(t *testing.T) {
	for _, row := range []struct{ asked, answered string }{{"websocket", "h2c"}, {"h2c", "h2c"}, {"h2c", "websocket"}, {"websocket", ""}, {"", "websocket"}} {
		s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\nTUNNEL", row.answered)
			io.Copy(c, c)
		}), shopConfig{rule: func(r *policy.HostRule) { r.Kind = policy.HTTP }})
		c := connect(t, s.at)
		send(t, c, "GET / HTTP/1.1\r\nHost: "+apiName+"\r\nConnection: Upgrade\r\nUpgrade: "+row.asked+"\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && resp.StatusCode == 101 {
			t.Errorf("asked for %q, answered %q: it was passed on", row.asked, row.answered)
		}
		s.mu.Lock()
		for x := range s.underWay {
			if _, raw := x.guard.stage(); raw {
				t.Errorf("asked for %q, answered %q: requests are no longer guarded", row.asked, row.answered)
			}
		}
		s.mu.Unlock()
		io.WriteString(c, "GET /a HTTP/1.1\nHost: evil.example.org\n\n")
		if rest, _ := io.ReadAll(c); strings.Contains(string(rest), "HTTP/1.1 2") {
			t.Errorf("asked for %q, answered %q: then %q", row.asked, row.answered, rest)
		}
	}
}
