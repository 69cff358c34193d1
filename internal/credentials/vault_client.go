package credentials

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// vaultClient sends requests to one Vault server (Vault HTTP API, version 1),
// with the token and the namespace of one source.
type vaultClient struct {
	address   string // without a slash at the end
	token     string
	namespace string // "" for the root namespace
	http      *http.Client
}

const (
	vaultAnswerMost = 2 << 20     // bytes; the server's own bound for an entry is 1 MiB
	vaultRetryAfter = time.Second // between the two attempts of a request
)

// vaultAnswer is the part of an answer that is used.
type vaultAnswer struct {
	LeaseID       string         `json:"lease_id"`
	LeaseDuration int64          `json:"lease_duration"` // seconds
	Data          map[string]any `json:"data"`           // numbers are json.Number
}

// read returns the secret at path; nil if there is none.
func (c *vaultClient) read(ctx context.Context, path string) (*vaultAnswer, error) {
	status, body, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer clear(body)
	// A deleted version of a secret is 404 with data about it.
	if status/100 != 2 && status != http.StatusNotFound {
		return nil, vaultRefusal(status, path)
	}
	if len(body) == 0 {
		return nil, nil
	}
	var answer vaultAnswer
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&answer) != nil { // the error could quote the secret
		return nil, &fetchError{text: "vault's answer for " + path + " cannot be understood", hint: "check that the address is that of vault itself"}
	}
	if status == http.StatusNotFound && len(answer.Data) == 0 {
		return nil, nil
	}
	return &answer, nil
}

// revoke ends a lease.
func (c *vaultClient) revoke(ctx context.Context, lease string) error {
	const path = "sys/leases/revoke"
	body, err := json.Marshal(map[string]string{"lease_id": lease})
	if err != nil {
		return fmt.Errorf("writing a request to vault: %w", err)
	}
	status, _, err := c.do(ctx, http.MethodPut, path, body)
	if err == nil && status/100 != 2 {
		err = vaultRefusal(status, path)
	}
	return err
}

// do sends a request and reads the whole answer. If the server cannot be reached,
// or says that the request may succeed later, the request is sent once more.
func (c *vaultClient) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	answer, err := c.send(ctx, method, path, body)
	var untrusted *tls.CertificateVerificationError
	if err != nil && !errors.As(err, &untrusted) || err == nil && vaultRetries(answer.StatusCode) {
		select {
		case <-ctx.Done():
		case <-time.After(vaultRetryAfter):
			if err == nil {
				discard(answer.Body)
			}
			answer, err = c.send(ctx, method, path, body)
		}
	}
	if err != nil {
		return 0, nil, unreachable("vault", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, vaultAnswerMost+1))
	switch {
	case err != nil:
		return 0, nil, unreachable("vault", err)
	case len(data) > vaultAnswerMost:
		return 0, nil, &fetchError{text: fmt.Sprintf("vault's answer for %s is longer than %d MiB", path, vaultAnswerMost>>20), hint: "check that the address is that of vault itself"}
	}
	return answer.StatusCode, data, nil
}

// send sends a request once.
func (c *vaultClient) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.address+"/v1/"+(&url.URL{Path: path}).EscapedPath(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Vault-Request", "true") // an agent of Vault may insist on it, against forged requests
	r.Header.Set("X-Vault-Token", c.token)
	if c.namespace != "" {
		r.Header.Set("X-Vault-Namespace", c.namespace)
	}
	r.Header.Set("User-Agent", "holdfast")
	return c.http.Do(r)
}

// vaultRetries reports whether a request may succeed later: the server is busy or
// has no leader yet (5xx, 429), or has not heard of the token yet (412).
func vaultRetries(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusPreconditionFailed || status >= 500 && status != http.StatusNotImplemented
}

// vaultRefusal says what a status means, without the words of the answer.
func vaultRefusal(status int, path string) error {
	e := &fetchError{text: fmt.Sprintf("vault answered %d for %s", status, path), hint: "try it yourself: vault read " + path}
	switch {
	case status == http.StatusForbidden:
		e.text += ": the token may not read it, or has expired"
		e.hint = "log in with: vault login"
	case status == http.StatusServiceUnavailable:
		e.text += ": it is sealed, or has no leader"
		e.hint = "see its state with: vault status"
	case status/100 == 3:
		e.text += ": it names another address, and the token is sent to no address but the one that was given"
		e.hint = "give the address of the active server, or " + vaultAddr
	}
	return e
}

// vaultTransport is what the environment says about connections to Vault, in
// the variables of the vault program.
type vaultTransport struct {
	caFile, caText, caDir string // the authorities: the first that is set; none for others
	others                func() (*x509.CertPool, error)
	certFile, keyFile     string // of the client; both or none
	serverName            string // that the certificate is for; "" for that of the address
	proxy                 func(*http.Request) (*url.URL, error)
}

func newVaultTransport(c Config) vaultTransport {
	get := func(name string) string { v, _ := c.Env(name); return v }
	t := vaultTransport{
		caFile: get("VAULT_CACERT"), caText: get("VAULT_CACERT_BYTES"), caDir: get("VAULT_CAPATH"),
		certFile: get("VAULT_CLIENT_CERT"), keyFile: get("VAULT_CLIENT_KEY"),
		serverName: get("VAULT_TLS_SERVER_NAME"), proxy: http.ProxyFromEnvironment, others: c.authorities,
	}
	if proxy := cmp.Or(get("VAULT_PROXY_ADDR"), get("VAULT_HTTP_PROXY")); proxy != "" {
		t.proxy = func(*http.Request) (*url.URL, error) {
			u, err := url.Parse(proxy)
			if err != nil || u.Host == "" { // the error could quote a password
				return nil, &fetchError{text: "VAULT_PROXY_ADDR is not an address such as http://proxy.example.org:3128"}
			}
			return u, nil
		}
	}
	return t
}

// client makes a client. Files are read anew: they may be replaced while a
// session lasts.
func (t vaultTransport) client() (*http.Client, error) {
	authorities, err := t.authorities()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, ServerName: t.serverName}
	if t.certFile != "" || t.keyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.certFile, t.keyFile)
		if err != nil {
			return nil, fmt.Errorf("VAULT_CLIENT_CERT and VAULT_CLIENT_KEY: %w", err)
		}
		// The server's list of authorities is for other methods of login: ignore it.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return newClient(config, t.proxy), nil
}

// authorities returns the certificate authorities that may vouch for Vault; nil for
// those of the system.
func (t vaultTransport) authorities() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	add := func(name string, pem []byte, err error) error {
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = errors.New("there is no certificate in PEM")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	switch {
	case t.caFile != "":
		pem, err := os.ReadFile(t.caFile)
		return pool, add("VAULT_CACERT "+t.caFile, pem, err)
	case t.caText != "":
		return pool, add("VAULT_CACERT_BYTES", []byte(t.caText), nil)
	case t.caDir != "":
		return pool, filepath.WalkDir(t.caDir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			pem, err := os.ReadFile(path)
			return add("VAULT_CAPATH "+path, pem, err)
		})
	}
	return t.others()
}
