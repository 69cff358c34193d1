package broker

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
	"io"
	"log"
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

// vaultServer speaks as much of Vault's HTTP API as is used.
type vaultServer struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []string
	revoked []string
	status  int // to answer with; 0 for what is there
}

const vaultTestToken = "hvs.test-token-of-the-user"

func newVaultServer(t *testing.T) *vaultServer {
	t.Helper()
	v := &vaultServer{}
	paths := map[string]string{
		"secret/ci":      `{"lease_id":"","lease_duration":2764800,"data":{"token":"` + theSecret + `"}}`,
		"secret/data/ci": `{"lease_id":"","lease_duration":0,"data":{"data":{"token":"` + theSecret + `","number":12345678},"metadata":{"version":3}}}`,
		"db/creds/ci":    `{"lease_id":"db/creds/ci/1","lease_duration":120,"renewable":true,"data":{"password":"` + theSecret + `"}}`,
		"aws/creds/ci":   `{"lease_id":"aws/creds/ci/1","lease_duration":600,"data":{"access_key":"ASIAEXAMPLE012345","secret_key":"` + theSecret + `","security_token":"token-` + theSecret + `"}}`,
	}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		path := strings.TrimPrefix(r.URL.Path, "/v1/")
		v.asked = append(v.asked, path)
		var body map[string]string
		json.NewDecoder(r.Body).Decode(&body)
		switch {
		case v.status != 0:
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(v.status)
			fmt.Fprintf(w, `{"errors":["%s"]}`, theSecret)
		case r.Header.Get("X-Vault-Token") != vaultTestToken || r.Header.Get("X-Vault-Request") != "true" || r.Header.Get("X-Vault-Namespace") != "team":
			w.WriteHeader(http.StatusForbidden)
		case path == "sys/leases/revoke" && r.Method == http.MethodPut:
			v.revoked = append(v.revoked, body["lease_id"])
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodGet && paths[path] != "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, paths[path])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *vaultServer) credential(path, field string) policy.Credential {
	c := envCredential("vault", "UNUSED")
	c.Source = policy.CredentialSource{Kind: "vault", Value: path, Options: map[string]string{"field": field, "address": v.URL, "namespace": "team"}}
	return c
}

func TestVaultSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, field, want string
		status                  int
	}{
		{"version 1 of the key/value store", "secret/ci", "token", "", 0},
		{"version 2", "secret/data/ci", "token", "", 0},
		{"an engine that leases", "db/creds/ci", "password", "", 0},
		{"a field that is not there", "secret/data/ci", "absent", "no text in a field absent", 0},
		{"a path that is not there", "secret/none", "token", "vault has nothing at secret/none", 0},
		{"no permission", "secret/ci", "token", "vault answered 403", http.StatusForbidden},
		{"a fault", "secret/ci", "token", "vault answered 400", http.StatusBadRequest},
		{"a redirect, which the token does not follow", "secret/ci", "token", "vault", http.StatusTemporaryRedirect},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newVaultServer(t)
			v.status = c.status
			b := newBroker(t, Config{Credentials: []policy.Credential{v.credential(c.path, c.field)}, Env: environment("VAULT_TOKEN", vaultTestToken)})
			s, err := b.Open(t.Context(), "vault", toAPI)
			switch {
			case c.want == "" && (err != nil || s.Value != theSecret):
				t.Errorf("%d bytes, %v", len(s.Value), err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err != nil && (strings.Contains(err.Error(), theSecret) || strings.Contains(err.Error(), vaultTestToken)):
				t.Error("the error holds a secret")
			}
		})
	}
}

