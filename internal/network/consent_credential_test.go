package network

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// TestACredentialIsAskedAboutBeforeItIsTaken: while something waits for an answer no
// secret is held for it.
func TestACredentialIsAskedAboutBeforeItIsTaken(t *testing.T) {
	for _, way := range ways[1:] {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			v := &askedVault{vault: newVault(nil), d: newTestGate(nil)}
			way.rule, way.credentials = bindForge, v
			way.config = func(c *Config) {
				c.Gate, c.Wants = v.d, func(k event.Kind) bool { return k == event.KindCredential }
				c.Limits.HeadTime, c.Limits.IdleTime = time.Second, 1500*time.Millisecond // a handshake on a busy machine takes less
			}
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }), way.shopConfig)
			for _, allow := range []bool{true, false} {
				got := make(chan int, 1)
				before := len(v.uses())
				go func() {
					resp, _ := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
					got <- resp.StatusCode
				}()
				q := v.d.next(t)
				time.Sleep(2500 * time.Millisecond) // more than either
				if n := len(v.uses()); n != before {
					t.Errorf("%d uses before the answer", n-before)
				}
				want := 200
				if allow {
					q.allow()
				} else {
					q.deny()
					want = 403
				}
				if status := <-got; status != want {
					t.Errorf("allowed %v: %d", allow, status)
				}
			}
			ctx, leave := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, "POST", s.url("/"), io.LimitReader(zeros{}, 16<<10))
			r.Header.Set("Authorization", "Bearer "+testPlaceholder)
			go s.client.Do(r)
			q := v.d.next(t)
			leave()
			q.ended(t)
		})
	}
}

// askedVault asks as the broker does.
type askedVault struct {
	*vault
	d *testGate
}

func (v *askedVault) Consent(ctx context.Context, credential string, use Use) (context.Context, event.Ruling, error) {
	r := v.d.Judge(event.Attempt{Kind: event.KindCredential, Name: credential, Host: use.Name}).Wait(ctx)
	if r.Verdict != event.Allowed {
		return ctx, r, errors.New(r.Reason)
	}
	return ctx, r, nil
}

// TestNobodyIsAskedAboutWhatIsRefusedAnyway: a human who is asked needless questions
// will answer one of them wrongly, and an alarm must not wait for an answer.
func TestNobodyIsAskedAboutWhatIsRefusedAnyway(t *testing.T) {
	d := newTestGate(nil)
	d.about = func(a event.Attempt) event.Verdict {
		if a.Kind == event.KindConnect {
			return event.Allowed
		}
		return event.Unknown
	}
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("it got there") }),
		shopConfig{secure: true, rule: func(r *policy.HostRule) { bindForge(r); r.Methods = []string{"GET"} }, credentials: newVault(nil), config: withGate(d)})
	for _, r := range []struct{ method, path, header, value string }{
		{"POST", "/", "X-A", "b"},
		{"GET", "/?k=" + testPlaceholder, "X-A", "b"},
		{"GET", "/", "X-A", testPlaceholder},
		{"GET", "/", "Authorization", "Bearer " + otherPlaceholder},
	} {
		if resp, _ := s.ask(r.method, r.path, nil, r.header, r.value); resp.StatusCode < 400 {
			t.Errorf("%+v: %s", r, resp.Status)
		}
		d.quiet(t)
	}
}
