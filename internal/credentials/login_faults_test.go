package credentials

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// TestRejectedTokenThatCannotBeRenewed: a token that is still valid is used on, also when
// a request with it was refused and it is not renewed.
func TestRejectedTokenThatCannotBeRenewed(t *testing.T) {
	a := newAccount(t, time.Hour)
	b := a.broker(nil)
	a.accepted(b)
	a.provider.Refuse("invalid_grant")
	for range 3 {
		b.Rejected("account")
		a.accepted(b)
		a.clock.advance(time.Minute)
	}
	a.renewals(1)
	if err := b.Close(); err != nil {
		t.Errorf("nothing is lost, but it says %v", err)
	}
}

// TestRejectedTokenWasReplaced: what the user logged in with meanwhile is used at once,
// also soon after a renewal.
func TestRejectedTokenWasReplaced(t *testing.T) {
	a := newAccount(t, -time.Hour)
	b := a.broker(nil)
	a.accepted(b)
	other := a.login(time.Hour)
	b.Rejected("account")
	if token, err := taken(b); err != nil || token != other.Access {
		t.Errorf("another login is used, %v", err)
	}
	a.renewals(1)
}

// TestLoginThatIsLostIsSaid: the run says at its end that the login in the file is used
// up, unless there is a new one.
func TestLoginThatIsLostIsSaid(t *testing.T) {
	for _, again := range []bool{false, true} {
		a := newAccount(t, -time.Hour)
		a.provider.Hold(func() { os.Remove(strings.Replace(a.path, "auth.json", ".auth.json.holdfast", 1)) })
		b := a.broker(nil)
		a.accepted(b)
		if again {
			a.login(time.Hour)
		}
		said := fmt.Sprint(b.Close())
		if strings.Contains(said, "used up; codex login: the login was renewed, but not written to "+a.path) == again || again && said != "<nil>" {
			t.Errorf("with a new login: %v; said %s", again, said)
		}
	}
}

// TestLoginThatIsWrittenBack: a program outside that writes the file as it was before a
// renewal does not end the login of the run, and the next renewal is in the file.
func TestLoginThatIsWrittenBack(t *testing.T) {
	a := newAccount(t, -time.Hour)
	before, err := os.ReadFile(a.path)
	if err != nil {
		t.Fatal(err)
	}
	b := a.broker(nil)
	a.accepted(b)
	writeFile(t, a.path, string(before), 0o600)
	a.clock.advance(2 * time.Hour)
	a.accepted(b)
	a.renewals(2)
	if _, refresh := a.file(); refresh == a.first.Refresh {
		t.Error("the file has the used up login")
	}
	writeFile(t, a.path, string(before), 0o600)
	if said := fmt.Sprint(b.Close()); !strings.Contains(said, "used up; codex login: another program has written it back") {
		t.Error(said)
	}
}

// TestRefusalToTheProgramIsSaid: a renewal that the program asked for and that was
// refused is said once at the end, if no use failed of it.
func TestRefusalToTheProgramIsSaid(t *testing.T) {
	for _, row := range []struct {
		name string
		then func(*account, *Broker)
		said int
	}{
		{"many times", func(a *account, b *Broker) { b.Renew(t.Context(), "account", a.asked(b)) }, 1},
		{"and a use", func(a *account, b *Broker) { taken(b) }, 0}, // which the network says
		{"and a login", func(a *account, b *Broker) {
			a.provider.Refuse("")
			a.login(time.Hour)
			a.clock.advance(time.Minute)
			a.accepted(b)
		}, 0},
	} {
		a := newAccount(t, -time.Hour)
		a.provider.Refuse("invalid_grant")
		b := a.broker(nil)
		request := a.asked(b)
		for range 3 {
			b.Renew(t.Context(), "account", request)
		}
		row.then(a, b)
		if said := fmt.Sprint(b.Close()); strings.Count(said, "refused to renew the login (invalid_grant): codex login") != row.said {
			t.Errorf("%s: said %s", row.name, said)
		}
	}
}

