package credentials

import (
	"encoding/json"
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
		{"a field that is not there", "secret/data/ci", "absent", "no text field absent", 0},
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
	c.advance(time.Second) // 120 s of the lease, less the margin
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
	if s.Fields[policy.KeyID] != "ASIAEXAMPLE012345" || s.Fields[policy.SecretKey] != theSecret || s.Fields[policy.SessionToken] != "token-"+theSecret {
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
		if _, err := policy.ServiceURL(text); (err == nil) != ok {
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