func TestALeaseOfVaultLastsAsLongAsBothSay(t *testing.T) {
	t.Parallel()
	v := newVaultServer(t)
	c := newClock()
	b := newBroker(t, Config{Credentials: []policy.Credential{v.credential("db/creds/ci", "password")}, Env: environment("VAULT_TOKEN", vaultTestToken), Now: c.now})
	mustOpen(t, b, "vault")
	c.advance(89 * time.Second)
	mustOpen(t, b, "vault")
	if len(v.asked) != 1 {
		t.Fatalf("asked for %v", v.asked)
	}
	c.advance(time.Second) // 120 s of the lease, less what is kept in hand
	mustOpen(t, b, "vault")
	if len(v.asked) != 2 {
		t.Fatalf("asked for %v", v.asked)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.revoked, []string{"db/creds/ci/1", "db/creds/ci/1"}) {
		t.Errorf("revoked %v", v.revoked)
	}
}

func TestKeysThatVaultMakesForAWS(t *testing.T) {
	t.Parallel()
	v := newVaultServer(t)
	cred := v.credential("aws/creds/ci", "")
	cred.Sign, cred.Env = signAWS, nil
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Env: environment("VAULT_TOKEN", vaultTestToken)})
	s := mustOpen(t, b, "vault")
	if s.Fields[KeyID] != "ASIAEXAMPLE012345" || s.Fields[SecretKey] != theSecret || s.Fields[SessionToken] != "token-"+theSecret {
		t.Error("not the keys")
	}
}

func TestTheTokenForVault(t *testing.T) {
	t.Parallel()
	v := newVaultServer(t)
	home := t.TempDir()
	writeFile(t, filepath.Join(home, ".vault-token"), vaultTestToken+"\n", 0o600)
	file := writeFile(t, filepath.Join(t.TempDir(), "token"), vaultTestToken, 0o600)
	loose := writeFile(t, filepath.Join(t.TempDir(), "token"), vaultTestToken, 0o622)
	for _, c := range []struct {
		name, file string
		env        []string
		want       string
	}{
		{"of the variable", "", []string{"VAULT_TOKEN", vaultTestToken}, ""},
		{"of vault login", "", []string{"HOME", home}, ""},
		{"of a file, whatever the variable says", file, []string{"VAULT_TOKEN", "another"}, ""},
		{"of a file that others can write", loose, nil, "written by others"},
		{"from nowhere", "", nil, "there is no token"},
		{"where TLS is not verified", "", []string{"VAULT_TOKEN", vaultTestToken, "VAULT_SKIP_VERIFY", "1"}, "TLS is verified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cred := v.credential("secret/ci", "token")
			if c.file != "" {
				cred.Source.Options["token-file"] = c.file
			}
			b, err := New(Config{Credentials: []policy.Credential{cred}, Env: environment(c.env...)})
			if err == nil {
				defer b.Close()
				_, err = b.Open(t.Context(), "vault", toAPI)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestSecretsAreAskedForByTLSOnly(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"https://vault.example.org": true, "https://vault.example.org:8200/": true, "http://127.0.0.1:8200": true, "http://localhost:8200": true, "http://[::1]:8200": true,
		"http://vault.example.org": false, "http://localhost.example.org": false, "http://127.0.0.1.example.org": false, "ftp://127.0.0.1": false, "vault.example.org": false,
		"https://user:pw@vault.example.org": false, "https://": false, "": false, "unix:///run/vault": false, "https://v?x=1": false,
	} {
		if _, err := serviceURL(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	trusting := httptest.NewUnstartedServer(http.NotFoundHandler())
	trusting.Config.ErrorLog = log.New(io.Discard, "", 0)
	trusting.StartTLS()
	defer trusting.Close()
	cred := envCredential("vault", "UNUSED")
	cred.Source = policy.CredentialSource{Kind: "vault", Value: "secret/ci", Options: map[string]string{"field": "token", "address": trusting.URL}}
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Env: environment("VAULT_TOKEN", vaultTestToken)})
	if _, err := b.Open(t.Context(), "vault", toAPI); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with a certificate of its own was asked: %v", err)
	}
}

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
		{"an answer of another form", "cannot be understood", 0, func(a map[string]any) { a["expires_at"] = theSecret }, 0},
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
