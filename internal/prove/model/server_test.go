package model

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

var paths = []string{"/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1beta/models/m:streamGenerateContent", "/v1beta/models/m:generateContent"}

func post(s http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	return w
}

// TestHostileRequests: an invalid request is refused with an error that agents
// can read, and nothing is played.
func TestHostileRequests(t *testing.T) {
	s := New(Options{Scripts: demo})
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "a list": "[]", "a number": "7", "deep": `{"messages":` + deep + `}`,
		"wrong types":    `{"messages":7,"input":7,"contents":7,"tools":7,"model":[]}`,
		"text for tools": `{"tools":"x","messages":[],"input":[],"contents":[]}`,
		"no UTF-8":       "\xff\xfe",
	} {
		for _, path := range paths {
			w := post(s, path, body)
			var answer struct {
				Error struct{ Message string }
			}
			if w.Code != http.StatusBadRequest || json.Unmarshal(w.Body.Bytes(), &answer) != nil || answer.Error.Message == "" {
				t.Errorf("%s %s: %d %s", path, name, w.Code, w.Body)
			}
		}
	}
}

// TestOddRequests: a request that is merely odd is answered.
func TestOddRequests(t *testing.T) {
	s := New(Options{Scripts: demo})
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for name, body := range map[string]string{
		"empty":           `{}`,
		"null":            `null`,
		"nulls":           `{"messages":null,"input":null,"contents":null,"tools":null,"system":null,"systemInstruction":null}`,
		"content of odds": `{"messages":[{"role":"user","content":[1,null,"x",[["y"]],{"text":"[[script:demo]]"}]}],"input":[{"type":"message","role":"user","content":7}],"contents":[{}]}`,
		"deep content":    `{"messages":[{"role":"user","content":` + deep + `}],"input":[{"content":` + deep + `}]}`,
		"odd schemas":     `{"messages":[{"role":"user","content":"[[script:demo]]"}],"tools":[{"name":"Bash","input_schema":7},{"type":"function","function":{"name":"bash","parameters":{"properties":7}}}]}`,
		"tools of odds":   `{"tools":[{},{"type":"namespace","tools":[{"type":"namespace","tools":[{}]}]},{"function":{}}],"messages":[{"role":"user","content":"[[script:demo]]"}],"input":"[[script:demo]]"}`,
		"a forced tool":   `{"tools":[{"name":"x"}],"tool_choice":{"type":"tool","name":"y"},"messages":[]}`,
	} {
		for _, path := range paths {
			if w := post(s, path, body); w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s", path, name, w.Code, w.Body)
			}
		}
	}
}

