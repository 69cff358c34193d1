package realtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

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
	gives      bool   // it does not ask the model again that has answered 401
	wrapped    bool   // the API of the model is that of Code Assist
	provider   *testenv.Provider
	file       string            // of the login, in the home
	answers    map[string]string // of the API besides the model, by path
	text       func(l testenv.ProviderLogin, ends time.Time) string
	only       []string // the cases that are tried; nil for all
}

func accounts() []account {
	return []account{
		{
			worker: worker{name: "codex", argv: []string{"exec", "-c", "features.enable_request_compression=false", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{}"}},
			api:    "chatgpt.com", login: "auth.openai.com", endpoint: "/oauth/token", says: "codex -c cli_auth_credentials_store=file login", look: "; cat ~/.codex/auth.json > {ws}/login",
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
			api: "cloudcode-pa.googleapis.com", beside: "www.googleapis.com", wrapped: true, gives: true, login: "oauth2.googleapis.com", endpoint: "/token", says: "type 'gemini' once outside",
			provider: &testenv.Provider{Client: "681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com", Lifetime: time.Hour, Keeps: true},
			file:     ".gemini/oauth_creds.json", only: []string{"ended", "refused"},
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
