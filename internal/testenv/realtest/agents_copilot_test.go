package realtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

const (
	githubHost    = "github.com"
	githubAPI     = "api.github.com"
	copilotAPI    = "api.individual.githubcopilot.com"
	githubToken   = "gho_" + "notARealToken0123456789abcdefghijkl"
	copilotModels = `{"data": [{"id": "claude-haiku-4.5", "name": "Claude Haiku 4.5", "object": "model", "vendor": "Anthropic", "version": "claude-haiku-4.5", "preview": false, "model_picker_enabled": true,
		"policy": {"state": "enabled"}, "supported_endpoints": ["/chat/completions"],
		"capabilities": {"family": "claude-haiku-4.5", "object": "model_capabilities", "type": "chat", "tokenizer": "o200k_base", "supports": {"streaming": true, "tool_calls": true, "parallel_tool_calls": true},
		"limits": {"max_context_window_tokens": 128000, "max_output_tokens": 16000, "max_prompt_tokens": 100000}}}]}`
)

// github is a stand-in for GitHub: the device flow, the account and Copilot's models.
type github struct {
	model http.Handler

	mu      sync.Mutex
	asked   int      // for the token of a device
	began   int      // logins by a device
	strange []string // requests without the token
}

func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Host == githubHost {
		g.device(w, r)
		return
	}
	if _, got, _ := strings.Cut(r.Header.Get("Authorization"), " "); got != githubToken {
		g.strange = append(g.strange, fmt.Sprintf("%s %s%s with %q", r.Method, r.Host, r.URL.Path, got))
		http.Error(w, `{"message": "Bad credentials"}`, http.StatusUnauthorized)
		return
	}
	switch {
	case r.Host == githubAPI && r.URL.Path == "/copilot_internal/user":
		fmt.Fprint(w, `{"login": "octo", "access_type_sku": "free", "copilot_plan": "individual", "chat_enabled": true, "endpoints": {"api": "https://`+copilotAPI+`"}}`)
	case r.Host == copilotAPI && r.URL.Path == "/models":
		fmt.Fprint(w, copilotModels)
	case r.Host == copilotAPI && r.URL.Path == "/chat/completions":
		g.mu.Unlock()
		defer g.mu.Lock()
		g.model.ServeHTTP(w, r)
	default:
		http.Error(w, `{"message": "Not Found"}`, http.StatusNotFound)
	}
}

// device is the flow of RFC 8628: the user has to be waited for once.
func (g *github) device(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/login/device/code":
		g.began++
		fmt.Fprint(w, `{"device_code": "device-1", "user_code": "ABCD-1234", "verification_uri": "https://github.com/login/device", "expires_in": 900, "interval": 1}`)
	case "/login/oauth/access_token":
		if !strings.Contains(string(body), "device-1") {
			http.Error(w, `{"error": "incorrect_device_code"}`, http.StatusOK)
			return
		}
		if g.asked++; g.asked == 1 {
			fmt.Fprint(w, `{"error": "authorization_pending"}`)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"access_token": githubToken, "token_type": "bearer", "scope": "read:user,repo"})
	default:
		http.Error(w, "{}", http.StatusNotFound)
	}
}

// serveGitHub serves the stand-in in the world of agents.
func serveGitHub(w *world, p *provider) *github {
	w.t.Helper()
	g := &github{model: model.New(model.Options{Lookup: p.lookup, Turn: p.turn})}
	w.serveModels(g, githubHost, githubAPI, copilotAPI)
	return g
}

// TestCopilotWithAnAccount logs Copilot in outside, and lets it work inside with that
// login, or with that of gh.
func TestCopilotWithAnAccount(t *testing.T) {
	withModels(t, testenv.Accounts, []string{githubHost, githubAPI, copilotAPI}, func(t *testing.T, w *world, p *provider) {
		dirs := worker{name: "copilot"}.accountDirs(t)
		g := serveGitHub(w, p)
		work := func(t *testing.T, f *fixture, a worker, name string) {
			p.add(name, f.ws, []model.Step{{Op: model.Write, Path: "{ws}/done", Content: "by " + name}})
			said := a.start(f, dirs, "-p", "go "+model.Marker(name), "--allow-all", "--no-ask-user")
			if f.bare("cat done || true") != "by "+name || len(g.strange) > 0 {
				t.Errorf("not done; without the token: %q\n%s", g.strange, said)
			}
			if strings.Contains(said, githubToken) {
				t.Errorf("the token is printed:\n%s", said)
			}
		}
		t.Run("login", func(t *testing.T) {
			f := newFixture(t, w.root)
			a := worker{name: "copilot", key: "UNUSED", home: map[string]string{".copilot/settings.json": `{"storeTokenPlaintext": true}`},
				env: []string{"SSL_CERT_FILE=" + testenv.NetworkBundle, "NODE_EXTRA_CA_CERTS=" + testenv.NetworkBundle}}
			a.settle(f, dirs)
			f.bare("copilot login --device-code")
			contains(t, f.bare("cat ~/.copilot/config.json"), githubToken)
			work(t, f, a, "copilot-account")
			began := g.began
			out := f.bare(`"$0" run "$@" -- copilot login --device-code 2>&1 || true`, append([]string{testenv.Binary(t)}, visible(dirs)...)...)
			if g.began != began || strings.Contains(out, githubToken) {
				t.Errorf("a login was begun inside:\n%s", out)
			}
			contains(t, out, "Failed to request device code", "there is no login from inside, for its token would be there; for Copilot CLI: copilot login outside")
		})
		t.Run("gh", func(t *testing.T) {
			f := newFixture(t, w.root)
			a := worker{name: "copilot", key: "UNUSED", home: map[string]string{
				".config/gh/hosts.yml": "github.com:\n    user: octo\n",
				"../bin/gh":            "#!/bin/sh\ntest \"$*\" = 'auth token --hostname github.com' && echo " + githubToken + "\n",
			}}
			a.settle(f, append([]string{f.ws + "/../bin"}, dirs...))
			work(t, f, a, "copilot-gh")
		})
	})
}
