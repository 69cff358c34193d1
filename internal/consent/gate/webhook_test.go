//go:build linux

package gate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// webhook is a server that answers requests for approval.
func webhook(t *testing.T, answer func(w http.ResponseWriter, q alert.Question)) policy.AlertSink {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q alert.Question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Errorf("the request cannot be read: %v", err)
		}
		answer(w, q)
	}))
	t.Cleanup(server.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(webhookSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.AlertSink{Kind: "webhook", Address: server.URL, Secret: secret, Timeout: 5 * time.Second}
}

const webhookSecret = "sixteen bytes and more of them"

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		key  string
		text string
		want event.Verdict
		why  string
	}{
		"allows":            {webhookSecret, `"decision":"allow","scope":"for","for":"10m","by":"ann"`, event.Allowed, ""},
		"denies":            {webhookSecret, `"decision":"deny","by":"ann","reason":"no"`, event.Denied, "denied by ann: no"},
		"forges":            {"another secret, also long enough", `"decision":"allow","by":"ann"`, event.Unknown, "signature"},
		"names nobody":      {webhookSecret, `"decision":"allow"`, event.Unknown, "who answers"},
		"allows for ever":   {webhookSecret, `"decision":"allow","scope":"for","for":"9000h","by":"ann"`, event.Unknown, "time"},
		"has an odd scope":  {webhookSecret, `"decision":"allow","scope":"everything","by":"ann"`, event.Unknown, "scope"},
		"allows less":       {webhookSecret, `"decision":"allow","uses":-1,"by":"ann"`, event.Unknown, "a negative number of uses"},
		"has no time span":  {webhookSecret, `"decision":"allow","scope":"for","for":"soon","by":"ann"`, event.Unknown, "not a duration"},
		"says two things":   {webhookSecret, `"decision":"deny","everything":true,"by":"ann"`, event.Unknown, "not understood"},
		"is of another one": {webhookSecret, `"decision":"allow","by":"ann","nonce":"x"`, event.Unknown, "another request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := make(chan alert.Question, 100)
			a := newAsking(t, "20261122T120000-aaaa", webhook(t, func(w http.ResponseWriter, q alert.Question) {
				body := fmt.Sprintf(`{"nonce":%q,"digest":%q,%s}`, q.Nonce, q.Digest, row.text)
				w.Header().Set("Holdfast-Signature", "v1="+alert.Signature([]byte(row.key), "answer."+q.Nonce, []byte(body)))
				io.WriteString(w, body)
				sent <- q
			}))
			if !a.queue.Attended() {
				t.Error("a webhook is somebody who is there")
			}
			ruling := a.hold("x", "y")
			q := <-sent
			if q.ID == "" || len(q.What) == 0 || q.Session != "20261122T120000-aaaa" {
				t.Errorf("asked %+v", q)
			}
			if row.want != event.Unknown {
				if r := verdict(t, ruling); r.Verdict != row.want || !strings.Contains(r.Reason, row.why) {
					t.Errorf("got %+v", r)
				}
				return
			}
			for end := time.Now().Add(10 * time.Second); len(a.Report()) == 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it is not recorded")
				}
			}
			if c := a.Report()[0]; c.How != consent.OutcomeIgnored || !strings.Contains(c.Reason, row.why) {
				t.Errorf("recorded %+v", c)
			}
			if len(a.waiting()) != 1 {
				t.Error("the request waits no more")
			}
		})
	}
}

// A question answered elsewhere is asked no more, and the end waits for nothing.
func TestWebhookIsToldNoMore(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 10)
	asked := make(chan struct{}, 10)
	release := make(chan struct{})
	defer close(release)
	hook := webhook(t, func(w http.ResponseWriter, q alert.Question) { panic(http.ErrAbortHandler) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		select {
		case <-r.Context().Done():
			gone <- struct{}{}
		case <-release:
		}
	}))
	defer server.Close()
	hook.Address, hook.Timeout = server.URL, time.Minute
	a := newAsking(t, "20261122T120000-aaaa", hook)
	ruling := a.hold("x")
	<-asked
	if err := a.answer(a.waiting()[0], false); err != nil {
		t.Fatal(err)
	}
	verdict(t, ruling)
	<-gone
	a.hold("y")
	<-asked
	begin := time.Now()
	a.Close()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
}
