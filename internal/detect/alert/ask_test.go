package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

const askSecret = "a secret of more than sixteen bytes"

func newTestAsker(t *testing.T, url string) *Asker {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(askSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := NewAsker(policy.AlertSink{Kind: "webhook", Address: url + "/hook", Secret: secret}, "1.0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.pause, a.attempt = 5*time.Millisecond, 2*time.Second
	return a
}

var testQuestion = Question{ID: "k7m2", Nonce: "NONCE", Digest: "digest", Kind: "exec", What: []QuestionLine{{Name: "runs", Text: "git push"}}}

// respond answers a question with a body, signed for a nonce.
func respond(w http.ResponseWriter, nonce string, body string) {
	w.Header().Set("Holdfast-Signature", "v1="+Signature([]byte(askSecret), "answer."+nonce, []byte(body)))
	io.WriteString(w, body)
}

func allowing(nonce, digest string) string {
	text, _ := json.Marshal(Reply{Nonce: nonce, Digest: digest, Decision: "allow", Scope: "once", Reason: "fine", By: "ann"})
	return string(text)
}

func TestAskTakesASignedAnswer(t *testing.T) {
	var polls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stamp := r.Header.Get("Holdfast-Timestamp")
		if got := r.Header.Get("Holdfast-Signature"); got != "v1="+Signature([]byte(askSecret), stamp, body) {
			t.Errorf("the request is signed %q", got)
		}
		var q Question
		if err := json.Unmarshal(body, &q); err != nil || q.ID != "k7m2" || q.Type != "approval" || q.What[0].Text != "git push" {
			t.Errorf("the body is %s (%v)", body, err)
		}
		switch polls.Add(1) {
		case 1:
			w.WriteHeader(http.StatusAccepted)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		default:
			respond(w, q.Nonce, allowing(q.Nonce, q.Digest))
		}
	}))
	defer server.Close()
	r, err := newTestAsker(t, server.URL).Ask(context.Background(), testQuestion, func(err error) { t.Errorf("ignored: %v", err) })
	if err != nil || r.Decision != "allow" || r.By != "ann" || polls.Load() != 3 {
		t.Errorf("got %+v, %v after %d", r, err, polls.Load())
	}
}

func TestAskIgnoresWhatIsNoAnswer(t *testing.T) {
	good := allowing("NONCE", "digest")
	for name, row := range map[string]struct {
		want    string
		respond func(http.ResponseWriter)
	}{
		"not signed": {"is not signed", func(w http.ResponseWriter) { io.WriteString(w, good) }},
		"signed by another key": {"signature", func(w http.ResponseWriter) {
			w.Header().Set("Holdfast-Signature", "v1="+Signature([]byte("another key, long enough"), "answer.NONCE", []byte(good)))
			io.WriteString(w, good)
		}},
		"signed as a request": {"signature", func(w http.ResponseWriter) {
			w.Header().Set("Holdfast-Signature", "v1="+Signature([]byte(askSecret), "1", []byte(good)))
			io.WriteString(w, good)
		}},
		"an answer of before": {"signature", func(w http.ResponseWriter) { respond(w, "BEFORE", good) }},
		"changed after it was signed": {"signature", func(w http.ResponseWriter) {
			w.Header().Set("Holdfast-Signature", "v1="+Signature([]byte(askSecret), "answer.NONCE", []byte(good)))
			io.WriteString(w, strings.Replace(good, "once", "session", 1))
		}},
		"to another request":        {"another request", func(w http.ResponseWriter) { respond(w, "NONCE", allowing("OTHER", "digest")) }},
		"about something else":      {"another action", func(w http.ResponseWriter) { respond(w, "NONCE", allowing("NONCE", "other")) }},
		"neither yes nor no":        {"neither", func(w http.ResponseWriter) { respond(w, "NONCE", strings.Replace(good, "allow", "maybe", 1)) }},
		"with a field nobody knows": {"not understood", func(w http.ResponseWriter) { respond(w, "NONCE", `{"everything":true,`+good[1:]) }},
		"endless":                   {"more than", func(w http.ResponseWriter) { w.Write(bytes.Repeat([]byte("a"), 1<<20)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { row.respond(w) }))
			defer server.Close()
			ignored := 0
			r, err := newTestAsker(t, server.URL).Ask(context.Background(), testQuestion, func(err error) {
				if ignored++; !strings.Contains(err.Error(), row.want) {
					t.Errorf("ignored because %v", err)
				}
			})
			if err == nil || r != (Reply{}) || ignored != askIgnored {
				t.Errorf("got %+v, %v, ignored %d", r, err, ignored)
			}
		})
	}
}

func TestAskEnds(t *testing.T) {
	for name, row := range map[string]struct {
		want   string
		handle http.HandlerFunc
	}{
		"a redirect": {"redirects are not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/else", http.StatusTemporaryRedirect)
		}},
		"a refusal":  {"403", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
		"no content": {"gives no answer", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		"no answer":  {"deadline", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }},
		"an outage":  {"deadline", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
		"a long wait": {"deadline", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusAccepted)
		}},
		"a hang": {"deadline", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(row.handle)
			defer server.Close()
			limit := 20 * time.Second
			if row.want == "deadline" {
				limit = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			r, err := newTestAsker(t, server.URL).Ask(ctx, testQuestion, func(error) {})
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "/hook") || r != (Reply{}) {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestAskerNeedsASecret(t *testing.T) {
	if _, err := NewAsker(policy.AlertSink{Kind: "webhook", Address: "https://hooks.example.org/secret-part"}, ""); err == nil || strings.Contains(err.Error(), "secret-part") {
		t.Errorf("got %v", err)
	}
}