// answering is a login of a file with an end, at a provider that gives one answer.
func answering(t *testing.T, answer string) (b *Broker, path string, asked *int) {
	t.Helper()
	asked = new(int)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	path = writeFile(t, t.TempDir()+"/login.json", `{"access":"old-access","refresh":"old-refresh","ends":1000}`, 0o600)
	c := envCredential("account", "UNUSED")
	c.Source = policy.CredentialSource{Kind: "file", Value: path, Options: map[string]string{"key": "access"}}
	c.Renewal = &policy.Renewal{URL: server.URL + "/token", Refresh: "refresh", Ends: "ends", Login: "log in"}
	return newBroker(t, Config{Credentials: []policy.Credential{c}, Client: server.Client(), Now: newClock().now}), path, asked
}

// TestAnswerWithoutAnEnd: the old end does not stay in the file, where it is past.
func TestAnswerWithoutAnEnd(t *testing.T) {
	b, path, _ := answering(t, `{"access_token":"new-access","refresh_token":"new-refresh"}`)
	mustOpen(t, b, "account")
	data, err := os.ReadFile(path)
	want := fmt.Sprintf(`{"access":"new-access","refresh":"new-refresh","ends":%d}`, newClock().now().Add(time.Hour).UnixMilli())
	if err != nil || string(data) != want {
		t.Errorf("%s, %v; want %s", data, err, want)
	}
}

// TestRefusalWithStatus200: GitHub refuses with status 200.
func TestRefusalWithStatus200(t *testing.T) {
	b, _, asked := answering(t, `{"error":"bad_refresh_token","error_description":"private"}`)
	for range 2 {
		if _, err := taken(b); err == nil || !strings.Contains(err.Error(), "refused to renew the login (bad_refresh_token): log in") {
			t.Errorf("got %v", err)
		}
	}
	if *asked != 1 {
		t.Errorf("asked %d times", *asked)
	}
}

// TestRenewalWaitsForConsent: where a human is asked about the use of a login, the program's
// own renewal asks nothing of the provider, and the use does after the answer.
func TestRenewalWaitsForConsent(t *testing.T) {
	for _, row := range []struct {
		kind  event.Kind
		waits bool
	}{{event.KindCredential, true}, {event.KindRequest, true}, {event.KindExec, false}} {
		a := newAccount(t, -time.Hour)
		answer := event.Ruling{Verdict: event.Denied, Reason: "not today"}
		b, err := New(Config{Credentials: []policy.Credential{a.credential()}, Now: a.clock.now, Client: a.server.Client(),
			Gate: verdictOf(func(event.Attempt) event.Ruling { return answer }), Wants: func(k event.Kind) bool { return k == row.kind }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		if status, answer := b.Renew(t.Context(), "account", a.asked(b)); status != 200 || jsonText(answer, "refresh_token") != jsonText(a.asked(b), "refresh_token") {
			t.Errorf("%s: %d %s", row.kind, status, answer)
		}
		if !row.waits {
			a.renewals(1)
			continue
		}
		a.renewals(0)
		if row.kind == event.KindCredential {
			if _, err := taken(b); err == nil || !strings.Contains(err.Error(), "not today") {
				t.Errorf("got %v", err)
			}
			a.renewals(0)
			answer = event.Ruling{Verdict: event.Allowed}
		}
		a.accepted(b)
		a.renewals(1)
	}
}

// TestLoginThatIsBeingWritten: the start reads it once more, and waits no longer.
func TestLoginThatIsBeingWritten(t *testing.T) {
	a := newAccount(t, time.Hour)
	h := a.broker(nil).holders["account"]
	whole, err := os.ReadFile(a.path)
	if err != nil {
		t.Fatal(err)
	}
	s := h.source.(*loginSource)
	for _, then := range [][]byte{whole, whole[:20]} {
		waits := 0
		s.wait = func(time.Duration) { waits++; a.write(then) }
		a.write(whole[:20])
		if err := h.makeInside(s); (err == nil) != (len(then) == len(whole)) || waits != 1 {
			t.Errorf("after %d waits: %v", waits, err)
		}
	}
}

func (a *account) write(text []byte) {
	if err := os.WriteFile(a.path, text, 0o600); err != nil {
		a.t.Error(err)
	}
}
