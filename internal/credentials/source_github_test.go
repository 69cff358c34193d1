package credentials

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// githubServer makes tokens for an app whose key it knows.
type githubServer struct {
	*httptest.Server
	t       *testing.T
	key     *rsa.PublicKey
	mu      sync.Mutex
	asked   map[string]any
	made    int
	revoked []string
	now     func() time.Time
	change  func(answer map[string]any)
	status  int
}

func newGitHubServer(t *testing.T, c *clock) (*githubServer, policy.Credential) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "app.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})), 0o600)
	g := &githubServer{t: t, key: &key.PublicKey, now: c.now}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /app/installations/2/access_tokens", g.create)
	mux.HandleFunc("DELETE /installation/token", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.revoked = append(g.revoked, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.WriteHeader(http.StatusNoContent)
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	cred := envCredential("github", "UNUSED")
	cred.TTL = 2 * time.Hour
	cred.Source = policy.CredentialSource{Kind: "github-app", Options: map[string]string{
		"api": g.URL, "app-id": "1", "installation-id": "2", "key-file": file, "repositories": "widget,gadget", "permissions": "contents=read,issues=write",
	}}
	return g, cred
}

func (g *githubServer) create(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.status != 0 {
		http.Error(w, theSecret, g.status)
		return
	}
	if why := g.badIdentity(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); why != "" {
		g.t.Error(why)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	json.NewDecoder(r.Body).Decode(&g.asked)
	g.made++
	answer := map[string]any{
		"token": fmt.Sprintf("ghs_token%d-%s", g.made, theSecret), "expires_at": g.now().Add(time.Hour), "repository_selection": "selected",
		"permissions": map[string]string{"contents": "read", "issues": "write", "metadata": "read"},
	}
	if g.change != nil {
		g.change(answer)
	}
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(answer)
}

// badIdentity checks an app's token as GitHub does.
func (g *githubServer) badIdentity(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "not a JWT"
	}
	var decoded [3][]byte
	for i, p := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.DecodeString(p); err != nil {
			return "not base64url"
		}
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], decoded[2]); err != nil {
		return "signature: " + err.Error()
	}
	var head, claims map[string]any
	json.Unmarshal(decoded[0], &head)
	json.Unmarshal(decoded[1], &claims)
	now := float64(g.now().Unix())
	iat, _ := claims["iat"].(float64)
	exp, _ := claims["exp"].(float64)
	if head["alg"] != "RS256" || claims["iss"] != "1" || iat > now || exp <= now || exp-iat > 600 {
		return fmt.Sprintf("head %v claims %v", head, claims)
	}
	return ""
}

func TestGitHubTokensAreForWhatWasNamedAndEnd(t *testing.T) {
	t.Parallel()
	c := newClock()
	g, cred := newGitHubServer(t, c)
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Now: c.now})
	if s := mustOpen(t, b, "github"); s.Value != "ghs_token1-"+theSecret {
		t.Error("not the token")
	}
	want := `map[permissions:map[contents:read issues:write] repositories:[widget gadget]]`
	if got := fmt.Sprint(g.asked); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	c.advance(59*time.Minute + 29*time.Second)
	mustOpen(t, b, "github")
	if g.made != 1 {
		t.Fatalf("%d tokens", g.made)
	}
	c.advance(time.Second)
	mustOpen(t, b, "github")
	if err := b.Close(); err != nil || g.made != 2 {
		t.Fatalf("%d tokens, %v", g.made, err)
	}
	slices.Sort(g.revoked)
	if !slices.Equal(g.revoked, []string{"ghs_token1-" + theSecret, "ghs_token2-" + theSecret}) {
		t.Errorf("%d tokens revoked, want both", len(g.revoked))
	}
}

func TestGitHubRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		status     int
		change     func(map[string]any)
		revoked    int
	}{
		{"a key that is not the app's", "clock is wrong", http.StatusUnauthorized, nil, 0},
		{"more than the installation has", "does not have all", http.StatusUnprocessableEntity, nil, 0},
		{"no such installation", "no such installation", http.StatusNotFound, nil, 0},
		{"a token for all repositories", "all repositories", 0, func(a map[string]any) { a["repository_selection"] = "all" }, 1},
		{"a token that may write", "more than was asked for", 0, func(a map[string]any) { a["permissions"] = map[string]string{"contents": "write"} }, 1},
		{"a token that may do something else", "more than was asked for", 0, func(a map[string]any) { a["permissions"] = map[string]string{"actions": "read"} }, 1},
		{"a token that has expired", "expired already", 0, func(a map[string]any) { a["expires_at"] = "2001-01-01T00:00:00Z" }, 1},
		{"an answer of another form", "cannot be parsed", 0, func(a map[string]any) { a["expires_at"] = theSecret }, 0},
		{"a token of two lines", "not one line", 0, func(a map[string]any) { a["token"] = "abcdefgh\nijkl" }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			g, cred := newGitHubServer(t, clock)
			g.status, g.change = c.status, c.change
			b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Now: clock.now})
			s, err := b.Open(t.Context(), "github", toAPI)
			if err == nil || s.Value != "" || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), theSecret) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if c.name == "a token of two lines" { // it cannot be put in a header to be revoked
				return
			}
			b.Close()
			if len(g.revoked) != c.revoked {
				t.Errorf("%d tokens revoked, want %d", len(g.revoked), c.revoked)
			}
		})
	}
}

func TestARevokedCredentialIsEndedUpstreamAtOnce(t *testing.T) {
	t.Parallel()
	c := newClock()
	g, cred := newGitHubServer(t, c)
	s := newStore(t, c)
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Now: c.now, Grants: s.Dir})
	mustOpen(t, b, "github")
	if _, err := s.Revoke("github"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), "github", toAPI); err == nil {
		t.Fatal("opened")
	}
	await(t, func() []byte {
		g.mu.Lock()
		defer g.mu.Unlock()
		return []byte(strings.Join(g.revoked, " "))
	})
}

func TestWhatCannotBeRevokedIsSaidAtTheEnd(t *testing.T) {
	t.Parallel()
	c := newClock()
	g, cred := newGitHubServer(t, c)
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Now: c.now})
	mustOpen(t, b, "github")
	g.CloseClientConnections()
	g.Server.Close()
	if err := b.Close(); err == nil || !strings.Contains(err.Error(), "it ends at 2026-11-20T13:00:00Z") || strings.Contains(err.Error(), theSecret) {
		t.Errorf("error %v", err)
	}
}

func TestTryEndsWhatItMade(t *testing.T) {
	t.Parallel()
	c := newClock()
	g, cred := newGitHubServer(t, c)
	trial, err := Try(context.Background(), cred, Config{Now: c.now})
	if err != nil || trial.Kind != "github-app" || trial.Length != len("ghs_token1-"+theSecret) || !trial.Revoked || !strings.HasPrefix(trial.Hash, "sha256:") {
		t.Errorf("%+v, %v", trial, err)
	}
	if len(g.revoked) != 1 {
		t.Errorf("%d tokens revoked", len(g.revoked))
	}
	if strings.Contains(fmt.Sprintf("%+v", trial), theSecret) {
		t.Error("the trial shows the secret")
	}
}
