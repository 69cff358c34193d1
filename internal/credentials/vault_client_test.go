package credentials

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

const theAnswer = `{"data":{"token":"` + theSecret + `"}}`

// vaultAt is a source of the field token of secret/ci, at an address.
func vaultAt(t *testing.T, address string, env ...string) *vaultSource {
	t.Helper()
	c := policy.Credential{Source: policy.CredentialSource{Kind: kindVault, Value: "secret/ci", Options: map[string]string{"field": "token", "address": address}}}
	s, err := newVaultSource(c, Config{Env: environment(append(env, "VAULT_TOKEN", vaultTestToken)...), Now: newClock().now})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*vaultSource)
}

// wantVault fetches, and compares an error with the words that it should
// contain; "" for none. No error may contain a secret.
func wantVault(t *testing.T, s *vaultSource, want string) {
	t.Helper()
	r, err := s.fetch(t.Context())
	switch {
	case want == "" && (err != nil || string(r.value) != theSecret):
		t.Errorf("error %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want %q", err, want)
	case err != nil && (strings.Contains(err.Error(), theSecret) || strings.Contains(err.Error(), vaultTestToken)):
		t.Error("the error holds a secret")
	}
}

func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

func TestAnswersOfVaultThatAreNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"no JSON", says(200, "<html>"+theSecret), "vault's answer for secret/ci cannot be understood"},
		{"half of it", says(200, `{"data":{"token":"`+theSecret), "cannot be understood"},
		{"a list", says(200, `["`+theSecret+`"]`), "cannot be understood"},
		{"data that is a list", says(200, `{"data":["`+theSecret+`"]}`), "cannot be understood"},
		{"a duration that is a text", says(200, `{"lease_duration":"`+theSecret+`","data":{}}`), "cannot be understood"},
		{"a duration beyond all bounds", says(200, `{"lease_duration":1e400,"data":{}}`), "cannot be understood"},
		{"a thousand times a thousand lists", says(200, strings.Repeat("[", 1_000_000)), "cannot be understood"},
		{"nothing", says(200, ""), "vault has nothing at secret/ci"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "vault has nothing at secret/ci"},
		{"a JSON of nothing", says(200, `null`), "has no text field token"},
		{"only errors", says(404, `{"errors":["`+theSecret+`"]}`), "vault has nothing at secret/ci"},
		{"a deleted version", says(404, `{"data":{"data":null,"metadata":{"deletion_time":"2026-01-01T00:00:00Z"}}}`), "has no text field token"},
		{"a field that is a list", says(200, `{"data":{"token":["`+theSecret+`"]}}`), "has no text field token"},
		{"more than is read", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"data":{"token":"`)
			for range 100 {
				io.WriteString(w, strings.Repeat("a", 64<<10))
			}
		}, "is longer than 2 MiB"},
		{"more than is read, compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 1000 {
				io.WriteString(z, strings.Repeat("a", 64<<10))
			}
			z.Close()
		}, "is longer than 2 MiB"},
		{"less than was announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, theAnswer)
		}, "vault cannot be reached: it closed the connection"},
		{"what is not HTTP", func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, theSecret+"\r\n\r\n")
			c.Close()
		}, "vault cannot be reached: its answer is not HTTP"},
		{"a header that is too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("a", 100<<10))
			io.WriteString(w, theAnswer)
		}, "vault cannot be reached: its answer is not HTTP, or is too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.answer)
			defer server.Close()
			wantVault(t, vaultAt(t, server.URL), c.want)
		})
	}
}

func TestATokenGoesToTheGivenServerAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, theAnswer)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/secret/ci", status))
		wantVault(t, vaultAt(t, server.URL), fmt.Sprintf("vault answered %d for secret/ci: it names another address", status))
		server.Close()
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}

func TestVaultIsAskedOnceMore(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	for _, c := range []struct {
		name  string
		first http.HandlerFunc
		again http.HandlerFunc
		asked int32
		want  string
	}{
		{"after a fault", says(500, theSecret), says(200, theAnswer), 2, ""},
		{"when it is busy", says(429, theSecret), says(200, theAnswer), 2, ""},
		{"when it has not heard of the token yet", says(412, theSecret), says(200, theAnswer), 2, ""},
		{"when the connection ends", hangUp, says(200, theAnswer), 2, ""},
		{"and no more, when it is sealed", says(503, theSecret), says(503, theSecret), 2, "vault answered 503 for secret/ci: it is sealed"},
		{"and no more, when the connection ends", hangUp, hangUp, 2, "vault cannot be reached"},
		{"not when it knows no such request", says(501, theSecret), nil, 1, "vault answered 501"},
		{"not when it refuses", says(403, theSecret), nil, 1, "vault answered 403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					c.first(w, r)
					return
				}
				c.again(w, r)
			}))
			defer server.Close()
			wantVault(t, vaultAt(t, server.URL), c.want)
			if asked.Load() != c.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), c.asked)
			}
		})
	}
}

func TestASlowVaultIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"that answers nothing", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"that stops in the middle", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, theAnswer[:20])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		{"between two attempts", says(503, theSecret)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.answer)
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := vaultAt(t, server.URL).fetch(ctx); err == nil || strings.Contains(err.Error(), theSecret) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestHowLongVaultSaysThatALeaseLasts(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[string]time.Duration{
		"": 0, `"lease_duration":0,`: 0, `"lease_duration":-5,`: 0, `"lease_duration":null,`: 0, `"lease_duration":120,`: 2 * time.Minute,
		`"lease_duration":9223372036854775807,`: (1<<31 - 1) * time.Second,
	} {
		server := httptest.NewServer(says(200, "{"+seconds+theAnswer[1:]))
		s := vaultAt(t, server.URL)
		r, err := s.fetch(t.Context())
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := r.expires; want == 0 && !got.IsZero() || want != 0 && !got.Equal(s.now().Add(want)) {
			t.Errorf("%s expires %s, want %s from now", seconds, got, want)
		}
	}
}

