package alert

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// request is what a hook got.
type request struct {
	header http.Header
	body   string
	status int // that it answered
}

// hook is a server that answers as configured.
type hook struct {
	*httptest.Server
	code  atomic.Int64
	text  atomic.Value
	delay atomic.Int64

	mu  sync.Mutex
	got []request
}

func newHook(t *testing.T) *hook { return startHook(t, httptest.NewServer) }

func startHook(t *testing.T, start func(http.Handler) *httptest.Server) *hook {
	h := &hook{}
	h.code.Store(200)
	h.text.Store("")
	h.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case <-time.After(time.Duration(h.delay.Load())):
		case <-r.Context().Done():
			return
		}
		code := int(h.code.Load())
		if code/100 == 3 {
			w.Header().Set("Location", h.text.Load().(string))
		}
		h.mu.Lock()
		h.got = append(h.got, request{r.Header.Clone(), string(body), code})
		h.mu.Unlock()
		w.WriteHeader(code)
		io.WriteString(w, h.text.Load().(string))
	}))
	t.Cleanup(h.Server.Close)
	return h
}

func (h *hook) answer(code int) { h.code.Store(int64(code)) }

func (h *hook) taken() []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]request(nil), h.got...)
}

func (h *hook) wait(t *testing.T, n int) []request {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(2 * time.Millisecond) {
		if got := h.taken(); len(got) >= n {
			return got
		}
	}
	t.Fatalf("%d requests came, want %d", len(h.taken()), n)
	return nil
}

func (h *hook) sink() policy.AlertSink {
	return policy.AlertSink{Kind: "webhook", Address: h.URL + "/S3CR3T", Severity: "low", Timeout: 2 * time.Second}
}

func private(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWebhook(t *testing.T) {
	h := newHook(t)
	s := h.sink()
	s.Secret = private(t, "0123456789abcdef\n")
	s.Headers = private(t, "Authorization: Bearer t0ken\r\n")
	d := opened(t, Options{Version: "0.4.0"}, s)
	d.Raise(sample("high", "/x\r\nX-Forged: 1"))
	noErrors(t, d.Close())
	got := h.taken()
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	r := got[0]
	for name, want := range map[string]string{"Content-Type": "application/json", "User-Agent": "holdfast/0.4.0", "Authorization": "Bearer t0ken", "Holdfast-Alert-Id": "s1:1", "X-Forged": "",
		"Holdfast-Signature": "v1=" + Signature([]byte("0123456789abcdef"), r.header.Get("Holdfast-Timestamp"), []byte(r.body))} {
		if r.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, r.header.Get(name), want)
		}
	}
	var doc Document
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil || doc.Object != "/x\r\nX-Forged: 1" || doc.Rule != "FS-01" || doc.Version != 1 {
		t.Errorf("document is %+v, %v", doc, err)
	}
}

func TestASessionCannotForgeAHeader(t *testing.T) {
	h := newHook(t)
	d := opened(t, Options{}, h.sink())
	a := sample("high", "/x")
	a.Session = "s\r\nX-Forged: 1\xff"
	d.Raise(a)
	noErrors(t, d.Close())
	if got := h.taken(); len(got) != 1 || got[0].header.Get("Holdfast-Alert-Id") != "s__X-Forged:_1_:1" || got[0].header.Get("X-Forged") != "" {
		t.Errorf("requests are %+v", got)
	}
}

func TestAFailingWebhookIsTriedAgain(t *testing.T) {
	for _, code := range []int{500, 503, 429, 404, 401} {
		h := newHook(t)
		h.answer(code)
		said := make(chan error, 8)
		d := opened(t, Options{Failed: func(_ string, err error) { said <- err }}, h.sink())
		d.Raise(sample("high", "/x"))
		h.wait(t, 3)
		h.answer(200)
		noErrors(t, d.Close())
		got := h.taken()
		if last := got[len(got)-1]; last.status != 200 || last.body != got[0].body {
			t.Errorf("%d: the last of %d requests was answered %d", code, len(got), last.status)
		}
		if err := <-said; !strings.Contains(err.Error(), fmt.Sprint(code)) || strings.Contains(err.Error(), "S3CR3T") || len(said) > 0 {
			t.Errorf("%d: it was said %v, and %d more", code, err, len(said))
		}
	}
}

