package realtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
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
	says       string // what is to be typed to log in, in part
	look       string // a command that keeps what is inside of the login
	beside     string // a further host of the API; "" for none
	wrapped    bool   // the API of the model is that of Code Assist
	provider   *testenv.Provider
	file       string            // of the login, in the home
	answers    map[string]string // of the API besides the model, by path
	text       func(l testenv.ProviderLogin, ends time.Time) string
}

func accounts() []account {
	return []account{
		{
			worker: worker{name: "codex", argv: []string{"exec", "-c", "features.enable_request_compression=false", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{}"}},
			api:    "chatgpt.com", login: "auth.openai.com", endpoint: "/oauth/token", says: "codex login", look: "; cat ~/.codex/auth.json > {ws}/login",
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
			api:    "api.anthropic.com", login: "platform.claude.com", endpoint: "/v1/oauth/token", says: "type 'claude' once outside",
			provider: &testenv.Provider{Client: "9d1c250a-e61b-44d9-88ed-5944d1962f5e", JSON: true, Lifetime: time.Hour},
			file:     ".claude/.credentials.json",
			text: func(l testenv.ProviderLogin, ends time.Time) string {
				return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":%q,"expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"pro"}}`, l.Access, l.Refresh, ends.UnixMilli())
			},
		},
		{
			worker: worker{
				name: "gemini", argv: []string{"--yolo", "-m", "gemini-2.5-flash", "-p", "{}"},
				home: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"oauth-personal"},"folderTrust":{"enabled":false}}}`},
			},
			api: "cloudcode-pa.googleapis.com", beside: "www.googleapis.com", wrapped: true, login: "oauth2.googleapis.com", endpoint: "/token", says: "type 'gemini' once outside",
			provider: &testenv.Provider{Client: "681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com", Lifetime: time.Hour, Keeps: true},
			file:     ".gemini/oauth_creds.json",
			answers: map[string]string{
				"/v1internal:loadCodeAssist":  `{"currentTier":{"id":"standard-tier","name":"Standard"},"cloudaicompanionProject":"project-1"}`,
				"/oauth2/v2/userinfo":         `{"email":"someone@example.org"}`,
				"/v1internal:listExperiments": `{"experimentIds":[],"flags":[]}`, "/v1internal:fetchAdminControls": "{}",
				"/v1internal:retrieveUserQuota": `{"buckets":[]}`, "/v1internal:recordCodeAssistMetrics": "{}",
			},
			text: func(l testenv.ProviderLogin, ends time.Time) string {
				return fmt.Sprintf(`{"access_token":%q,"scope":"email","token_type":"Bearer","id_token":%q,"expiry_date":%d,"refresh_token":%q}`, l.Access, l.ID, ends.UnixMilli(), l.Refresh)
			},
		},
	}
}

// accountWorld serves the providers of accounts.
type accountWorld struct {
	*world
	model *provider
	mu    sync.Mutex
	when  map[string]func()   // by script and step: what happens before its answer
	asked map[string][]string // by host: what was asked for, with the status
}

func (w *accountWorld) serveAccounts(all []account) {
	w.t.Helper()
	var hosts []string
	by := map[string]http.Handler{}
	turn := func(ctx context.Context, t model.Turn) error {
		w.mu.Lock()
		f := w.when[fmt.Sprint(t.Script, t.Step)]
		delete(w.when, fmt.Sprint(t.Script, t.Step))
		w.mu.Unlock()
		if f != nil {
			f()
		}
		return w.model.turn(ctx, t)
	}
	models := model.New(model.Options{Lookup: w.model.lookup, Turn: turn})
	for _, a := range all {
		hosts = append(hosts, a.api, a.login)
		if a.beside != "" {
			hosts = append(hosts, a.beside)
		}
		next := http.Handler(models)
		if a.wrapped {
			next = codeAssist(models)
		}
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
			next.ServeHTTP(rw, r)
		})
		by[a.beside] = by[a.api]
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

// at lets f happen when the model is asked for a step of a script for the first time.
func (w *accountWorld) at(script string, step int, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.when == nil {
		w.when = map[string]func(){}
	}
	w.when[fmt.Sprint(script, step)] = f
}

// codeAssist puts the API of Gemini into that of Code Assist.
func codeAssist(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var outer struct {
			Model   string
			Request json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&outer); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path = "/v1beta/models/" + outer.Model + r.URL.Path[strings.LastIndexByte(r.URL.Path, ':'):]
		inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(outer.Request)), int64(len(outer.Request))
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, inner)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		for line := range strings.Lines(answer.Body.String()) {
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: "); ok {
				line = "data: {\"response\": " + data + "}\n"
			}
			io.WriteString(w, line)
		}
	})
}

