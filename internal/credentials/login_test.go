package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// account is a login with a provider, in a file.
type account struct {
	t        *testing.T
	provider *testenv.Provider
	server   *httptest.Server
	path     string
	clock    *clock
	first    testenv.ProviderLogin
}

// loginText is a login file as a program writes it, with what else there may be.
const loginText = `{
  "auth_mode" : "chatgpt",
  "OPENAI_API_KEY": null, "other": [1.50, {"tokens.access_token": "é"}],
	"tokens": {"id_token": "%s", "access_token": "%s",
    "refresh_token":"%s", "account_id": "acct-1" },
  "last_refresh": "2026-11-01T00:00:00Z"}
`

var codexClaims = map[string]any{
	"email": "someone@example.org", "sub": "auth0|private",
	"https://api.openai.com/auth": map[string]any{"chatgpt_plan_type": "plus", "chatgpt_account_id": "acct-1", "organizations": []string{"private"}},
}

func newAccount(t *testing.T, lasts time.Duration) *account {
	t.Helper()
	a := &account{t: t, clock: newClock(), path: filepath.Join(t.TempDir(), "auth.json")}
	a.provider = &testenv.Provider{Client: "program", JSON: true, Claims: codexClaims, Lifetime: time.Hour, Now: a.clock.now}
	a.server = httptest.NewTLSServer(a.provider)
	t.Cleanup(a.server.Close)
	a.first = a.login(lasts)
	return a
}

// login logs in anew, outside.
func (a *account) login(lasts time.Duration) testenv.ProviderLogin {
	a.t.Helper()
	l := a.provider.Login(lasts)
	if err := os.WriteFile(a.path, fmt.Appendf(nil, loginText, l.ID, l.Access, l.Refresh), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return l
}

func (a *account) credential() policy.Credential {
	c := envCredential("account", "UNUSED")
	c.Env, c.Source = nil, policy.CredentialSource{Kind: "file", Value: a.path, Options: map[string]string{"key": "tokens.access_token"}}
	c.Renewal = &policy.Renewal{URL: a.server.URL + "/token", Client: "program", JSON: true, Refresh: "tokens.refresh_token", ID: "tokens.id_token", Time: "last_refresh", Login: "codex login"}
	c.Inside = &policy.LoginFile{Path: "/home/u/.codex/auth.json", Keep: []string{"auth_mode", "tokens.account_id"},
		Claims: map[string][]string{"tokens.id_token": {"email", "https://api.openai.com/auth chatgpt_plan_type", "missing"}}}
	return c
}

func (a *account) broker(sink event.Sink) *Broker {
	a.t.Helper()
	b, err := New(Config{Credentials: []policy.Credential{a.credential()}, Sink: sink, Now: a.clock.now, Client: a.server.Client()})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { b.Close() })
	return b
}

// taken is the secret of a use, or the error.
func taken(b *Broker) (string, error) {
	s, err := b.Open(context.Background(), "account", toAPI)
	return s.Value, err
}

func (a *account) accepted(b *Broker) {
	a.t.Helper()
	token, err := taken(b)
	if err != nil {
		a.t.Fatal(err)
	}
	if !a.provider.Accepts(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}) {
		a.t.Fatalf("the provider does not accept the token")
	}
}

func (a *account) renewals(want int) {
	a.t.Helper()
	if got := a.provider.Renewals(); len(got) != want {
		a.t.Fatalf("there were %d renewals, want %d", len(got), want)
	}
}