// A lease whose secret cannot be used is revoked at once, and the error names a
// server that does not revoke it.
func TestALeaseThatCannotBeUsedIsRevoked(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{204: "no text field token", 400: "vault answered 400 for sys/leases/revoke"} {
		var revoked atomic.Value
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				io.WriteString(w, `{"lease_id":"db/1","lease_duration":60,"data":{}}`)
				return
			}
			body, _ := io.ReadAll(r.Body)
			revoked.Store(r.URL.Path + " " + string(body))
			w.WriteHeader(status)
		}))
		wantVault(t, vaultAt(t, server.URL), want)
		server.Close()
		if got := revoked.Load(); got != `/v1/sys/leases/revoke {"lease_id":"db/1"}` {
			t.Errorf("revoked %v", got)
		}
	}
}

// clientCertificate makes a self-signed certificate, and its key.
func clientCertificate(t *testing.T) (cert, key string, authority *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	authority = x509.NewCertPool()
	authority.AddCert(parsed)
	dir := t.TempDir()
	write := func(name, kind string, data []byte) string {
		return writeFile(t, filepath.Join(dir, name), string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})), 0o600)
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), authority
}

func TestTheAuthorityThatVaultIsTrustedBy(t *testing.T) {
	t.Parallel()
	v := newVaultServer(t)
	secure := httptest.NewUnstartedServer(v.Config.Handler)
	cert, key, authority := clientCertificate(t)
	secure.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authority}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close) // not before the parallel tests end
	strict := httptest.NewUnstartedServer(v.Config.Handler)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority}
	strict.Config.ErrorLog = secure.Config.ErrorLog
	strict.StartTLS()
	t.Cleanup(strict.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	dir, empty := t.TempDir(), t.TempDir()
	file := writeFile(t, filepath.Join(dir, "ca.pem"), ca, 0o600)
	none := writeFile(t, filepath.Join(empty, "ca.pem"), "none", 0o600)
	for _, c := range []struct {
		name   string
		server *httptest.Server
		env    []string
		want   string
	}{
		{"of a file", secure, []string{"VAULT_CACERT", file}, ""},
		{"of a variable", secure, []string{"VAULT_CACERT_BYTES", ca}, ""},
		{"of a directory", secure, []string{"VAULT_CAPATH", dir}, ""},
		{"of a file before all others", secure, []string{"VAULT_CACERT", file, "VAULT_CACERT_BYTES", "none", "VAULT_CAPATH", empty}, ""},
		{"of the system", secure, nil, "vault cannot be reached: its certificate cannot be verified"},
		{"of a file that is not there", secure, []string{"VAULT_CACERT", filepath.Join(dir, "absent")}, "VAULT_CACERT " + filepath.Join(dir, "absent")},
		{"of a file that holds none", secure, []string{"VAULT_CACERT", none}, "no certificate in PEM"},
		{"of a variable that holds none", secure, []string{"VAULT_CACERT_BYTES", "none"}, "VAULT_CACERT_BYTES: there is no certificate"},
		{"of a directory with a file that holds none", secure, []string{"VAULT_CAPATH", empty}, "no certificate in PEM"},
		{"by another name", secure, []string{"VAULT_CACERT", file, "VAULT_TLS_SERVER_NAME", "example.com"}, ""},
		{"by a name that it is not", secure, []string{"VAULT_CACERT", file, "VAULT_TLS_SERVER_NAME", "other.test"}, "its certificate cannot be verified"},
		{"with a certificate of the client", strict, []string{"VAULT_CACERT", file, "VAULT_CLIENT_CERT", cert, "VAULT_CLIENT_KEY", key}, ""},
		{"without a certificate of the client", strict, []string{"VAULT_CACERT", file}, "certificate required"},
		{"with a certificate without a key", strict, []string{"VAULT_CACERT", file, "VAULT_CLIENT_CERT", cert}, "VAULT_CLIENT_CERT and VAULT_CLIENT_KEY"},
		{"through a proxy that is none", v.Server, []string{"VAULT_HTTP_PROXY", "http://you:" + theSecret + "@%zz"}, "VAULT_PROXY_ADDR is not an address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := append(c.env, "VAULT_NAMESPACE", "team", "VAULT_ADDR", "https://vault.example.org", "VAULT_AGENT_ADDR", "https://agent.example.org", "VAULT_WRAP_TTL", "60s")
			wantVault(t, vaultAt(t, c.server.URL, env...), c.want)
		})
	}
}

func TestTheProxyOfVault(t *testing.T) {
	t.Parallel()
	wantVault(t, vaultAt(t, "https://vault.test", "VAULT_PROXY_ADDR", "http://127.0.0.1:1"), "vault cannot be reached: there is no connection to it")
	v := newVaultServer(t)
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.String())
		v.Config.Handler.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	wantVault(t, vaultAt(t, "http://127.0.0.1:1", "VAULT_NAMESPACE", "team", "VAULT_PROXY_ADDR", proxy.URL, "VAULT_HTTP_PROXY", "http://127.0.0.1:2"), "")
	if asked.Load() != "http://127.0.0.1:1/v1/secret/ci" {
		t.Errorf("the proxy was asked for %v", asked.Load())
	}
}