func TestOtherPaths(t *testing.T) {
	s := New(Options{})
	for _, tt := range []struct {
		method, path string
		headers      map[string]string
		status       int
		holds        string
	}{
		{"HEAD", "/api/hello", nil, 200, ""},
		{"GET", "/", nil, 200, `"ok"`},
		{"GET", "/v1/models", nil, 200, `"data":[]`},
		{"POST", "/v1/messages/count_tokens", nil, 200, `"input_tokens"`},
		{"POST", "/v1beta/models/m:countTokens", nil, 200, `"totalTokens"`},
		{"POST", "/api/event_logging/batch", nil, 404, "no such path"},
		{"GET", "/v1/responses", map[string]string{"Upgrade": "websocket"}, 426, "WebSockets are not supported"},
		{"POST", "/v1/messages", map[string]string{"Content-Encoding": "zstd"}, 415, `zstd`},
		{"POST", "/v1/messages", map[string]string{"Content-Encoding": "gzip"}, 400, "unpacking"},
		{"PUT", "/v1/messages", nil, 400, "reading the request"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader("x"))
		for k, v := range tt.headers {
			r.Header.Set(k, v)
		}
		s.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.holds) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, w.Code, w.Body)
		}
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestTooLarge(t *testing.T) {
	s := New(Options{})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.CopyN(z, zeros{}, maxBody+2); err != nil {
		t.Fatal(err)
	}
	z.Close()
	for name, r := range map[string]*http.Request{
		"plain":    httptest.NewRequest("POST", "/v1/messages", io.LimitReader(zeros{}, maxBody+2)),
		"a packed": httptest.NewRequest("POST", "/v1/messages", &packed),
	} {
		if strings.Contains(name, "packed") {
			r.Header.Set("Content-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestPackedRequest(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, `{"model":"m","messages":[]}`)
	z.Close()
	r := httptest.NewRequest("POST", "/v1/messages", &packed)
	r.Header.Set("Content-Encoding", "gzip")
	w := httptest.NewRecorder()
	New(Options{}).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// far is a listener with an arbitrary address.
type far struct {
	net.Listener
	addr   net.Addr
	closed bool
}

func (f *far) Addr() net.Addr { return f.addr }
func (f *far) Close() error   { f.closed = true; return nil }

func TestServeRefusesTheWorld(t *testing.T) {
	for _, addr := range []net.Addr{
		&net.TCPAddr{IP: net.IPv4zero}, &net.TCPAddr{IP: net.IPv6zero}, &net.TCPAddr{}, &net.TCPAddr{IP: net.IPv4(192, 168, 0, 1)},
		&net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1")}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)},
	} {
		l := &far{addr: addr}
		if err := New(Options{}).Serve(t.Context(), l); !errors.Is(err, ErrNotLoopback) || !l.closed {
			t.Errorf("%v: %v, closed: %v", addr, err, l.closed)
		}
	}
}

// TestServe serves on loopback and on a Unix socket until its context ends, while
// a request is being answered.
func TestServe(t *testing.T) {
	testenv.NoGoroutines(t)
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan struct{})
		s := New(Options{Scripts: demo, Turn: func(ctx context.Context, _ Turn) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial(network, l.Addr().String())
		}}}
		asked := make(chan error, 1)
		go func() {
			r, err := client.Post("http://model/v1/messages", "application/json", strings.NewReader(`{"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"[[script:demo]]"}]}`))
			if err == nil {
				r.Body.Close()
			}
			asked <- err
		}()
		<-entered
		cancel()
		if err := <-served; err != nil {
			t.Errorf("%s: %v", network, err)
		}
		<-asked
		client.CloseIdleConnections()
	}
}

// full is a full disk.
type full struct{ writes int }

func (f *full) Write([]byte) (int, error) { f.writes++; return 0, errors.New("no space") }

// TestServeReportsALostLog: the reader of the log must learn that it is
// truncated.
func TestServeReportsALostLog(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	disk := &full{}
	s := New(Options{Wire: disk})
	post(s, "/v1/messages", "{}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Serve(ctx, l); err == nil || !strings.Contains(err.Error(), "writing the wire log: no space") || disk.writes != 1 {
		t.Errorf("%v after %d writes", err, disk.writes)
	}
}

// TestWireMasksKeys: no key of a request is readable in the log, wherever the
// request contains it.
func TestWireMasksKeys(t *testing.T) {
	const key = "sk-secret/0123456789"
	var out bytes.Buffer
	s := New(Options{Scripts: demo, Wire: &out})
	body := `{"model":"m","tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"[[script:demo]] my key is ` + key + ` or sk-secret\/0123456789"}]}`
	r := httptest.NewRequest("POST", "/v1/messages?beta=true&key="+key, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Cookie", "a="+key)
	r.Header.Set("User-Agent", "agent")
	s.ServeHTTP(httptest.NewRecorder(), r)
	post(s, "/v1/messages", "no JSON")
	log := out.String()
	if strings.Contains(log, "0123456789") {
		t.Errorf("a key is in the log:\n%s", log)
	}
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines:\n%s", len(lines), log)
	}
	for i, want := range []string{`"User-Agent":"agent"`, `"script":"demo","step":0`, `"text":"no JSON"`, `"kind":"refusal"`} {
		if !json.Valid([]byte(lines[i])) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	if !strings.Contains(lines[1], `"number":1`) || !strings.Contains(lines[3], `"number":2`) {
		t.Errorf("answers without the number of their request:\n%s", log)
	}
}

// TestWireMasksWhatLooksLikeASecret: a secret that an agent read and sends only
// in a body is recognised by its shape, and the line stays JSON.
func TestWireMasksWhatLooksLikeASecret(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, content := range []string{
		"the file holds " + secret,
		`{\"token\": \"` + secret + `\"}`,
		`DB_PASSWORD=` + secret + `\nexport PATH=/usr/bin`,
		`-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC` + secret + `\n-----END PRIVATE KEY-----`,
	} {
		var out bytes.Buffer
		s := New(Options{Scripts: demo, Wire: &out})
		post(s, "/v1/messages", `{"model":"m","tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"[[script:demo]]"},{"role":"user","content":"`+content+`"}]}`)
		line, _, _ := strings.Cut(out.String(), "\n")
		if strings.Contains(line, secret) || !strings.Contains(line, "[redacted:") {
			t.Errorf("logged: %s", line)
		}
		var l struct{ Body struct{ Model string } }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Body.Model != "m" {
			t.Errorf("%v: the body is no JSON: %s", err, line)
		}
	}
}

// TestWireSaysWhatWasMissing: the log shows a step that no tool can do.
func TestWireSaysWhatWasMissing(t *testing.T) {
	var out bytes.Buffer
	s := New(Options{Scripts: demo, Wire: &out})
	run(t, s, chatAgent{}, []string{Marker("demo")}, plainTools, true, nil)
	if !strings.Contains(out.String(), `"step":2,"unresolved":["no tool for fetch"]`) {
		t.Errorf("%s", out.String())
	}
}

// TestTogether: many agents at once, under the race detector.
func TestTogether(t *testing.T) {
	var out bytes.Buffer
	s := New(Options{Scripts: demo, Wire: &out, Turn: func(context.Context, Turn) error { return nil }})
	var all sync.WaitGroup
	for range 4 {
		for _, a := range allAgents() {
			all.Go(func() {
				if got := told(run(t, s, a, []string{Marker("demo")}, plainTools, true, nil)); len(got) != len(demoTold) {
					t.Errorf("%q", got)
				}
			})
		}
	}
	all.Wait()
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("no line of JSON: %s", line)
		}
	}
}

// TestTokensTakeTheirTime: a text is streamed in pieces with the pause between
// them.
func TestTokensTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Scripts: []Script{{Name: "m", Steps: []Step{{Op: Say, Text: "one two three"}}}}, Token: func() time.Duration { return time.Second }})
		for name, a := range allAgents() {
			began := time.Now()
			e := ask(t, s, a, []string{Marker("m")}, nil, plainTools, true)
			if took := time.Since(began); e.text != "one two three" || took != 2*time.Second {
				t.Errorf("%s: %q in %v", name, e.text, took)
			}
		}
	})
}

func TestPieces(t *testing.T) {
	for _, text := range []string{"", "a", " ", "\n\n", "one two", "äöü ß", strings.Repeat("é", 50), " lead and trail "} {
		if got := strings.Join(pieces(text), ""); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