// file is the login file, which must be as loginText but for the tokens.
func (a *account) file() (access, refresh string) {
	a.t.Helper()
	data, err := os.ReadFile(a.path)
	var f struct {
		Tokens struct {
			ID      string `json:"id_token"`
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		}
		Last string `json:"last_refresh"`
	}
	if err = errors.Join(err, json.Unmarshal(data, &f)); err != nil {
		a.t.Fatal(err)
	}
	want := fmt.Sprintf(strings.Replace(loginText, "2026-11-01T00:00:00Z", f.Last, 1), f.Tokens.ID, f.Tokens.Access, f.Tokens.Refresh)
	if string(data) != want {
		a.t.Errorf("the file is\n%s\nwant\n%s", data, want)
	}
	if st, err := os.Stat(a.path); err != nil || st.Mode() != 0o600 {
		a.t.Errorf("%v, %v", st.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(a.path)); err != nil || len(left) != 1 {
		a.t.Errorf("beside the file there is %v, %v", left, err)
	}
	return f.Tokens.Access, f.Tokens.Refresh
}

func TestLoginIsRenewed(t *testing.T) {
	a := newAccount(t, 10*time.Minute)
	d := &diary{}
	b := a.broker(d)
	a.accepted(b)
	a.renewals(0)
	if access, refresh := a.file(); access != a.first.Access || refresh != a.first.Refresh {
		t.Error("the file was changed without need")
	}
	for n := 1; n <= 3; n++ { // each with the refresh token that the last one gave
		a.clock.advance(time.Hour)
		a.accepted(b)
		a.accepted(b)
		a.renewals(n)
		access, refresh := a.file()
		if access == a.first.Access || refresh == a.first.Refresh {
			t.Error("the file has the old tokens")
		}
	}
	text := fmt.Sprint(d.all)
	for _, secret := range append(a.provider.Renewals(), a.first.Access, a.first.ID) {
		if strings.Contains(text, secret) {
			t.Error("a token is in the record")
		}
	}
	if n := strings.Count(text, event.CredentialRenew); n != 3 {
		t.Errorf("%d renewals are recorded", n)
	}
}

func TestLoginThatEndedBeforeTheStart(t *testing.T) {
	a := newAccount(t, -time.Hour)
	b := a.broker(nil)
	a.accepted(b)
	a.renewals(1)
	a.file()
}

// TestLoginRenewalIsRefused: the error has what to type, the provider is not asked again,
// and a login outside counts without a new run.
func TestLoginRenewalIsRefused(t *testing.T) {
	a := newAccount(t, -time.Hour)
	a.provider.Refuse("refresh_token_reused")
	d := &diary{}
	b := a.broker(d)
	for range 3 {
		if _, err := taken(b); err == nil || !strings.Contains(err.Error(), "refused to renew the login (refresh_token_reused): codex login") {
			t.Fatalf("got %v", err)
		}
		a.clock.advance(time.Minute)
	}
	a.renewals(1)
	status, answer := b.Renew(t.Context(), "account", a.asked(b))
	if text := string(answer); status != 400 || !strings.Contains(text, `"error":"refresh_token_reused"`) || strings.Contains(text, a.first.Refresh) {
		t.Errorf("%d %s", status, answer)
	}
	if access, _ := a.file(); access != a.first.Access {
		t.Error("the file was changed")
	}
	a.provider.Refuse("")
	a.login(time.Hour)
	a.clock.advance(time.Minute)
	a.accepted(b)
	a.renewals(1)
}

// asked is the renewal of a program inside, with what its file has.
func (a *account) asked(b *Broker) []byte {
	a.t.Helper()
	var f map[string]map[string]any
	json.Unmarshal([]byte(b.Files()[0].Content), &f)
	return fmt.Appendf(nil, `{"client_id":"x","grant_type":"refresh_token","refresh_token":"%s"}`, f["tokens"]["refresh_token"])
}

func TestLoginFileInside(t *testing.T) {
	a := newAccount(t, time.Hour)
	b := a.broker(nil)
	f := b.Files()[0]
	for _, secret := range []string{a.first.Access, a.first.Refresh, a.first.ID, "private", a.first.Access[strings.LastIndex(a.first.Access, ".")+1:]} {
		if strings.Contains(f.Content, secret) {
			t.Errorf("%q is inside", secret)
		}
	}
	var content struct {
		Mode   string `json:"auth_mode"`
		Tokens map[string]string
	}
	if err := json.Unmarshal([]byte(f.Content), &content); err != nil || content.Mode != "chatgpt" || content.Tokens["account_id"] != "acct-1" {
		t.Fatalf("%v: %s", err, f.Content)
	}
	claims := jwtClaims(content.Tokens["id_token"])
	if string(claims["email"]) != `"someone@example.org"` || string(claims["https://api.openai.com/auth"]) != `{"chatgpt_plan_type":"plus"}` || len(claims) != 3 {
		t.Errorf("claims of the id token: %s", claims)
	}
	if claims := jwtClaims(content.Tokens["access_token"]); len(claims) != 1 || jwtEnd(content.Tokens["access_token"]).Before(a.clock.now().Add(24*time.Hour)) {
		t.Errorf("claims of the access token: %s", claims)
	}
	for name, value := range content.Tokens {
		if found := b.Detect([]byte("x" + value[max(0, len(value)-70):])); name != "account_id" && len(found) != 1 {
			t.Errorf("%s is not found: %v", name, found)
		}
	}
}

func TestRenewalFromInside(t *testing.T) {
	a := newAccount(t, time.Hour)
	b := a.broker(nil)
	request := a.asked(b)
	for range 20 { // nothing is asked of the provider while the token is good
		status, answer := b.Renew(t.Context(), "account", request)
		if status != 200 || strings.Contains(string(answer), a.first.Access) || jsonText(answer, "access_token") != b.Bound("api.example.org", 443)[0].Placeholder {
			t.Fatalf("%d %s", status, answer)
		}
	}
	a.renewals(0)
	for _, other := range []string{"", "{}", `{"grant_type":"authorization_code","code":"x"}`, `{"grant_type":"refresh_token","refresh_token":"` + a.first.Refresh + `"}`, "grant_type=refresh_token"} {
		if status, answer := b.Renew(t.Context(), "account", []byte(other)); answer != nil {
			t.Errorf("%q got %d %s", other, status, answer)
		}
	}
	form := "grant_type=refresh_token&refresh_token=" + jsonText(request, "refresh_token")
	if status, _ := b.Renew(t.Context(), "account", []byte(form)); status != 200 {
		t.Errorf("a form got %d", status)
	}
	a.clock.advance(time.Hour)
	for n, code := range []string{"slow_down", "temporarily_unavailable", "<html>"} { // which are over some time
		a.provider.Refuse(code)
		if status, answer := b.Renew(t.Context(), "account", request); status != 503 || jsonText(answer, "error") != "temporarily_unavailable" || strings.Contains(string(answer), "<html>") {
			t.Errorf("%s: %d %s", code, status, answer)
		}
		a.renewals(n + 1)
		a.clock.advance(time.Minute)
	}
	a.provider.Refuse("")
	a.accepted(b)
}

// TestRejectedToken: an answer of 401 renews a token once, and not one that is new.
func TestRejectedToken(t *testing.T) {
	a := newAccount(t, time.Hour)
	b := a.broker(nil)
	a.accepted(b)
	a.provider.End()
	b.Rejected("account")
	a.accepted(b)
	for range 50 {
		b.Rejected("account")
		a.accepted(b)
		a.clock.advance(time.Second)
	}
	a.renewals(1)
}

// TestLoginOfTwoRuns: of two brokers that need a renewal at once one renews, and the
// other takes what it wrote.
func TestLoginOfTwoRuns(t *testing.T) {
	a := newAccount(t, -time.Hour)
	a.provider.Hold(func() { time.Sleep(100 * time.Millisecond) })
	var all sync.WaitGroup
	for range 4 {
		b := a.broker(nil)
		all.Go(func() {
			if _, err := taken(b); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	a.renewals(1)
	a.file()
}

// TestLoginIsReplacedMeanwhile: a login that the user makes while an old one is renewed
// stays, and is the one that is used.
func TestLoginIsReplacedMeanwhile(t *testing.T) {
	a := newAccount(t, -time.Hour)
	var other testenv.ProviderLogin
	a.provider.Hold(func() { other = a.login(time.Hour) })
	b := a.broker(nil)
	a.accepted(b)
	if access, refresh := a.file(); access != other.Access || refresh != other.Refresh {
		t.Error("the login of the user was overwritten")
	}
	a.clock.advance(time.Hour - 2*time.Minute)
	if token, err := taken(b); err != nil || token != other.Access {
		t.Errorf("another login is used, %v", err)
	}
}

// TestLoginSurvivesAClient: a request that is given up does not end the renewal that it
// caused.
func TestLoginSurvivesAClient(t *testing.T) {
	a := newAccount(t, -time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	a.provider.Hold(cancel)
	b := a.broker(nil)
	if _, err := b.Open(ctx, "account", toAPI); err != nil {
		t.Log(err) // or not: the answer came
	}
	if access, _ := a.file(); access == a.first.Access {
		t.Error("the renewal was not written")
	}
	a.accepted(b)
	a.renewals(1)
}

// TestLoginThatCannotBeWritten: no refresh token is spent whose successor could not be
// kept.
func TestLoginThatCannotBeWritten(t *testing.T) {
	a := newAccount(t, -time.Hour)
	if err := os.MkdirAll(filepath.Join(filepath.Dir(a.path), ".auth.json.holdfast", "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := taken(a.broker(nil)); err == nil || !strings.Contains(err.Error(), "could not be written") {
		t.Errorf("got %v", err)
	}
	a.renewals(0)
}

// TestLoginIsWrittenTooLate: a renewed login that cannot be put into its place is used
// until the run ends, also when it is renewed again.
func TestLoginIsWrittenTooLate(t *testing.T) {
	a := newAccount(t, -time.Hour)
	a.provider.Hold(func() { os.Remove(filepath.Join(filepath.Dir(a.path), ".auth.json.holdfast")) })
	d := &diary{}
	b := a.broker(d)
	a.accepted(b)
	if access, refresh := a.file(); access != a.first.Access || refresh != a.first.Refresh {
		t.Error("the file was changed")
	}
	if text := fmt.Sprint(d.all); !strings.Contains(text, "not written to "+a.path) {
		t.Errorf("the record does not say so: %s", text)
	}
	a.provider.Hold(nil)
	a.clock.advance(time.Hour)
	a.accepted(b)
	a.renewals(2)
	if access, _ := a.file(); access == a.first.Access {
		t.Error("the second renewal was not written")
	}
	a.clock.advance(time.Hour)
	a.accepted(b)
	a.renewals(3)
}

func TestLoginThroughALink(t *testing.T) {
	a := newAccount(t, -time.Hour)
	real := a.path
	a.path = filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(real, a.path); err != nil {
		t.Fatal(err)
	}
	a.accepted(a.broker(nil))
	if st, err := os.Lstat(a.path); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", st, err)
	}
	a.path = real
	if access, _ := a.file(); access == a.first.Access {
		t.Error("the renewal was not written")
	}
}
