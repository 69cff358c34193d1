package redact

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// knownHere are the variables and the file that there are in these tests.
var knownHere = Known{
	Variable: func(name string) bool { return name == "OPENAI_API_KEY" || name == "MY_TOKEN" },
	File:     func(path string) bool { return path == "~/.secrets/token" },
}

// A reference to a secret is a name and stays in a copy of settings. What only looks
// like one is masked, to its end.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"a variable of opencode", `{"apiKey": "{env:OPENAI_API_KEY}", "x": 1}`, ""},
		{"one that is not set", `{"apiKey": "{env:ANOTHER_KEY}"}`, ""},
		{"a file of opencode", `{"apiKey": "{file:~/.secrets/key}"}`, ""},
		{"a variable in braces", `{"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}`, ""},
		{"one with an empty default", `{"token": "${MY_TOKEN:-}"}`, ""},
		{"one without braces", `{"token": "$MY_TOKEN"}`, ""},
		{"behind a scheme", `{"Authorization": "Bearer ${MY_TOKEN}"}`, ""},
		{"behind a scheme, of opencode", `{"Authorization": "Bearer {env:OPENAI_API_KEY}"}`, ""},
		{"of a pipeline", `apiKey: "${{ secrets.OPENAI_API_KEY }}"`, ""},
		{"in an address", `{"url": "https://h.example.org/?token={env:MY_TOKEN}&a=b"}`, ""},
		{"the name of a variable, as Codex has it", `env_http_headers = { "X-Api-Key" = "OPENAI_API_KEY" }`, ""},
		{"the same as a table", "[mcp_servers.x.env_http_headers]\n\"X-Api-Key\" = \"OPENAI_API_KEY\"", ""},
		{"the same as a variable", `bearer_token_env_var = "OPENAI_API_KEY"`, ""},
		{"behind such a table", "[x.env_http_headers]\n[y]\ntoken = \"OPENAI_API_KEY\"", "[x.env_http_headers]\n[y]\ntoken = \"<token>\""},
		{"behind such an object", `{"env_http_headers": {}, "token": "OPENAI_API_KEY"}`, `{"env_http_headers": {}, "token": "<token>"}`},
		{"a password that is the name of a variable", `{"P_PASSWORD": "MY_TOKEN"}`, `{"P_PASSWORD": "<password>"}`},
		{"a password that begins like several directories", `{"DB_PASSWORD": "/tr0ub4dor/and3"}`, `{"DB_PASSWORD": "<password>"}`},
		{"a token that begins like a file at home", `{"API_TOKEN": "~/hunter2/hunter3"}`, `{"API_TOKEN": "<token>"}`},
		{"a token that begins like a file here", `{"T_TOKEN": "./x/y9Kxq2LmTzv8PbQw4Yh7Rn1S"}`, `{"T_TOKEN": "<token>"}`},
		{"a password that looks like one of a pipeline", `{"Q_PASSWORD": "${{hunter2 correct horse}}"}`, `{"Q_PASSWORD": "<password>"}`},
		{"of TOML", `api_key = "${MY_TOKEN}"`, ""},
		{"a secret", `{"apiKey": "abc123secretvalue"}`, `{"apiKey": "<token>"}`},
		{"a secret behind a reference", `{"apiKey": "{env:OPENAI_API_KEY}abc123secret"}`, `{"apiKey": "<token>"}`},
		{"a secret behind a comma behind a reference", `{"apiKey": "{env:OPENAI_API_KEY},abc123secret"}`, `{"apiKey": "<token>"}`},
		{"a secret before a reference", `{"apiKey": "abc123secret{env:OPENAI_API_KEY}"}`, `{"apiKey": "<token>"}`},
		{"a secret behind a reference in an address", `{"url": "https://h.example.org/?token={env:MY_TOKEN}abc123secret"}`, `{"url": "https://h.example.org/?token=<token>"}`},
		{"a secret as default", `{"token": "${MY_TOKEN:-abc123secret}"}`, `{"token": "<token>"}`},
		{"a password that begins like a reference", `{"password": "$ecretPass99"}`, `{"password": "<password>"}`},
		{"a password that begins like a path", `{"password": "/hunter2"}`, `{"password": "<password>"}`},
		{"a password in capitals", `{"password": "$ECRET"}`, `{"password": "<password>"}`},
		{"a password that is a word", `{"password": "HUNTER"}`, `{"password": "<password>"}`},
		{"a reference that does not end", `{"password": "{env:OPENAI_API_KEY"}`, `{"password": "<password>"}`},
		{"a key as the name of a variable", `{"apiKey": "{env:` + github + `}"}`, `{"apiKey": "<token>"}`},
		{"a password of several words", `{"password": "correct horse battery", "x": 1}`, `{"password": "<password>", "x": 1}`},
		{"one with a mark of quotation in it", `{"password": "correct \" horse}", "x": 1}`, `{"password": "<password>", "x": 1}`},
		{"one of TOML", `password = 'correct horse, battery' # mine`, `password = '<password>' # mine`},
		{"a name at the end of another value", `{"note": "give me the token:", "b": "c"}`, ""},
		{"a value on the next line", "{\"token\":\n  \"abc 123 secret\"}", "{\"token\":\n  \"<token>\"}"},
		{"a file that is there", `{"token": "~/.secrets/token"}`, ""},
		{"prose", "don't write the password: it's secret\n", "don't write the password: <password>'s secret\n"},
	} {
		want := tt.want
		if want == "" {
			want = tt.in
		}
		if got := short(New().Settings(tt.in, knownHere)); got != want {
			t.Errorf("%s: %s becomes %s, want %s", tt.name, tt.in, got, want)
		}
	}
}

func TestReferenceOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Reference{
		"Bearer {env:A_B}": {Variable: "A_B"}, "{file:~/x}": {File: "~/x"}, "${C}": {Variable: "C"}, "$A": {Variable: "A"}, "${D:-}": {Variable: "D"}, "${env:E}": {Variable: "E"},
		"": {}, "plain": {}, "{x}": {}, "$5": {}, "$": {}, "{env:}": {}, "${}": {}, "${a-b}": {}, "$A$B": {}, "x${C}": {}, "${C}x": {}, "{env:A": {}, "Bearer": {}, "{file:key}": {},
	} {
		if got, ok := ReferenceOf(text); got != want && ok || ok != (want != Reference{}) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
}

// TestSettingsTakeTheirLength masks settings that look most like many beginnings.
func TestSettingsTakeTheirLength(t *testing.T) {
	for _, unit := range []string{`"token":"`, `"token": "{env:`, `"`, `'`, `token="`, "{file:/", "${", `"token":"a\`, "\"token\"\n"} {
		testenv.TakesItsLength(t, fmt.Sprintf("%q", unit), 1<<16, func(size int) func() {
			text := strings.Repeat(unit, size/len(unit))
			r := New()
			return func() { r.Settings(text, knownHere) }
		})
	}
}
