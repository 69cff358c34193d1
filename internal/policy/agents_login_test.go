package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPresetLogin: of an account login the run gets a rule for the API, one for the
// token endpoint, and what is to be made inside.
func TestPresetLogin(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/.codex/auth.json", `{"auth_mode":"chatgpt","tokens":{"access_token":"aaaa.bbbb.cccc","refresh_token":"rrrrrrrr"}}`, 0o600)
	w.host.Env = []string{"OPENAI_API_KEY=sk-0123456789abcdef0123456789abcdef"}
	o := Options{Host: w.host, Preset: "codex"}
	o.Host.Dir = w.mkdir("home/u/ws")
	p := w.plan(o)
	if len(p.Credentials) != 1 || p.Credentials[0].Renewal == nil || p.Credentials[0].Inside.Path != w.at("home/u/.codex/auth.json") {
		t.Fatalf("got %+v", p.Credentials)
	}
	if got := p.Credentials[0].Hosts; !slices.Equal(got, []HostPort{{"chatgpt.com", 443}}) {
		t.Errorf("hosts %v", got)
	}
	var rules []string
	for _, r := range p.Allow {
		rules = append(rules, r.String())
		if r.Host == "chatgpt.com" && len(r.Paths) == 0 {
			t.Error("every path of the host is allowed")
		}
	}
	if !slices.Contains(rules, "auth.openai.com:443/tls POST /oauth/token") {
		t.Errorf("rules %q", rules)
	}
	if len(p.Agent.Missing) > 0 {
		t.Errorf("missing: %q", p.Agent.Missing)
	}
	const text = "codex -c cli_auth_credentials_store=file login"
	want := []Login{
		{HostPort{"auth.openai.com", 443}, "/oauth/token", "openai", "Codex", "log in once outside: " + text, "app_EMoamEEZ73f0CkXaXp7hrann"},
		{HostPort{"auth.openai.com", 443}, "/api/accounts/deviceauth/usercode", "", "Codex", text + " outside", ""},
	}
	if !slices.Equal(p.Agent.Logins, want) {
		t.Errorf("logins %+v", p.Agent.Logins)
	}
}

// TestPresetWithoutLogin: without a login, the token endpoint is answered all the same,
// so that no login is made inside.
func TestPresetWithoutLogin(t *testing.T) {
	w := newWorld(t)
	o := Options{Host: w.host, Preset: "codex"}
	o.Host.Dir = w.mkdir("home/u/ws")
	p := w.plan(o)
	if len(p.Credentials) > 0 || len(p.Agent.Logins) != 2 || p.Agent.Logins[0].Credential != "" {
		t.Errorf("%+v, %+v", p.Credentials, p.Agent.Logins)
	}
	if len(p.Agent.Missing) != 1 || !strings.Contains(p.Agent.Missing[0], "codex -c cli_auth_credentials_store=file login") {
		t.Errorf("missing: %q", p.Agent.Missing)
	}
	want := []Login{{Host: HostPort{"api.openai.com", 443}, Title: "Codex", Text: strings.TrimPrefix(p.Agent.Missing[0], "Codex has no credential: ")}}
	if !slices.Equal(p.Agent.NoLogin, want) {
		t.Errorf("without a login are %+v", p.Agent.NoLogin)
	}
	if told := p.Inside(); strings.Contains(told, "auth.openai.com") {
		t.Errorf("where nothing passes is told as a host that is reached:\n%s", told)
	}
}

// TestHostsWithoutLogin: they are those of what is missing, where the variables of the user
// moved them, and neither a provider that was not chosen nor a host that serves others.
func TestHostsWithoutLogin(t *testing.T) {
	for _, row := range []struct{ preset, env, want string }{
		{"claude", "", "api.anthropic.com:443"},
		{"claude", "ANTHROPIC_API_KEY=sk-ant-api03-0123456789abcdef", ""},
		{"claude", "ANTHROPIC_BASE_URL=https://models.example.org:8443", "models.example.org:8443"},
		{"claude", "ANTHROPIC_BASE_URL=http://127.0.0.1:4000", ""},
		{"claude", "AWS_BEARER_TOKEN_BEDROCK=0123456789abcdef0123 CLAUDE_CODE_USE_BEDROCK=1", ""},
		{"opencode", "OPENAI_API_KEY=sk-0123456789abcdef0123456789abcdef", "api.anthropic.com:443 generativelanguage.googleapis.com:443 openrouter.ai:443"},
	} {
		w := newWorld(t)
		w.host.Env = strings.Fields(row.env)
		o := Options{Host: w.host, Preset: row.preset}
		o.Host.Dir = w.mkdir("home/u/ws")
		var got []string
		for _, l := range w.plan(o).Agent.NoLogin {
			got = append(got, fmt.Sprintf("%s:%d", l.Host.Host, l.Host.Port))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s, %s: %q", row.preset, row.env, got)
		}
	}
}

