package realtest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

// account is an agent program with a login of its provider's, in a file.
type account struct {
	worker
	api, login string // hosts: of the model, of the token endpoint
	endpoint   string // its path
	provider   *testenv.Provider
	file       string            // of the login, in the home
	answers    map[string]string // of the API besides the model, by path
	text       func(l testenv.ProviderLogin, ends time.Time) string
}

func accounts() []account {
	return []account{
		{
			worker: worker{name: "codex", argv: []string{"exec", "-c", "features.enable_request_compression=false", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{}"}},
			api:    "chatgpt.com", login: "auth.openai.com", endpoint: "/oauth/token",
			provider: &testenv.Provider{Client: "app_EMoamEEZ73f0CkXaXp7hrann", JSON: true, Lifetime: time.Hour, Claims: map[string]any{
				"email":                       "someone@example.org",
				"https://api.openai.com/auth": map[string]any{"chatgpt_plan_type": "plus", "chatgpt_account_id": "acct-1", "chatgpt_user_id": "user-1"},
			}},
			file:    ".codex/auth.json",
			answers: map[string]string{"/backend-api/wham/accounts/check": `{"accounts":[{"id":"acct-1","workspace_backend_origin":"NO_CONSTRAINT","account_routing_override":"NO_CONSTRAINT"}],"account_ordering":["acct-1"],"default_account_id":"acct-1"}`},
			text: func(l testenv.ProviderLogin, ends time.Time) string {
				return fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":%q,"account_id":"acct-1"},"last_refresh":"2026-11-01T00:00:00Z"}`, l.ID, l.Access, l.Refresh)
			},
		},
		{
			worker: worker{name: "claude", argv: []string{"-p", "{}", "--dangerously-skip-permissions"}},
			api:    "api.anthropic.com", login: "platform.claude.com", endpoint: "/v1/oauth/token",
			provider: &testenv.Provider{Client: "9d1c250a-e61b-44d9-88ed-5944d1962f5e", JSON: true, Lifetime: time.Hour},
			file:     ".claude/.credentials.json",
			text: func(l testenv.ProviderLogin, ends time.Time) string {
				return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":%q,"expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"pro"}}`, l.Access, l.Refresh, ends.UnixMilli())
			},
		},
	}
}

// accountWorld serves the providers of accounts.
type accountWorld struct {
	*world
	model *provider
	mu    sync.Mutex
	asked map[string][]string // by host: what was asked for, with the status
}

func (w *accountWorld) serveAccounts(all []account) {
	w.t.Helper()
	var hosts []string
	by := map[string]http.Handler{}
	models := model.New(model.Options{Lookup: w.model.lookup, Turn: w.model.turn})
	for _, a := range all {
		hosts = append(hosts, a.api, a.login)
		by[a.login] = a.provider
		by[a.api] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !a.provider.Accepts(r) {
				http.Error(rw, `{"error":{"message":"the token has ended","code":"token_expired","type":"authentication_error"},"type":"error"}`, http.StatusUnauthorized)
				return
			}
			if answer := a.answers[r.URL.Path]; answer != "" {
				rw.Header().Set("Content-Type", "application/json")
				io.WriteString(rw, answer)
				return
			}
			models.ServeHTTP(rw, r)
		})
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			w.asked[r.Host] = append(w.asked[r.Host], r.Method+" "+r.URL.Path)
			w.mu.Unlock()
			by[r.Host].ServeHTTP(rw, r)
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{w.net.Certificate(w.t, hosts...)}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	w.serveAt(modelAddress+":443", func(l net.Listener) error { return server.ServeTLS(l, "", "") })
	w.t.Cleanup(func() { server.Close() })
}

// TestAccountLogins lets agent programs work with the login of an account. No token
// comes inside, and what is renewed is in the login file.
func TestAccountLogins(t *testing.T) {
	all := accounts()
	names := maps.Clone(addresses)
	for _, a := range all {
		names[a.api], names[a.login] = modelAddress, modelAddress
	}
	testenv.Need(t, testenv.Agents, nil)
	testenv.WithNetwork(t, names, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := &accountWorld{world: newWorld(t, n, root), asked: map[string][]string{}}
		w.nameServer()
		w.model = &provider{scripts: map[string]model.Script{}, turns: map[string]int{}, said: map[string][]model.Result{}, both: map[string]bool{}}
		w.serveAccounts(all)
		for _, a := range all {
			if dirs := a.dirs(t); dirs != nil {
				t.Run(a.name+" fresh", func(t *testing.T) { a.fresh(t, w, dirs, time.Hour) })
				t.Run(a.name+" ended", func(t *testing.T) { a.fresh(t, w, dirs, -time.Hour) })
			}
		}
	})
}

func (a account) fresh(t *testing.T, w *accountWorld, dirs []string, lasts time.Duration) {
	p := newFixture(t, w.root, testenv.Git, testenv.Node, testenv.NPM)
	for i, e := range p.env {
		if rest, ok := strings.CutPrefix(e, "PATH="); ok {
			p.env[i] = "PATH=" + strings.Join(append(slices.Clone(dirs), rest), ":")
		}
	}
	l := a.provider.Login(lasts)
	p.write(map[string]string{"../home/" + a.file: a.text(l, time.Now().Add(lasts)), "../policy.yaml": "version: 1\nextends: local\n"})
	p.bare("chmod 600 ../home/" + a.file)
	w.model.add(t.Name(), p.ws, []model.Step{{Op: model.Shell, Command: "echo worked > {ws}/worked"}})
	said := a.run(p, dirs, a.argv, t.Name())
	t.Log(said)
	t.Log(w.asked)
	if got := p.bare("cat worked 2>&1 || true"); got != "worked\n" {
		t.Errorf("got %q", got)
	}
	t.Log(p.read("../home/" + a.file))
}
