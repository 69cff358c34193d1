package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// vaultSource is a secret in HashiCorp Vault: a key/value store of version 1 or
// 2, or an engine that makes secrets on request and leases them.
type vaultSource struct {
	address, path, field string
	namespace, sign      string
	token                func() string // of VAULT_TOKEN, when the session began; nil when a file is to be read
	tokenFile            string
	held                 func(name, value string) // called with the token
	writable             []string
	transport            vaultTransport
	client               *http.Client // used instead of one made from transport; nil for none
	now                  func() time.Time
}

// Variables of the Vault programs.
const (
	vaultAddr       = "VAULT_ADDR"
	vaultToken      = "VAULT_TOKEN"
	vaultNamespace  = "VAULT_NAMESPACE"
	vaultSkipVerify = "VAULT_SKIP_VERIFY"
)

func newVaultSource(c policy.Credential, config Config) (source, error) {
	o := c.Source.Options
	get := func(option, variable string) string {
		if v := o[option]; v != "" {
			return v
		}
		v, _ := config.Env(variable)
		return v
	}
	s := &vaultSource{
		path: c.Source.Value, field: o["field"], sign: c.Sign, now: config.Now, writable: config.Writable,
		address: get("address", vaultAddr), namespace: get("namespace", vaultNamespace), tokenFile: o["token-file"], held: config.reportHeld,
		transport: newVaultTransport(config), client: config.Client,
	}
	if s.path == "" || s.field == "" && c.Sign == "" {
		return nil, errors.New("vault needs the path of a secret and the name of a field")
	}
	if insecure, _ := config.Env(vaultSkipVerify); insecure != "" {
		if skip, err := strconv.ParseBool(insecure); err != nil || skip {
			return nil, fmt.Errorf("%s is set, but secrets are fetched only where TLS is verified", vaultSkipVerify)
		}
	}
	if s.tokenFile != "" && !filepath.IsAbs(s.tokenFile) {
		return nil, fmt.Errorf("token-file %q is not an absolute path", s.tokenFile)
	}
	if s.tokenFile != "" {
		return s, nil
	}
	if token, ok := config.Env(vaultToken); ok && token != "" {
		s.token = func() string { return token }
	} else if home, _ := config.Env("HOME"); filepath.IsAbs(home) {
		s.tokenFile = filepath.Join(home, ".vault-token")
	}
	return s, nil
}

func (s *vaultSource) fetch(ctx context.Context) (*result, error) {
	client, err := s.connect()
	if err != nil {
		return nil, err
	}
	answer, err := client.read(ctx, s.path)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, &fetchError{text: "vault has nothing at " + s.path, hint: "in a key/value store of version 2 the path has data/ after the mount: vault kv get -output-policy shows it"}
	}
	r, err := s.read(answer)
	if r == nil {
		r = &result{}
	}
	if seconds := min(answer.LeaseDuration, math.MaxInt32); seconds > 0 {
		r.expires = s.now().Add(time.Duration(seconds) * time.Second)
	}
	if id := answer.LeaseID; id != "" {
		r.revoke = func(ctx context.Context) error { return client.revoke(ctx, id) }
	}
	if err != nil && r.revoke != nil { // what cannot be used must not stay valid
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = errors.Join(err, r.revoke(ctx))
	}
	return r, err
}

// connect makes a client with the address, token and namespace of this source.
func (s *vaultSource) connect() (*vaultClient, error) {
	address, err := policy.ServiceURL(s.address)
	if err != nil {
		return nil, &fetchError{text: "the address of vault", cause: err, hint: "give address in the policy, or export " + vaultAddr}
	}
	token, err := s.authenticate()
	if err != nil {
		return nil, err
	}
	client := s.client
	if client == nil {
		if client, err = s.transport.client(); err != nil {
			return nil, &fetchError{text: "the environment's settings for vault", cause: err}
		}
	}
	return &vaultClient{address: address, token: token, namespace: s.namespace, http: client}, nil
}

// authenticate reads the token for requests to Vault.
func (s *vaultSource) authenticate() (string, error) {
	if s.token != nil {
		return s.token(), nil
	}
	hint := "log in with: vault login"
	if s.tokenFile == "" {
		return "", &fetchError{text: "there is no token for vault", hint: hint}
	}
	data, err := (&fileSource{path: s.tokenFile, writable: s.writable}).read()
	if err != nil {
		return "", &fetchError{text: "the token for vault", cause: err, hint: hint}
	}
	token := string(bytes.TrimSpace(data))
	if why := secretFault(token); why != "" {
		return "", &fetchError{text: "the token for vault in " + s.tokenFile + " is not valid", hint: hint}
	}
	s.held(vaultToken, token)
	return token, nil
}

// read takes the field out of an answer. Version 2 of the key/value store has
// the fields one level deeper, beside their metadata.
func (s *vaultSource) read(answer *vaultAnswer) (*result, error) {
	data := answer.Data
	if deeper, ok := data["data"].(map[string]any); ok && data["metadata"] != nil {
		data = deeper
	}
	text := func(names ...string) string {
		for _, name := range names {
			switch v := data[name].(type) {
			case string:
				return v
			case json.Number:
				return v.String()
			}
		}
		return ""
	}
	if s.sign == signAWS && s.field == "" { // the names of the AWS engine of Vault
		return awsKeys(text("access_key"), text("secret_key"), text("security_token", "session_token")), nil
	}
	v := text(s.field)
	if v == "" {
		return nil, &fetchError{text: fmt.Sprintf("the secret at %s has no text field %s", s.path, s.field), hint: "see its fields with: vault read " + s.path}
	}
	return resultOf([]byte(v), s.sign)
}