func TestARefusedAlertIsNotTriedAgain(t *testing.T) {
	h := newHook(t)
	h.answer(400)
	d := opened(t, Options{}, h.sink())
	d.Raise(sample("high", "/x"))
	u := onlyOne(t, d.Close())
	if len(h.taken()) != 1 || len(u.Alerts) != 1 {
		t.Errorf("%d requests, %+v", len(h.taken()), u)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	other, h := newHook(t), newHook(t)
	h.text.Store(other.URL)
	h.answer(307)
	d, failed := failing(t, Options{Grace: 200 * time.Millisecond}, h.sink())
	d.Raise(sample("high", "/x"))
	failed()
	u := onlyOne(t, d.Close())
	if len(other.taken()) != 0 || !strings.Contains(u.Error(), "redirects are not followed") {
		t.Errorf("%d requests went elsewhere: %v", len(other.taken()), u)
	}
}

func TestADeadServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for kind, at := range map[string]string{"webhook": "http://" + address + "/S3CR3T", "otlp": "http://" + address + "/v1/logs", "syslog": "tcp://" + address} {
		d, failed := failing(t, Options{Grace: 100 * time.Millisecond}, policy.AlertSink{Kind: kind, Address: at, Timeout: 10 * time.Second})
		d.Raise(sample("high", "/x"))
		failed()
		u := onlyOne(t, d.Close())
		if len(u.Alerts) != 1 || strings.Contains(u.Error(), "S3CR3T") || !strings.Contains(u.Error(), "refused") {
			t.Errorf("%s: %v", kind, u)
		}
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	h := startHook(t, func(handler http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(handler)
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes that fail are what is tested
		s.StartTLS()
		return s
	})
	d, failed := failing(t, Options{Grace: 100 * time.Millisecond}, h.sink())
	d.Raise(sample("high", "/x"))
	failed()
	if u := onlyOne(t, d.Close()); !strings.Contains(u.Error(), "certificate") || len(h.taken()) != 0 {
		t.Errorf("%v", u)
	}
	s := h.sink()
	s.Authority = private(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})))
	d = opened(t, Options{}, s)
	d.Raise(sample("high", "/x"))
	noErrors(t, d.Close())
	if len(h.taken()) != 1 {
		t.Error("it did not come with the authority")
	}
}

func TestCollector(t *testing.T) {
	h := newHook(t)
	h.text.Store(`{"partialSuccess":{}}`)
	s := h.sink()
	s.Kind = "otlp"
	d := opened(t, Options{Host: "build-1"}, s)
	d.Raise(sample("critical", "/x\xff"))
	noErrors(t, d.Close())
	var r struct {
		ResourceLogs []struct {
			ScopeLogs []struct {
				LogRecords []struct {
					SeverityNumber int
					EventName      string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(h.taken()[0].body), &r); err != nil {
		t.Fatal(err)
	}
	if one := r.ResourceLogs[0].ScopeLogs[0].LogRecords[0]; one.SeverityNumber != 18 || one.EventName != "holdfast.alert.raise" {
		t.Errorf("record is %+v", one)
	}
	h.text.Store(`{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"no"}}`)
	d = opened(t, Options{}, s)
	d.Raise(sample("critical", "/x"))
	if u := onlyOne(t, d.Close()); len(u.Alerts) != 1 {
		t.Errorf("a rejected record: %v", u)
	}
}

func TestHowLongToWait(t *testing.T) {
	for fails := 1; fails < 200; fails++ {
		d := retryTiming.after(fails)
		if most := min(retryTiming.most, retryTiming.first<<min(fails-1, 20)); d < most/2 || d > most {
			t.Fatalf("after %d failures %v", fails, d)
		}
	}
	err := judge(&http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"7"}}}, nil)
	var b *retryLater
	if !errors.As(err, &b) || b.after != 7*time.Second {
		t.Errorf("%v", err)
	}
}
