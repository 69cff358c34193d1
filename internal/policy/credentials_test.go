package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// withCredential is a policy of one destination and one credential.
func withCredential(allow, credential string) string {
	return "version: 1\nnetwork:\n  allow:\n    - " + allow + "\ncredentials:\n  - " + credential + "\n"
}

func TestCredentialsAreRefused(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"text", "github", "a credential is the text"},
		{"no name", "{source: {env: A}, hosts: [a.b]}", "has no name"},
		{"a strange name", "{name: a b, source: {env: A}, hosts: [a.b]}", "not the name of a credential"},
		{"no source", "{name: a, hosts: [a.b]}", "has no source"},
		{"an empty source", "{name: a, source: {}, hosts: [a.b]}", "has 0 kinds"},
		{"two sources", "{name: a, source: {env: A, file: /b}, hosts: [a.b]}", "has 2 kinds"},
		{"an unknown source", "{name: a, source: {comand: x}, hosts: [a.b]}", `did you mean "command"?`},
		{"an unknown key", "{name: a, source: {env: A}, host: [a.b]}", `unknown key "host" in the credential a, did you mean "hosts"?`},
		{"a key given twice", "{name: a, name: b, source: {env: A}}", "is repeated"},
		{"the secret itself", "{name: a, value: ghp_x, source: {env: A}}", `unknown key "value"`},
		{"no hosts", "{name: a, source: {env: A}, hosts: []}", "empty list"},
		{"a wildcard", "{name: a, source: {env: A}, hosts: ['*.example.org']}", "is a wildcard"},
		{"a kind", "{name: a, source: {env: A}, hosts: [a.b:22/tcp]}", "not a port"},
		{"an address that looks otherwise", "{name: a, source: {env: A}, hosts: ['127.1']}", "its last label is a number"},
		{"a variable with a strange name", "{name: a, source: {env: 'A=B'}, hosts: [a.b]}", "is not a variable name"},
		{"a file that may be missing", "{name: a, source: {file: '~/x?'}, hosts: [a.b]}", "cannot be optional"},
		{"a file that goes up", "{name: a, source: {file: ../x}, hosts: [a.b]}", "goes up"},
		{"a pipe in a command", "{name: a, source: {command: 'a | b'}, hosts: [a.b]}", "no shell reads it"},
		{"a variable in a command", "{name: a, source: {command: a $B}, hosts: [a.b]}", "no shell reads it"},
		{"another command in a command", "{name: a, source: {command: a `b`}, hosts: [a.b]}", "no shell reads it"},
		{"a variable in quotes in a command", "{name: a, source: {command: 'a \"$B\"'}, hosts: [a.b]}", "no shell reads it"},
		{"two commands", "{name: a, source: {command: a; b}, hosts: [a.b]}", "no shell reads it"},
		{"a command in the background", "{name: a, source: {command: a & b}, hosts: [a.b]}", "no shell reads it"},
		{"a command that writes", "{name: a, source: {command: a > b}, hosts: [a.b]}", "no shell reads it"},
		{"a command that reads", "{name: a, source: {command: a < b}, hosts: [a.b]}", "no shell reads it"},
		{"a quote that does not end", "{name: a, source: {command: \"a 'b\"}, hosts: [a.b]}", "unclosed quote"},
		{"an empty command", "{name: a, source: {command: []}, hosts: [a.b]}", "is a list"},
		{"a command of spaces", "{name: a, source: {command: ' '}, hosts: [a.b]}", "is empty"},
		{"a command with an empty program", "{name: a, source: {command: ['', x]}, hosts: [a.b]}", "no program"},
		{"a header without a place", "{name: a, source: {env: A}, hosts: [a.b], header: 'X-Key: x'}", "0 places"},
		{"a header with two places", "{name: a, source: {env: A}, hosts: [a.b], header: 'X-Key: {}{}'}", "2 places"},
		{"a header without a name", "{name: a, source: {env: A}, hosts: [a.b], header: ': {}'}", "is not a header"},
		{"a header without a colon", "{name: a, source: {env: A}, hosts: [a.b], header: 'Bearer {}'}", "is not a header"},
		{"two headers", `{name: a, source: {env: A}, hosts: [a.b], header: "A: {}\r\nB: x"}`, "printable ASCII"},
		{"the header that names the host", "{name: a, source: {env: A}, hosts: [a.b], header: 'host: {}'}", "the header Host"},
		{"the header that says the length", "{name: a, source: {env: A}, hosts: [a.b], header: 'Content-Length: {}'}", "the header Content-Length"},
		{"a header of proxies", "{name: a, source: {env: A}, hosts: [a.b], header: 'X-Forwarded-For: {}'}", "the header X-Forwarded-For"},
		{"a variable that is ours", "{name: a, source: {env: A}, hosts: [a.b], env: HOME}", "is set by holdfast"},
		{"a variable that programs obey", "{name: a, source: {env: A}, hosts: [a.b], env: HTTPS_PROXY}", "how programs run"},
		{"a variable that is none", "{name: a, source: {env: A}, hosts: [a.b], env: a-b}", "not a variable name"},
		{"a shape with a space", "{name: a, source: {env: A}, hosts: [a.b], env: B, shape: 'a b'}", "beginning of a token"},
		{"a lease of no time", "{name: a, source: {env: A}, hosts: [a.b], ttl: 0s}", "not a duration"},
		{"a lease that does not end", "{name: a, source: {env: A}, hosts: [a.b], ttl: none}", "not a duration"},
		{"no uses", "{name: a, source: {env: A}, hosts: [a.b], uses: 0}", "not a whole number"},
		{"a use that nothing inside has", "{name: a, source: {env: A}, hosts: [a.b], always: false}", "nothing inside could use it"},
		{"an unknown way to sign", "{name: a, source: {env: A}, hosts: [a.b], sign: hmac}", "unknown way to sign"},
		{"signing and a header", "{name: a, source: {env: A}, hosts: [a.b], sign: aws-sigv4, header: 'X: {}'}", "sign cannot be combined with header"},
		{"signing and a variable", "{name: a, source: {env: A}, hosts: [a.b], sign: aws-sigv4, env: B}", "sign cannot be combined with header"},
		{"a path with an escape", "{name: a, source: {env: A}, hosts: [a.b], paths: [/%61]}", "contains"},
		{"Vault without a field", "{name: a, source: {vault: {path: a/b}}, hosts: [a.b]}", "needs path and field"},
		{"Vault in the clear", "{name: a, source: {vault: {path: a/b, field: c, address: 'http://vault.example.org'}}, hosts: [a.b]}", "https only"},
		{"Vault with a password in its address", "{name: a, source: {vault: {path: a/b, field: c, address: 'https://u:p@v.example.org'}}, hosts: [a.b]}", "is not an address"},
		{"a path that leaves Vault's tree", "{name: a, source: {vault: {path: a/../sys, field: c}}, hosts: [a.b]}", "not a path in Vault"},
		{"an app for all repositories", "{name: a, source: {github-app: {app-id: 1, installation-id: 2, key-file: /k, permissions: {contents: read}}}, hosts: [a.b]}", "a token is limited to those"},
		{"an app with an empty list of them", "{name: a, source: {github-app: {app-id: 1, installation-id: 2, key-file: /k, repositories: [], permissions: {contents: read}}}, hosts: [a.b]}", "empty list"},
		{"an app without permissions", "{name: a, source: {github-app: {app-id: 1, installation-id: 2, key-file: /k, repositories: [r], permissions: {}}}, hosts: [a.b]}", "at least one"},
		{"an app with a strange level", "{name: a, source: {github-app: {app-id: 1, installation-id: 2, key-file: /k, repositories: [r], permissions: {contents: all}}}, hosts: [a.b]}", "unknown level"},
		{"a repository with its owner", "{name: a, source: {github-app: {app-id: 1, installation-id: 2, key-file: /k, repositories: [o/r], permissions: {contents: read}}}, hosts: [a.b]}", "without the owner"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("p.yaml", "/", []byte("version: 1\ncredentials:\n  - "+row.text+"\n"))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "p.yaml:3: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestCredentialsAndRules(t *testing.T) {
	for _, row := range []struct {
		name, allow, credential string
		rules                   []string // of the plan
		hosts                   string   // of the credential
		want                    string   // of the error
	}{
		{"hosts of the credential mark the rule", "api.example.org:443", "{name: c, source: {env: S}, hosts: [API.example.org.]}",
			[]string{"api.example.org:443/tls credential c"}, "[{api.example.org 443}]", ""},
		{"of a host alone the rule for TLS", "api.example.org", "{name: c, source: {env: S}, hosts: [api.example.org]}",
			[]string{"api.example.org:443/tls credential c", "api.example.org:80/http"}, "[{api.example.org 443}]", ""},
		{"a rule that names the credential gives it its hosts", "{host: api.example.org, ports: [443, 8443], kind: tls, credential: c}", "{name: c, source: {env: S}}",
			[]string{"api.example.org:443,8443/tls credential c"}, "[{api.example.org 443} {api.example.org 8443}]", ""},
		{"below a wildcard the host gets a rule of its own", "'*.example.org:443'", "{name: c, source: {env: S}, hosts: [api.example.org]}",
			[]string{"*.example.org:443/tls", "api.example.org:443/tls credential c"}, "[{api.example.org 443}]", ""},
		{"with the methods of the wildcard", "{host: '*.example.org', methods: [GET]}", "{name: c, source: {env: S}, hosts: [api.example.org]}",
			[]string{"*.example.org:443/tls GET", "api.example.org:443/tls GET credential c"}, "[{api.example.org 443}]", ""},
		{"a host that no rule names", "example.org", "{name: c, source: {env: S}, hosts: [api.example.org]}", nil, "",
			"hint: add under network.allow the line: - api.example.org"},
		{"a port that no rule names", "example.org", "{name: c, source: {env: S}, hosts: [example.org:8443]}", nil, "",
			"hint: add under network.allow the line: - example.org:8443/tls"},
		{"a host in the clear", "example.org:80", "{name: c, source: {env: S}, hosts: [example.org:80]}", nil, "", "with kind tls"},
		{"a credential that goes nowhere", "example.org", "{name: c, source: {env: S}}", nil, "", "has no host"},
		{"a wildcard that names the credential", "{host: '*.example.org', credential: c}", "{name: c, source: {env: S}}", nil, "", "named in full"},
		{"a rule that names another credential", "{host: example.org, credential: cc}", "{name: c, source: {env: S}, hosts: [example.org]}", nil, "", "hint: did you mean c?"},
		{"a lease of an hour on one's own machine", "example.org:443", "{name: c, source: {env: S}, hosts: [example.org], ttl: 1h}",
			[]string{"example.org:443/tls credential c"}, "[{example.org 443}]", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(userFile, withCredential(row.allow, row.credential), 0o644)
			p, err := w.compile(w.options())
			if row.want != "" {
				text := fmt.Sprint(err)
				if h, ok := err.(interface{ Hint() string }); ok {
					text += " hint: " + h.Hint()
				}
				if err == nil || !strings.Contains(text, row.want) || !strings.Contains(text, w.at(userFile)+":") {
					t.Fatalf("got %s, want %q", text, row.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var rules []string
			for _, r := range p.Allow {
				rules = append(rules, r.String())
				if len(r.Credentials) > 0 && !r.Inspect {
					t.Errorf("%s is not inspected", r)
				}
			}
			if !slices.Equal(rules, row.rules) || fmt.Sprint(p.Credentials[0].Hosts) != row.hosts {
				t.Errorf("got %q and %v", rules, p.Credentials[0].Hosts)
			}
			if c := p.Credentials[0]; c.Origin.Line != 6 || c.Header != "Authorization" || c.Format != "Bearer {}" || !c.Always {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestCredentialInFull(t *testing.T) {
	w := newWorld(t)
	w.tool("usr/bin/gh")
	w.write(userFile, withCredential("api.github.com:443", "{name: gh, source: {command: \"gh auth token --user 'a b'\"}, hosts: [api.github.com], header: 'private-token: {}', env: [GH_TOKEN, GITHUB_TOKEN], ttl: 5m, uses: 7, paths: [/repos/acme/**]}"), 0o644)
	p := w.plan(w.options())
	want := Credential{
		Name: "gh", Hosts: []HostPort{{"api.github.com", 443}}, Paths: []string{"/repos/acme/**"}, Header: "Private-Token", Format: "{}",
		Source: CredentialSource{Kind: "command", Argv: []string{w.at("usr/bin/gh"), "auth", "token", "--user", "a b"}, Options: map[string]string{}},
		Env:    []string{"GH_TOKEN", "GITHUB_TOKEN"}, Shape: "ghp_", TTL: 5 * time.Minute, Uses: 7, Origin: Origin{w.at(userFile), 6},
	}
	if !reflect.DeepEqual(p.Credentials, []Credential{want}) {
		t.Errorf("got %+v", p.Credentials)
	}
	again := w.plan(w.options())
	if !reflect.DeepEqual(p, again) {
		t.Error("loading a second time gives another plan")
	}
}

func TestSourcesAreOutOfReach(t *testing.T) {
	for _, row := range []struct{ name, source, want string }{
		{"a file elsewhere", "{file: ROOT/outside/token}", ""},
		{"a file beside the policy", "{file: token}", ""},
		{"a file in the workspace", "{file: ROOT/home/u/ws/token}", "in view inside (workspace)"},
		{"a link into the workspace", "{file: ROOT/outside/link}", "in view inside (workspace)"},
		{"a file that a rule shows", "{file: ROOT/data/token}", "in view inside"},
		{"a key in the workspace", "{github-app: {app-id: 1, installation-id: 2, key-file: ~/ws/key, repositories: [r], permissions: {contents: read}}}", "in view inside"},
		{"a program in PATH", "{command: [gh]}", ""},
		{"a program by its path", "{command: [ROOT/outside/prog]}", ""},
		{"a program that is only in the workspace", "{command: [wsprog]}", "no directory of your PATH"},
		{"a program by its path in the workspace", "{command: [ROOT/home/u/ws/bin/wsprog]}", "could replace it"},
		{"a link in the workspace to a program", "{command: [ROOT/home/u/ws/gh]}", "could replace it"},
		{"a script in the workspace", "{command: [gh, ROOT/home/u/ws/script]}", "could replace it"},
		{"a program that does not exist", "{command: [nosuchprogram]}", "no directory of your PATH"},
		{"Vault of the environment", "{vault: {path: a/b, field: c}}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.tool("usr/bin/gh")
			w.tool("outside/prog")
			w.tool("home/u/ws/bin/wsprog")
			w.link("/home/u/ws/token", "outside/link")
			w.link("/usr/bin/gh", "home/u/ws/gh")
			w.write("home/u/ws/token", "s", 0o600)
			w.host.Env = []string{"PATH=" + w.at("home/u/ws/bin") + ":" + w.at("usr/bin"), "VAULT_ADDR=https://vault.example.org/"}
			source := strings.ReplaceAll(row.source, "ROOT", w.root)
			w.write(userFile, withCredential("api.example.org", "{name: c, source: "+source+", hosts: [api.example.org]}"), 0o644)
			p, err := w.compile(w.options("filesystem.read", w.at("data")))
			if row.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if s := p.Credentials[0].Source; s.Kind == "vault" && s.Options["address"] != "https://vault.example.org" {
					t.Errorf("got %+v", s)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), w.at(userFile)+":6: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestCredentialsKeepSecretsOutOfTheEnvironment(t *testing.T) {
	w := newWorld(t)
	w.host.Env = append(w.host.Env, "MY_VALUE=plain", "MY_OTHER=plain", "SOURCE_VALUE=plain")
	w.write(userFile, withCredential("api.example.org", "{name: c, source: {env: SOURCE_VALUE}, hosts: [api.example.org], env: MY_VALUE}"), 0o644)
	for _, row := range []struct{ name, key, value, want string }{
		{"the placeholder's variable cannot be set", "environment.set", "MY_VALUE=x", "MY_VALUE is handed in, but the credential c"},
		{"nor passed", "environment.pass", "MY_VALUE", "MY_VALUE is handed in"},
		{"the source's variable cannot be passed", "environment.pass", "SOURCE_VALUE", "SOURCE_VALUE is handed in"},
		{"nor set", "environment.set", "SOURCE_VALUE=x", "SOURCE_VALUE is handed in"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := w.compile(w.options(row.key, row.value, "environment.pass", "M*"))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
	both := Options{Host: w.host, Settings: []Setting{
		{Flag: "--env", Key: "environment.pass", Value: "MY_*"}, {Flag: "--env", Key: "environment.set", Value: "MY_VALUE=x"}}}
	if _, err := w.compile(both); err == nil || !strings.Contains(err.Error(), "MY_VALUE is handed in") {
		t.Errorf("set beside a wildcard, by the same flag: %v", err)
	}
	p := w.plan(w.options("environment.pass", "MY_*", "environment.pass", "SOURCE_*"))
	for _, name := range []string{"MY_VALUE", "SOURCE_VALUE"} {
		if _, found := variableOf(p, name); found {
			t.Errorf("a wildcard hands in %s", name)
		}
	}
	if _, found := variableOf(p, "MY_OTHER"); !found || len(p.Notes) != 2 {
		t.Errorf("notes: %q", p.Notes)
	}
}

// Signing for AWS takes three variables: neither of the other two is handed in.
func TestSigningKeepsAllItsVariablesOut(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct{ name, source, variable, want string }{
		{"the secret key", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY is handed in"},
		{"the session token", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_SESSION_TOKEN is handed in"},
		{"those of another profile", "WORK_ACCESS_KEY_ID", "WORK_SECRET_ACCESS_KEY", "WORK_SECRET_ACCESS_KEY is handed in"},
		{"a variable that only begins like the source", "KEY", "KEYSECRET_ACCESS_KEY", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w.write(userFile, withCredential("api.example.org", "{name: c, source: {env: "+row.source+"}, hosts: [api.example.org], sign: aws-sigv4}"), 0o644)
			_, err := w.compile(w.options("environment.set", row.variable+"=x"))
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestCredentialsOfSeveralSources(t *testing.T) {
	w := newWorld(t)
	text := "version: 1\nextends: base.yaml\nnetwork: {allow: [a.example.org]}\ncredentials:\n"
	one := "  - {name: c, source: {env: ONE}, hosts: [a.example.org]}\n"
	w.write("home/u/.config/holdfast/base.yaml", "version: 1\nextends: ci\ncredentials:\n"+strings.ReplaceAll(one, "ONE", "BASE"), 0o644)
	w.write(userFile, text+one, 0o644)
	if p := w.plan(w.options()); len(p.Credentials) != 1 || p.Credentials[0].Source.Value != "ONE" {
		t.Errorf("got %+v", p.Credentials)
	}
	for _, row := range []struct{ name, text, want string }{
		{"a name twice in one file", text + one + one, ":6: the credential c is already defined"},
		{"a variable for two", text + strings.ReplaceAll(one, "hosts", "env: V, hosts") + strings.NewReplacer("hosts", "env: V, hosts", "name: c", "name: d").Replace(one), "holds the placeholder of c already"},
		{"two that sign for AWS", text + strings.ReplaceAll(one, "hosts", "sign: aws-sigv4, hosts") + strings.NewReplacer("hosts", "sign: aws-sigv4, hosts", "name: c", "name: d").Replace(one), "AWS_ACCESS_KEY_ID holds"},
		{"a long lease where others share the machine", text + strings.ReplaceAll(one, "hosts", "ttl: 16m, hosts"), "the profile ci allows at most 15m"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w.write(userFile, row.text, 0o644)
			if _, err := w.compile(w.options()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestProjectTakesDestinationsAwayFromCredentials(t *testing.T) {
	w := newWorld(t)
	w.write(userFile, withCredential("api.example.org", "{name: c, source: {env: S}, hosts: [api.example.org]}"), 0o644)
	w.write("home/u/ws/holdfast.yaml", "version: 1\nnetwork: {allow: []}\n", 0o644)
	if p := w.plan(w.options()); len(p.Credentials) != 0 || len(p.Allow) != 0 {
		t.Errorf("got %+v, %+v", p.Credentials, p.Allow)
	}
}

func TestWordsAreSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"gh auth token":          {"gh", "auth", "token"},
		"  a\t'b c'  \"d'e\" ":   {"a", "b c", "d'e"},
		"a ''":                   {"a", ""},
		"a'b'\"c\"":              {"abc"},
		"pass show 'it costs $'": {"pass", "show", "it costs $"},
	} {
		if got, err := splitWords(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{"a b", "a 'b c'", `a "b"`, "a $B", "a\\ b", "''", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := splitWords(text)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			if strings.Contains(w, "'") {
				return
			}
			quoted = append(quoted, "'"+w+"'")
		}
		again, err := splitWords(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, words) {
			t.Errorf("%q became %q, and that %q: %v", text, words, again, err)
		}
	})
}
