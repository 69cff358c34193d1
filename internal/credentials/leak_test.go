package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestNothingShowsASecret formats everything that the package gives out or
// holds, in every way, while it holds secrets of each kind.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	clock := newClock()
	vault := newVaultServer(t)
	_, github := newGitHubServer(t, clock)
	aws := envCredential("aws", "KEYS")
	aws.Sign, aws.Env = signAWS, nil
	command := envCredential("command", "UNUSED")
	command.Source = policy.CredentialSource{Kind: "command", Argv: script(t, "echo "+theSecret)}
	d := &diary{}
	config := Config{
		Credentials: []policy.Credential{envCredential("env", "TOKEN"), vault.credential("secret/ci", "token"), github, aws, command},
		Now:         clock.now, Sink: d,
		Env: environment("TOKEN", theSecret, "VAULT_TOKEN", vaultTestToken, "KEYS", `{"Version":1,"AccessKeyId":"AKIDEXAMPLE0123456","SecretAccessKey":"`+theSecret+`"}`),
	}
	b := newBroker(t, config)
	values := []any{b, reflect.ValueOf(b).Elem(), config, b.Placeholders(), b.Bound("api.example.org", 443), d.all}
	for _, h := range b.order {
		s := mustOpen(t, b, h.cred.Name)
		_, err := b.Open(t.Context(), h.cred.Name, Use{Name: "evil.example.org", Port: 443})
		values = append(values, s, &s, []Secret{s}, map[string]Secret{"x": s}, struct{ S Secret }{s}, err, h.binding(), h.cred,
			reflect.ValueOf(h).Elem(), reflect.ValueOf(h.lease).Elem(), reflect.ValueOf(h.source).Elem(), fmt.Errorf("x: %w", errors.Join(err, fmt.Errorf("%v", s))))
	}
	values = append(values, d.all)
	for i, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			holds(t, fmt.Sprintf("value %d (%T) with %s", i, v, verb), fmt.Sprintf(verb, v))
		}
		if data, err := json.Marshal(v); err == nil {
			holds(t, fmt.Sprintf("value %d (%T) as JSON", i, v), string(data))
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		holds(t, fmt.Sprintf("value %d (%T) in a log", i, v), log.String())
	}
}

func holds(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{theSecret, vaultTestToken} {
		bytes := strings.Trim(fmt.Sprint([]byte(secret)), "[]")
		for _, form := range []string{secret, fmt.Sprintf("%x", secret), bytes} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows a secret", what)
			}
		}
	}
}