// TestAccountLogins lets agent programs work with the login of an account. No token
// comes inside, and what is renewed is in the login file.
func TestAccountLogins(t *testing.T) {
	all := accounts()
	names := maps.Clone(addresses)
	for _, a := range all {
		for _, host := range []string{a.api, a.login, a.beside} {
			names[host] = modelAddress
		}
	}
	delete(names, "")
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
			dirs := a.dirs(t)
			if dirs == nil {
				continue
			}
			for name, test := range map[string]func(*accountRun){
				"fresh": (*accountRun).fresh, "ended": (*accountRun).ended, "ends": (*accountRun).ends,
				"hostile": (*accountRun).hostile, "refused": (*accountRun).refused, "two": (*accountRun).two, "killed": (*accountRun).killed,
			} {
				t.Run(a.name+" "+name, func(t *testing.T) {
					r := &accountRun{account: a, t: t, w: w, dirs: dirs}
					r.fixture = newFixture(t, w.root, testenv.Node, testenv.Curl)
					test(r)
				})
			}
		}
	})
}

// accountRun is one case of one program.
type accountRun struct {
	account
	*fixture
	t     *testing.T
	w     *accountWorld
	dirs  []string
	first testenv.ProviderLogin
	asked int // renewals before
}

// settleLogin makes the home with a login whose access token lasts so long.
func (r *accountRun) settleLogin(lasts time.Duration) {
	r.t.Helper()
	for i, e := range r.env {
		if rest, ok := strings.CutPrefix(e, "PATH="); ok {
			r.env[i] = "PATH=" + strings.Join(append(slices.Clone(r.dirs), rest), ":")
		}
	}
	for name, text := range r.account.home {
		r.write(map[string]string{"../home/" + name: text})
	}
	r.provider.Refuse("")
	r.provider.Hold(nil)
	r.first, r.asked = r.provider.Login(lasts), len(r.provider.Renewals())
	r.write(map[string]string{"../home/" + r.file: r.text(r.first, time.Now().Add(lasts)), "../policy.yaml": "version: 1\nextends: local\n"})
	r.bare("chmod 600 ../home/" + r.file)
}

// work lets the program do its work, and returns what it says.
func (r *accountRun) work(steps ...model.Step) string {
	r.t.Helper()
	steps = append(steps, model.Step{Op: model.Shell, Command: "echo worked > {ws}/worked; env > {ws}/env" + r.look})
	r.w.model.add(r.t.Name(), r.ws, steps)
	said := r.account.run(r.fixture, r.dirs, r.argv, r.t.Name())
	if got := r.bare("cat worked 2>&1 || true"); got != "worked\n" {
		r.t.Errorf("got %q\n%s", got, said)
	}
	return said
}

// check looks for tokens where they may not be, and at how often the login was renewed.
func (r *accountRun) check(renewals int, said string) {
	r.t.Helper()
	asked := r.provider.Renewals()
	if got := len(asked) - r.asked; got != renewals {
		r.t.Errorf("there were %d renewals, want %d", got, renewals)
	}
	secrets := append(asked, r.first.Access, r.first.ID)
	for _, secret := range secrets {
		if strings.Contains(said, secret) {
			r.t.Errorf("%s is printed:\n%s", secret, said)
		}
		if found := r.bare(`grep -rlFe "$0" . || true`, secret); found != "" {
			r.t.Errorf("%s is in %s", secret, found)
		}
	}
	if left := r.bare(`find ../home -name '*.holdfast'`); left != "" {
		r.t.Errorf("%s is left", left)
	}
}

// written reports whether the login file has other tokens than at first.
func (r *accountRun) written(want bool) {
	r.t.Helper()
	file := r.read("../home/" + r.file)
	if got := !strings.Contains(file, r.first.Access); got != want || !r.provider.Keeps && strings.Contains(file, r.first.Refresh) == want {
		r.t.Errorf("the login file is\n%s", file)
	}
}

func (r *accountRun) fresh() {
	r.settleLogin(time.Hour)
	r.check(0, r.work())
	r.written(false)
}

func (r *accountRun) ended() {
	r.settleLogin(-time.Hour)
	r.check(1, r.work())
	r.written(true)
}

// ends: the provider ends the token while the program works, which is then renewed.
func (r *accountRun) ends() {
	r.settleLogin(time.Hour)
	r.w.at(r.t.Name(), 1, r.provider.End)
	r.check(1, r.work(model.Step{Op: model.Shell, Command: "true"}))
	r.written(true)
}

// refused: the provider does not renew; both the program and holdfast say what to type.
func (r *accountRun) refused() {
	r.settleLogin(-time.Hour)
	r.provider.Refuse("invalid_grant")
	said := r.fails()
	contains(r.t, said, "refused to renew the login (invalid_grant): ", r.says)
	r.t.Log(said)
	r.check(1, said)
	r.written(false)
}

