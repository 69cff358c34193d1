package realtest

import (
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

const (
	foundryHost = "resource-1.services.ai.azure.com"
	vertexHost  = "aiplatform.googleapis.com"
	chosenKey   = "AIza" + "not-a-real-key-0123456789abcdefghijklm"
)

// chosenProviders are providers that a variable chooses, and that take a key.
var chosenProviders = []struct {
	name, agent, host string
	env               []string
	argv              []string
	header, value     string // with the key
	path, at          string // how a path begins at the provider, and at the model
	lack              string // what is said instead; "" if it works
}{
	{
		name: "Claude Code on Foundry", agent: "claude", host: foundryHost,
		env:    []string{"CLAUDE_CODE_USE_FOUNDRY=1", "ANTHROPIC_FOUNDRY_RESOURCE=Resource-1", "ANTHROPIC_FOUNDRY_API_KEY=" + chosenKey},
		argv:   []string{"--dangerously-skip-permissions", "-p"},
		header: "X-Api-Key", value: chosenKey, path: "/anthropic/v1/", at: "/v1/",
	},
	{
		name: "Claude Code on Foundry with a token", agent: "claude", host: foundryHost,
		env:    []string{"CLAUDE_CODE_USE_FOUNDRY=1", "ANTHROPIC_FOUNDRY_BASE_URL=https://" + foundryHost + "/anthropic", "ANTHROPIC_FOUNDRY_AUTH_TOKEN=" + chosenKey},
		argv:   []string{"--dangerously-skip-permissions", "-p"},
		header: "Authorization", value: "Bearer " + chosenKey, path: "/anthropic/v1/", at: "/v1/",
	},
	{
		name: "Claude Code on Foundry with a login of Azure", agent: "claude", host: foundryHost,
		env:  []string{"CLAUDE_CODE_USE_FOUNDRY=1", "ANTHROPIC_FOUNDRY_RESOURCE=resource-1"},
		lack: "Claude Code has no credential: a login of Azure (Entra ID) is not used for Foundry; export ANTHROPIC_FOUNDRY_API_KEY=",
	},
	{
		name: "Gemini CLI on Vertex AI", agent: "gemini", host: vertexHost,
		env:    []string{"GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_API_KEY=" + chosenKey, "GOOGLE_CLOUD_PROJECT=project-1", "GOOGLE_CLOUD_LOCATION=europe-west1"},
		argv:   []string{"--yolo", "-m", "gemini-2.5-flash", "-p"},
		header: "X-Goog-Api-Key", value: chosenKey, path: "/v1beta1/publishers/google/models/", at: "/v1beta/models/",
	},
	{
		name: "Gemini CLI on Vertex AI with a login", agent: "gemini", host: vertexHost,
		env:  []string{"GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_CLOUD_PROJECT=project-1", "GOOGLE_CLOUD_LOCATION=europe-west1"},
		lack: "Gemini CLI has no credential: Vertex AI with a login of gcloud or a service account (GOOGLE_APPLICATION_CREDENTIALS) is not supported; export GOOGLE_API_KEY=",
	},
}

// TestAgentsOnChosenProviders lets agents work with the provider that a variable chooses,
// without a flag; the key stays outside.
func TestAgentsOnChosenProviders(t *testing.T) {
	withModels(t, testenv.Agents, []string{foundryHost, vertexHost}, func(t *testing.T, w *world, p *provider) {
		models := model.New(model.Options{Lookup: p.lookup, Turn: p.turn})
		w.serveModels(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, c := range chosenProviders {
				if rest, ok := strings.CutPrefix(r.URL.Path, c.path); ok && c.path != "" && r.Host == c.host && r.Header.Get(c.header) == c.value {
					r.URL.Path, r.URL.RawPath = c.at+rest, ""
					models.ServeHTTP(w, r)
					return
				}
			}
			http.Error(w, `{"error": {"code": 401, "status": "UNAUTHENTICATED"}}`, http.StatusUnauthorized)
		}), foundryHost, vertexHost)
		for _, c := range chosenProviders {
			dirs := worker{name: c.agent}.dirs(t)
			if dirs == nil {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				f := newFixture(t, w.root)
				a := worker{name: c.agent, key: "UNUSED", env: c.env}
				a.settle(f, dirs)
				if c.lack != "" {
					contains(t, a.start(f, dirs, "--version"), c.lack)
					return
				}
				name := strings.ToLower(strings.ReplaceAll(c.name, " ", "-"))
				p.add(name, f.ws, []model.Step{{Op: model.Write, Path: "{ws}/done", Content: "by " + name}})
				said := a.start(f, dirs, append(c.argv, "go "+model.Marker(name))...)
				if f.bare("cat done || true") != "by "+name || strings.Contains(said, chosenKey) {
					t.Errorf("not done, or the key is printed:\n%s", said)
				}
			})
		}
	})
}
