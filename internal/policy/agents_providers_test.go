package policy

import (
	"fmt"
	"strings"
	"testing"
)

// TestProvidersThatAreChosen: a provider that a variable or a login chooses works, or the
// run says by name that it does not and what does.
func TestProvidersThatAreChosen(t *testing.T) {
	const oauth = `{"anthropic": {"type": "oauth", "access": "sk-ant-oat01-aaaaaaaa", "refresh": "sk-ant-ort01-aaaaaaaa", "expires": 1}}`
	const key = `{"anthropic": {"type": "api", "key": "sk-ant-api03-aaaaaaaaaaaaaaaa"}}`
	for _, row := range []struct{ preset, env, file, hosts, set, said string }{
		{"claude", "CLAUDE_CODE_USE_FOUNDRY=1 ANTHROPIC_FOUNDRY_API_KEY=aaaaaaaaaaaaaaaa ANTHROPIC_FOUNDRY_RESOURCE=My-Res", "", "my-res.services.ai.azure.com", "ANTHROPIC_FOUNDRY_RESOURCE=My-Res", ""},
		{"claude", "CLAUDE_CODE_USE_FOUNDRY=1 ANTHROPIC_FOUNDRY_AUTH_TOKEN=aaaaaaaaaaaaaaaa ANTHROPIC_FOUNDRY_BASE_URL=https://f.example.org/anthropic ANTHROPIC_API_KEY=sk-ant-api03-aaaaaaaaaaaaaaaa", "", "f.example.org", "CLAUDE_CODE_USE_FOUNDRY=1", ""},
		{"claude", "CLAUDE_CODE_USE_FOUNDRY=1 ANTHROPIC_FOUNDRY_API_KEY=aaaaaaaaaaaaaaaa ANTHROPIC_FOUNDRY_RESOURCE=x.example.org/", "", "", "", ""},
		{"claude", "CLAUDE_CODE_USE_FOUNDRY=1 ANTHROPIC_API_KEY=sk-ant-api03-aaaaaaaaaaaaaaaa", "", "", "", "Claude Code has no credential: a login of Azure (Entra ID) is not used for Foundry; export ANTHROPIC_FOUNDRY_API_KEY=…"},
		{"gemini", "GOOGLE_GENAI_USE_VERTEXAI=true GOOGLE_API_KEY=AIzaaaaaaaaaaaaaaaaaaaaa GEMINI_API_KEY=AIzaaaaaaaaaaaaaaaaaaaaa", "", "aiplatform.googleapis.com aiplatform.us.rep.googleapis.com aiplatform.eu.rep.googleapis.com", "GEMINI_DEFAULT_AUTH_TYPE=vertex-ai", ""},
		{"gemini", "GOOGLE_GENAI_USE_VERTEXAI=true GEMINI_API_KEY=AIzaaaaaaaaaaaaaaaaaaaaa GOOGLE_APPLICATION_CREDENTIALS=/key.json", "", "", "", "Gemini CLI has no credential: Vertex AI with a login of gcloud or a service account (GOOGLE_APPLICATION_CREDENTIALS) is not supported; export GOOGLE_API_KEY=…"},
		{"gemini", "GOOGLE_API_KEY=AIzaaaaaaaaaaaaaaaaaaaaa", "", "generativelanguage.googleapis.com", "GEMINI_DEFAULT_AUTH_TYPE=gemini-api-key", ""},
		{"opencode", "", key, "api.anthropic.com", "", ""},
		{"opencode", "OPENAI_API_KEY=sk-aaaaaaaaaaaaaaaaaaaa", oauth, "api.openai.com", "", "auth.json cannot be used: its anthropic.type is not api; opencode itself no longer works with an account of Anthropic; export ANTHROPIC_API_KEY=…"},
		{"opencode", "ANTHROPIC_API_KEY=sk-ant-api03-aaaaaaaaaaaaaaaa", oauth, "api.anthropic.com", "", ""},
		{"codex", "CODEX_HOME=codex OPENAI_API_KEY=sk-aaaaaaaaaaaaaaaaaaaa", "", "api.openai.com", "", "CODEX_HOME is not an absolute path, and is not used: what runs inside could choose what is there"},
	} {
		w := newWorld(t)
		w.host.Env = strings.Fields(row.env)
		if row.file != "" {
			w.write("home/u/.local/share/opencode/auth.json", row.file, 0o600)
		}
		o := Options{Host: w.host, Preset: row.preset}
		o.Host.Dir = w.mkdir("home/u/ws")
		p := w.plan(o)
		var hosts []string
		for _, c := range p.Credentials {
			for _, h := range c.Hosts {
				if h.Host != "provider.invalid" {
					hosts = append(hosts, h.Host)
				}
			}
		}
		name, value, _ := strings.Cut(row.set, "=")
		got, _ := variableOf(p, name)
		said := fmt.Sprint(p.Agent.Missing)
		if strings.Join(hosts, " ") != row.hosts || got != value || len(p.Agent.Missing) != min(1, len(row.said)) || !strings.Contains(said, row.said) {
			t.Errorf("%s %s: to %q, %q, said %s", row.preset, row.env, hosts, got, said)
		}
	}
}
