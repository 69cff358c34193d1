package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/vault/api"

	"holdfast.dev/holdfast/internal/policy"
)

// vaultSource is a secret in HashiCorp Vault: a key/value store of version 1 or
// 2, or an engine that makes secrets on request and leases them.
type vaultSource struct {
	address, path, field string
	namespace, sign      string
	token                func() string // of VAULT_TOKEN, when the session began; nil when a file is to be read
	tokenFile            string
	held                 func(name, value string) // is told of the token
	writable             []string
	client               *http.Client // nil for one as VAULT_CACERT and the like say
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
		address: get("address", vaultAddr), namespace: get("namespace", vaultNamespace), tokenFile: o["token-file"], held: config.held,
	}
	if config.Client != nil {
		s.client = config.Client
	}
	if s.path == "" || s.field == "" && c.Sign == "" {
		return nil, errors.New("vault needs the path of a secret and the name of a field")
	}
	if insecure, _ := config.Env(vaultSkipVerify); insecure != "" {
		if skip, err := strconv.ParseBool(insecure); err != nil || skip {
			return nil, fmt.Errorf("%s is set, but a secret is asked for only where TLS is verified", vaultSkipVerify)
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
	answer, err := client.Logical().ReadWithContext(ctx, s.path)
	if err != nil {
		return nil, s.fault(err)
	}
	if answer == nil {
		return nil, &fetchError{text: "vault has nothing at " + s.path, hint: "in a key/value store of version 2 the path has data/ after the mount: vault kv get -output-policy shows it"}
	}
	r, err := s.read(answer)
	if r == nil {
		r = &result{}
	}
	if answer.LeaseDuration > 0 {
		r.expires = s.now().Add(time.Duration(answer.LeaseDuration) * time.Second)
	}
	if id := answer.LeaseID; id != "" {
		r.revoke = func(ctx context.Context) error {
			if err := client.Sys().RevokeWithContext(ctx, id); err != nil {
				return s.fault(err)
			}
			return nil
		}
	}
	if err != nil && r.revoke != nil { // what cannot be used must not stay valid
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = errors.Join(err, r.revoke(ctx))
	}
	return r, err
}

// connect makes a client with the address, token and namespace of this source,
// whatever the environment says of them.
func (s *vaultSource) connect() (*api.Client, error) {
	address, err := serviceURL(s.address)
	if err != nil {
		return nil, &fetchError{text: "the address of vault", cause: err, hint: "give address in the policy, or export " + vaultAddr}
	}
	token, err := s.authenticate()
	if err != nil {
		return nil, err
	}
	config := api.DefaultConfig()
	if config.Error != nil {
		return nil, &fetchError{text: "the environment's settings for vault", cause: config.Error}
	}
	config.Address, config.AgentAddress = address, ""
	config.MaxRetries, config.DisableRedirects, config.SRVLookup, config.Timeout = 1, true, false, fetchTime
	if s.client != nil {
		config.HttpClient = s.client
	}
	if t, ok := config.HttpClient.Transport.(*http.Transport); ok && t.TLSClientConfig != nil && t.TLSClientConfig.InsecureSkipVerify {
		return nil, errors.New("vault is asked only where TLS is verified")
	}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, errors.New("the environment's settings for vault make no sense") // the error can hold a header
	}
	client.SetToken(token)
	client.SetWrappingLookupFunc(func(string, string) string { return "" })
	client.ClearNamespace()
	if s.namespace != "" {
		client.SetNamespace(s.namespace)
	}
	return client, nil
}

// authenticate reads the token that vault is asked with.
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
	if why := problem(token); why != "" {
		return "", &fetchError{text: "the token for vault in " + s.tokenFile + " is none", hint: hint}
	}
	s.held(vaultToken, token)
	return token, nil
}

// read takes the field out of an answer. Version 2 of the key/value store has
// the fields one level deeper, beside what it knows about them.
func (s *vaultSource) read(answer *api.Secret) (*result, error) {
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
	if s.sign == signAWS && s.field == "" { // as the AWS engine of Vault names them
		return awsKeys(text("access_key"), text("secret_key"), text("security_token", "session_token")), nil
	}
	v := text(s.field)
	if v == "" {
		return nil, &fetchError{text: fmt.Sprintf("the secret at %s has no text in a field %s", s.path, s.field), hint: "see its fields with: vault read " + s.path}
	}
	return wrap([]byte(v), s.sign)
}

// fault says what went wrong without the words of the answer.
func (s *vaultSource) fault(err error) error {
	var answer *api.ResponseError
	if !errors.As(err, &answer) {
		return unreachable("vault", err)
	}
	e := &fetchError{text: fmt.Sprintf("vault answered %d for %s", answer.StatusCode, s.path), hint: "try it yourself: vault read " + s.path}
	if answer.StatusCode == http.StatusForbidden {
		e.text += ": the token may not read it, or has expired"
		e.hint = "log in with: vault login"
	}
	return e
}
