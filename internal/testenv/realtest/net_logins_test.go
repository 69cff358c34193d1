package realtest

import (
	"context"
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

// TestAccountLogins lets agent programs work with the login of an account. No token
// comes inside, and what is renewed is in the login file.
func TestAccountLogins(t *testing.T) { tryAccounts(t, accounts()) }

func tryAccounts(t *testing.T, all []account) {
	names := maps.Clone(addresses)
	for _, a := range all {
		for _, host := range []string{a.api, a.login, a.beside} {
			names[host] = modelAddress
		}
	}
	delete(names, "")
	testenv.Need(t, testenv.Agents, nil)
	testenv.Need(t, testenv.Accounts, nil)
	testenv.WithNetwork(t, names, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := &accountWorld{world: newWorld(t, n, root), asked: map[string][]string{}}
		w.nameServer()
		w.model = newProvider()
		w.serveAccounts(all)
		for _, a := range all {
			dirs := a.accountDirs(t)
			for name, test := range map[string]func(*accountRun){
				"fresh": (*accountRun).fresh, "ended": (*accountRun).ended, "ends": (*accountRun).ends,
				"hostile": (*accountRun).hostile, "refused": (*accountRun).refused, "two": (*accountRun).two, "killed": (*accountRun).killed,
			} {
				if a.only != nil && !slices.Contains(a.only, name) {
					continue
				}
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
	if r.gives { // only what it asks before the model may fail
		r.provider.End()
	} else {
		r.w.at(r.t.Name(), 1, r.provider.End)
	}
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

// fails runs the program where it cannot work, and does not try for long.
func (r *accountRun) fails() string {
	r.t.Helper()
	r.w.model.add(r.t.Name(), r.ws, nil)
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	out, err := r.command(ctx, testenv.Binary(r.t), r.runArgs(r.fixture, r.dirs, r.argv, r.t.Name())...).CombinedOutput()
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
	cmd := r.command(r.t.Context(), testenv.Binary(r.t), r.runArgs(r.fixture, r.dirs, r.argv, r.t.Name())...)
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
		ask -d scope=all https://LOGIN/PATH/code
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