// args are the arguments of a run.
func (r *accountRun) args() []string {
	args := []string{"run", "--policy", r.ws + "/../policy.yaml", "--", r.name}
	for _, arg := range r.argv {
		args = append(args, strings.ReplaceAll(arg, "{}", "go "+model.Marker(r.t.Name())))
	}
	return args
}

// fails runs the program where it cannot work, and does not try for long.
func (r *accountRun) fails() string {
	r.t.Helper()
	r.w.model.add(r.t.Name(), r.ws, nil)
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	out, err := r.command(ctx, testenv.Binary(r.t), r.args()...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		r.t.Errorf("it should fail: %v", err)
	}
	r.t.Logf("after %s", time.Since(start))
	return string(out)
}

// two runs that find the login ended renew it once.
func (r *accountRun) two() {
	r.settleLogin(-time.Hour)
	r.provider.Hold(func() { time.Sleep(time.Second) })
	var both sync.WaitGroup
	for _, name := range []string{"one", "other"} {
		script := r.t.Name() + name
		r.w.model.add(script, r.ws, []model.Step{{Op: model.Shell, Command: "echo worked > {ws}/" + name}})
		both.Go(func() { r.account.run(r.fixture, r.dirs, r.argv, script) })
	}
	both.Wait()
	if got := r.read("one") + r.read("other"); got != "worked\nworked\n" {
		r.t.Errorf("got %q", got)
	}
	r.check(1, "")
	r.written(true)
}

// killed: the supervisor is killed between the provider's success and its answer. The
// file is whole, and the next run says what to type.
func (r *accountRun) killed() {
	r.settleLogin(-time.Hour)
	r.w.model.add(r.t.Name(), r.ws, nil)
	cmd := r.command(r.t.Context(), testenv.Binary(r.t), r.args()...)
	r.provider.Hold(func() {
		r.provider.Hold(nil)
		if err := cmd.Process.Kill(); err != nil {
			r.t.Error(err)
		}
	})
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		r.t.Fatalf("%v\n%s", err, out)
	}
	r.written(false)
	if r.provider.Keeps {
		r.work()
		r.written(true)
		return
	}
	contains(r.t, r.fails(), "refused to renew the login (invalid_grant): ", r.says)
	r.written(false)
}

// hostile asks the provider from inside for tokens, in every way.
func (r *accountRun) hostile() {
	r.settleLogin(time.Hour)
	script := `
		ask() { curl -sS -w ' %{http_code}\n' "$@" 2>&1; }
		ask -d 'grant_type=authorization_code&code=x&client_id=y' https://LOGIN/PATH
		ask -d 'grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=x' https://LOGIN/PATH
		ask -d 'grant_type=refresh_token&refresh_token=guessed' https://LOGIN/PATH
		ask https://LOGIN/PATH
		ask -d scope=all https://LOGIN/device/code
		ask -d scope=all https://LOGIN/PATH/../PATH`
	out, _ := r.asPreset(script)
	if len(strings.Split(out, " 403\n")) != 7 || strings.Count(out, "there is no login from inside") != 6 || strings.Count(out, r.says) != 6 {
		r.t.Errorf("got\n%s", out)
	}
	r.check(0, out)
	if r.look == "" {
		return
	}
	out, complaint := r.asPreset(`
		token=$(sed -n 's/.*"refresh_token": "\(.*\)".*/\1/p' ~/FILE)
		test -n "$token"
		for i in 1 2 3 4 5 6 7 8 9 10; do
			curl -sS -o answer -w '%{http_code}\n' --json "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"$token\"}" https://LOGIN/PATH
			grep -q "\"refresh_token\":\"$token\"" answer
		done
		curl -sS -o /dev/null -w 'elsewhere %{http_code}\n' -d "token=$token" https://API/backend-api/codex/x`)
	if want := strings.Repeat("200\n", 10) + "elsewhere 403\n"; out != want {
		r.t.Errorf("got %s", out)
	}
	contains(r.t, complaint, "holdfast: alert: "+r.api)
	r.check(0, out+complaint)
}

// asPreset runs a script as a command that has the preset of the program.
func (r *accountRun) asPreset(script string) (out, complaint string) {
	r.t.Helper()
	script = strings.NewReplacer("LOGIN", r.login, "/PATH", r.endpoint, "API", r.api, "FILE", r.file).Replace(script)
	return r.both(testenv.Binary(r.t), "run", "--preset", r.name, "--policy", r.ws+"/../policy.yaml", "--", "sh", "-euc", script)
}
