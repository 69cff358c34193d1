package realtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestOpencodeAccounts is TestAccountLogins for opencode, whose providers are those of other
// programs: ChatGPT, and GitHub, whose token lasts.
func TestOpencodeAccounts(t *testing.T) {
	program := func(model string) worker {
		return worker{name: "opencode", argv: []string{"run", "--format", "json", "--auto", "-m", model, "{}"}, asks: []string{"registry.*"}}
	}
	tryAccounts(t, []account{{
		worker: program("openai/gpt-5.4"),
		api:    "chatgpt.com", login: "auth.openai.com", endpoint: "/oauth/token", says: "opencode auth login",
		provider: &testenv.Provider{Client: "app_EMoamEEZ73f0CkXaXp7hrann", Lifetime: time.Hour},
		file:     ".local/share/opencode/auth.json", only: []string{"ended"},
		text: func(l testenv.ProviderLogin, ends time.Time) string {
			return fmt.Sprintf(`{"openai":{"type":"oauth","refresh":%q,"access":%q,"expires":%d,"accountId":"acct-1"}}`, l.Refresh, l.Access, ends.UnixMilli())
		},
	}, {
		worker: program("github-copilot/gpt-5.4"),
		api:    "api.githubcopilot.com", login: "github.com", endpoint: "/login/oauth/access_token", says: "opencode auth login",
		provider: &testenv.Provider{Lifetime: time.Hour, Keeps: true},
		file:     ".local/share/opencode/auth.json", only: []string{"fresh"},
		answers: map[string]string{"/models": strings.ReplaceAll(copilotModels, "claude-haiku-4.5", "gpt-5.4")},
		text: func(l testenv.ProviderLogin, _ time.Time) string {
			return fmt.Sprintf(`{"github-copilot":{"type":"oauth","refresh":%q,"access":%q,"expires":0}}`, l.Access, l.Access)
		},
	}})
}
