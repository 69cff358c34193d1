package network

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/policy"
)

// TestReachOfPresets: the tokens of presets that may do more than their programs need go
// to the paths that these need, whatever the user allows besides.
func TestReachOfPresets(t *testing.T) {
	const (
		copilot  = "/copilot_internal/user /copilot_internal/managed_settings /models /models/session /chat/completions /responses /v1/messages /embeddings"
		noGitHub = "/copilot_internal/v2/token /copilot_internal/embeddings_index /user /repos/octo/x /graphql /mcp /mcp/ /mcp/readonly /agents/sessions /embeddings/code/search /"
		claude   = "/v1/messages /v1/messages/count_tokens /v1/models /api/claude_cli/bootstrap /api/claude_code/settings /api/hello /api/oauth/profile /api/oauth/usage /api/oauth/account/settings /api/web/domain_info"
		noClaude = "/v1/code/sessions/x/bridge /v1/environments/bridge /api/oauth/claude_cli/create_api_key /v1/mcp_servers /v1/sessions /v1/files /v1/code/auth/refresh /v1/oauth/token /api/oauth/claude_cli/roles /"
		login    = ".local/share/opencode/auth.json"
		project  = "/v1/projects/p/locations/l"
	)
	for _, row := range []struct {
		preset, env, file, text string
		hosts, yes, no          string
	}{
		{"copilot", "COPILOT_GITHUB_TOKEN", "", "", "api.github.com api.githubcopilot.com api.individual.githubcopilot.com api.business.githubcopilot.com api.enterprise.githubcopilot.com", copilot, noGitHub},
		{"copilot", "GH_TOKEN", "", "", "api.github.com api.githubcopilot.com", copilot, noGitHub},
		{"copilot", "GITHUB_TOKEN", "", "", "api.github.com api.githubcopilot.com", copilot, noGitHub},
		{"copilot", "PATH", ".config/gh/hosts.yml", "", "api.github.com api.githubcopilot.com", copilot, noGitHub},
		{"opencode", "", login, `{"github-copilot":{"refresh":"gho_0123456789abcdef","access":"gho_0123456789abcdef"}}`, "api.githubcopilot.com", "/models /chat/completions /responses", noGitHub},
		{"opencode", "", login, `{"openai":{"refresh":"0123456789abcdef","access":"0123456789abcdef"}}`, "chatgpt.com", "/backend-api/codex/responses", "/backend-api/conversations /backend-api/me"},
		{"codex", "", ".codex/auth.json", `{"tokens":{"refresh_token":"0123456789abcdef","access_token":"0123456789abcdef"}}`, "chatgpt.com", "/backend-api/codex/responses /backend-api/wham/usage", "/backend-api/conversations /backend-api/wham/tasks /backend-api/me"},
		{"claude", "CLAUDE_CODE_OAUTH_TOKEN", "", "", "api.anthropic.com", claude, noClaude},
		{"claude", "CLAUDE_CODE_OAUTH_TOKEN ANTHROPIC_BASE_URL", "", "", "gateway.example.org", "/models/v1/messages", "/models/v1/mcp_servers /models /v1/mcp_servers"},
		{"claude", "", ".claude/.credentials.json", `{"claudeAiOauth":{"refreshToken":"0123456789abcdef","accessToken":"0123456789abcdef"}}`, "api.anthropic.com", claude, noClaude},
		{"claude", "CLAUDE_CODE_USE_VERTEX PATH", ".config/gcloud/application_default_credentials.json", "", "aiplatform.googleapis.com us-east5-aiplatform.googleapis.com",
			project + "/publishers/anthropic/models/claude:streamRawPredict " + project + "/publishers/anthropic/models/count-tokens:rawPredict", project + "/endpoints/1:predict " + project + "/customJobs /v1/projects/p/locations/l/publishers/google/models/x:rawPredict"},
		{"claude", "CLAUDE_CODE_USE_BEDROCK AWS_BEARER_TOKEN_BEDROCK", "", "", "bedrock-runtime.us-east-1.amazonaws.com bedrock.us-east-1.amazonaws.com", "/model/x/invoke /model/arn%3Aaws%3Abedrock%2Fx/invoke-with-response-stream /inference-profiles", "/guardrails /custom-models /agents/x"},
		{"gemini", "", ".gemini/oauth_creds.json", `{"refresh_token":"0123456789abcdef","access_token":"0123456789abcdef"}`, "cloudcode-pa.googleapis.com www.googleapis.com", "/v1internal:loadCodeAssist /oauth2/v2/userinfo", "/drive/v3/files /gmail/v1/users/me/messages"},
	} {
		t.Run(row.preset+" "+row.env+row.file, func(t *testing.T) {
			h := presetHost(t, row.env, row.file, row.text)
			o := policy.Options{Host: h, Preset: row.preset}
			for range 2 {
				e, err := policy.Load(o)
				if err != nil {
					t.Fatal(err)
				}
				p, err := policy.Compile(e, h)
				if err != nil || len(p.Credentials) != 1 {
					t.Fatalf("%v, %+v, %q", err, p.Credentials, p.Agent.Missing)
				}
				rules, err := NewRules(p.Allow)
				if err != nil {
					t.Fatal(err)
				}
				goes := func(host, path string) bool {
					at, _ := rules.At(host, 443)
					return at.MayUseFor(p.Credentials[0].Name, "POST", path) && pathAllowed(p.Credentials[0].Paths, path) == nil
				}
				for _, host := range strings.Fields(row.hosts) {
					if !slices.Contains(p.Credentials[0].Hosts, policy.HostPort{Host: host, Port: 443}) {
						t.Errorf("not for %s", host)
					}
					for _, path := range strings.Fields(row.yes) {
						if !goes(host, path) {
							t.Errorf("it does not go to %s%s", host, path)
						}
					}
					for _, path := range strings.Fields(row.no) {
						if goes(host, path) {
							t.Errorf("with %v it goes to %s%s", o.Settings, host, path)
						}
					}
					o.Settings = append(o.Settings, policy.Setting{Flag: "--allow", Key: "network.allow", Value: host})
				}
			}
		})
	}
}

// presetHost is a host with variables, and with a file in the home.
func presetHost(t *testing.T, env, file, content string) policy.Host {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := policy.Host{UID: 1000, GID: 1000, Name: "u", Home: home, Dir: home + "/ws", Config: home + "/config", State: home + "/state"}
	for _, name := range strings.Fields(env) {
		value := map[string]string{"PATH": home + "/bin", "CLAUDE_CODE_USE_VERTEX": "1", "CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BASE_URL": "https://gateway.example.org/models/"}[name]
		h.Env = append(h.Env, name+"="+cmp.Or(value, "not-a-real-token-0123456789"))
	}
	files := map[string]string{"ws/x": "", "bin/gh": "#!/bin/sh\n", "bin/gcloud": "#!/bin/sh\n"}
	if file != "" {
		files[file] = content
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(home+"/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := programs.Write(home+"/"+name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}