// TestPresetsWithoutCredentialSayOnce: each preset says in one line what to type.
func TestPresetsWithoutCredentialSayOnce(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"aider", "claude", "cline", "codex", "copilot", "gemini", "goose", "opencode", "pi", "qwen"} {
		o := Options{Host: w.host, Preset: name}
		o.Host.Dir = w.mkdir("home/u/ws")
		said := w.plan(o).Agent.Missing
		if len(said) != 1 || name == "qwen" && !strings.HasSuffix(said[0], "; the login with an account of Qwen ended on 2026-04-15, and Qwen Code refuses it") {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// TestLoginThatIsBeingWritten: it is read once more.
func TestLoginThatIsBeingWritten(t *testing.T) {
	const login = `{"tokens":{"access_token":"aaaa.bbbb.cccc","refresh_token":"rrrrrrrr"}}`
	for _, row := range []struct {
		then  string
		ready bool
	}{{login, true}, {login[:20], false}} {
		w := newWorld(t)
		w.write("home/u/.codex/auth.json", login[:20], 0o600)
		p, err := PresetNamed(Options{Host: w.host}, "codex")
		if err != nil {
			t.Fatal(err)
		}
		waits := 0
		a := &agentPlan{preset: p, host: w.host, dir: w.at("home/u/ws"), claimed: map[string]bool{}, wait: func(time.Duration) {
			waits++
			w.write("home/u/.codex/auth.json", row.then, 0o600)
		}}
		i := slices.IndexFunc(p.credentials, func(c offered) bool { return c.Renewal != nil })
		if why := a.ready(&p.credentials[i]); (why == "") != row.ready || waits != 1 {
			t.Errorf("%q after %d waits", why, waits)
		}
	}
}

// TestPresetFilesThatOthersWrite: of settings and of a login that others can write the
// run says that they are not used, and what to type.
func TestPresetFilesThatOthersWrite(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/.claude/settings.json", `{"env": {}}`, 0o664)
	w.write("home/u/.claude/.credentials.json", `{}`, 0o664)
	o := Options{Host: w.host, Preset: "claude"}
	o.Host.Dir = w.mkdir("home/u/ws")
	said := strings.Join(w.plan(o).Agent.Missing, "\n")
	for _, name := range []string{"settings.json", ".credentials.json"} {
		path := w.at("home/u/.claude/" + name)
		if !strings.Contains(said, path+": can be written by others (mode 0664); chmod go-w "+path) {
			t.Errorf("%s: said\n%s", name, said)
		}
	}
}

// TestPresetLoginOfACommand: a program that is executed on the host does not obey what
// can be changed inside.
func TestPresetLoginOfACommand(t *testing.T) {
	for _, row := range []struct{ name, env, want string }{
		{"outside", "CLOUDSDK_CONFIG=ROOT/outside", ""},
		{"its directory in the workspace", "CLOUDSDK_CONFIG=ROOT/home/u/ws", "in view inside"},
		{"its file outside", "GOOGLE_APPLICATION_CREDENTIALS=ROOT/outside/key.json", ""},
		{"a file that is not there", "GOOGLE_APPLICATION_CREDENTIALS=ROOT/outside/none.json", "or export GOOGLE_APPLICATION_CREDENTIALS=/…, the key of a service account"},
		{"its file in the workspace", "GOOGLE_APPLICATION_CREDENTIALS=ROOT/home/u/ws/key.json", "GOOGLE_APPLICATION_CREDENTIALS: ROOT/home/u/ws/key.json is in view inside"},
		{"a relative file", "GOOGLE_APPLICATION_CREDENTIALS=key.json", "GOOGLE_APPLICATION_CREDENTIALS is not an absolute path"},
		{"its file alone", "GOOGLE_APPLICATION_CREDENTIALS=ROOT/outside/key.json CLOUDSDK_CONFIG=ROOT/none", ""},
		{"no file", "CLOUDSDK_CONFIG=ROOT/none", "gcloud auth application-default login"},
		{"its file alone, and its directory in the workspace", "GOOGLE_APPLICATION_CREDENTIALS=ROOT/outside/key.json CLOUDSDK_CONFIG=ROOT/home/u/ws", "in view inside"},
	} {
		w := newWorld(t)
		w.tool("usr/bin/gcloud")
		for _, dir := range []string{"outside", "home/u/ws", "home/u/.config/gcloud"} {
			w.write(dir+"/application_default_credentials.json", "{}", 0o600)
			w.write(dir+"/key.json", "{}", 0o600)
		}
		w.host.Env = append(strings.Fields(strings.ReplaceAll(row.env, "ROOT", w.root)), "CLAUDE_CODE_USE_VERTEX=1", "PATH="+w.at("usr/bin"))
		o := Options{Host: w.host, Preset: "claude"}
		o.Host.Dir = w.at("home/u/ws")
		p, err := w.compile(o)
		said := fmt.Sprint(err)
		if err == nil {
			said = strings.Join(p.Agent.Missing, "; ")
		}
		want := strings.ReplaceAll(row.want, "ROOT", w.root)
		if (len(p.Credentials) == 1) != (want == "") || want != "" && strings.Count(said, want) != 1 {
			t.Errorf("%s: %s, %+v", row.name, said, p.Credentials)
		}
	}
}

// TestPresetLoginOfGH: its login is where its variables say.
func TestPresetLoginOfGH(t *testing.T) {
	for _, row := range []struct{ file, env string }{
		{"home/u/.config/gh/hosts.yml", ""},
		{"outside/gh/hosts.yml", "XDG_CONFIG_HOME=ROOT/outside"},
		{"outside/hosts.yml", "GH_CONFIG_DIR=ROOT/outside XDG_CONFIG_HOME=ROOT/none"},
	} {
		w := newWorld(t)
		w.tool("usr/bin/gh")
		w.write(row.file, "github.com:\n", 0o600)
		w.host.Env = append(strings.Fields(strings.ReplaceAll(row.env, "ROOT", w.root)), "PATH="+w.at("usr/bin"))
		if p := w.plan(Options{Host: w.host, Preset: "copilot"}); len(p.Credentials) != 1 {
			t.Errorf("%s is not found: %q", row.file, p.Agent.Missing)
		}
	}
}

// TestPresetVariablesOfACredential: they come in with the credential that was chosen.
func TestPresetVariablesOfACredential(t *testing.T) {
	for env, want := range map[string]string{"GEMINI_API_KEY=AIza0123456789abcdef0123456789": "gemini-api-key", "OTHER=x": "oauth-personal"} {
		w := newWorld(t)
		w.write("home/u/.gemini/oauth_creds.json", `{"access_token":"ya29.aaaaaaaa","refresh_token":"rrrrrrrr","expiry_date":1}`, 0o600)
		w.host.Env = []string{env}
		o := Options{Host: w.host, Preset: "gemini"}
		o.Host.Dir = w.mkdir("home/u/ws")
		if got, _ := variableOf(w.plan(o), "GEMINI_DEFAULT_AUTH_TYPE"); got != want {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
}

// TestPresetLoginElsewhere: the login of another host of GitHub is not sent to GitHub's own.
func TestPresetLoginElsewhere(t *testing.T) {
	for host, want := range map[string]int{"https://github.com": 1, "https://corp.ghe.com": 0} {
		for _, text := range []string{
			`{"lastLoggedInUser":{"host":"HOST","login":"me"},"copilotTokens":{"HOST:me":"gho_0123456789abcdef0123456789abcdef0123"}}`,
			`{"lastLoggedInUser":{"host":"HOST","login":"me"},"authTokens":{"HOST:me":{"token":"gho_0123456789abcdef0123456789abcdef0123"}}}`,
		} {
			w := newWorld(t)
			w.write("home/u/.copilot/config.json", strings.ReplaceAll(text, "HOST", host), 0o600)
			o := Options{Host: w.host, Preset: "copilot"}
			o.Host.Dir = w.mkdir("home/u/ws")
			p := w.plan(o)
			said := strings.Join(p.Agent.Missing, "\n")
			if len(p.Credentials) != want || strings.Contains(said, "its lastLoggedInUser.host is not https://github.com") != (want == 0) {
				t.Errorf("%s: %d credentials, %s", text, len(p.Credentials), said)
			}
		}
	}
}

// TestPresetLoginsAreAnswered: where the programs log in, nothing passes, with the words
// for it, whatever credential there is.
func TestPresetLoginsAreAnswered(t *testing.T) {
	for preset, urls := range map[string]string{
		"claude":   "platform.claude.com/v1/oauth/token",
		"codex":    "auth.openai.com/oauth/token",
		"gemini":   "oauth2.googleapis.com/token",
		"copilot":  "github.com/login/device/code github.com/login/oauth/access_token",
		"opencode": "github.com/login/device/code github.com/login/oauth/access_token auth.openai.com/oauth/token auth.openai.com/api/accounts/deviceauth/usercode platform.claude.com/v1/oauth/token auth.x.ai/oauth2/token",
		"pi":       "platform.claude.com/v1/oauth/token auth.openai.com/oauth/token github.com/login/device/code github.com/login/oauth/access_token",
		"cline":    "api.workos.com/user_management/authorize/device api.cline.bot/api/v1/auth/token auth.openai.com/oauth/token",
	} {
		for _, env := range []string{"OTHER=x", "ANTHROPIC_API_KEY=sk-ant-api03-0123456789abcdef"} {
			w := newWorld(t)
			w.host.Env = []string{env}
			o := Options{Host: w.host, Preset: preset}
			o.Host.Dir = w.mkdir("home/u/ws")
			p := w.plan(o)
			for _, url := range strings.Fields(urls) {
				host, path, _ := strings.Cut(url, "/")
				at := slices.IndexFunc(p.Agent.Logins, func(l Login) bool { return l.Host.Host == host && l.Path == "/"+path })
				if at < 0 || p.Agent.Logins[at].Text == "" {
					t.Errorf("%s: a login at %s is not answered", preset, url)
				}
			}
		}
	}
}

func TestPresetLoginsThatAreWrong(t *testing.T) {
	const whole = "{name: x, hosts: [example.org], env: X, login: log in, source: {file: ~/.x, key: token}, renew: {url: https://login.example.org/token, refresh: refresh}}"
	for _, row := range []struct{ from, to, want string }{
		{"", "", ""},
		{"https:", "http:", "a refresh token is sent by https only"},
		{"https://login.example.org/token", "'https://login.example.org/token?a=b'", "a refresh token is sent by https only"},
		{"https://", "https://u:p@", "a refresh token is sent by https only"},
		{"org/token", "org/*", "has a star"},
		{"login.example.org/token", "'*.example.org/token'", "mine.yaml:2"},
		{"refresh: refresh", "refresh_token: refresh", `unknown key "refresh_token" in renew of a credential`},
		{", refresh: refresh", "", "needs url and refresh"},
		{"refresh: refresh", "refresh: refresh, body: xml", `unknown form of a request "xml"`},
		{"login: log in, ", "", "renew needs login"},
		{"{file: ~/.x, key: token}", "{env: TOKEN}", "renew and inside need a source with file and key"},
		{"{file: ~/.x, key: token}", "{file: ~/.x, variable: TOKEN}", "renew and inside need a source with file and key"},
		{"renew: {url: https://login.example.org/token, refresh: refresh}", "inside: {keep: [a], also: [b]}", ""},
		{"{file: ~/.x, key: token}, renew: {url: https://login.example.org/token, refresh: refresh}", "{env: TOKEN}, inside: {keep: [a]}", "renew and inside need a source with file and key"},
		{"env: X", "inside: {kept: [a]}", `unknown key "kept" in inside of a credential`},
		{"env: X", "inside: {claims: {token: ['a  b']}}", "is not a claim"},
		{"env: X", "env: X, set: {LD_PRELOAD: x}", "mine.yaml:2"},
		{"env: X", "env: X, set: {MY_TOKEN: x}", "looks like a secret"},
	} {
		w := newWorld(t)
		text := "version: 1\ncredentials: [" + strings.Replace(whole, row.from, row.to, 1) + "]\n"
		w.write("home/u/.config/holdfast/presets/mine.yaml", text, 0o600)
		_, err := w.compile(Options{Host: w.host, Preset: "mine"})
		if said := fmt.Sprint(err); row.want == "" && err != nil || !strings.Contains(said, row.want) {
			t.Errorf("%s: %v, want %s", text, err, row.want)
		}
	}
}
