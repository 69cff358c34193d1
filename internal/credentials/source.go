package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// The kinds of a source.
const (
	kindEnv     = "env"
	kindFile    = "file"
	kindCommand = "command"
	kindVault   = "vault"
	kindGitHub  = "github-app"
)

// source is where a secret comes from. An error of fetch contains nothing that
// the source gave.
type source interface {
	fetch(ctx context.Context) (*result, error)
}

// result is what a source gave.
type result struct {
	value   []byte
	fields  map[string][]byte           // of aws-sigv4, instead of value
	expires time.Time                   // zero when the source does not say
	revoke  func(context.Context) error // ends it upstream; nil when it was not made for us
}

func (r *result) secret() Secret {
	s := Secret{Value: string(r.value)}
	if r.fields != nil {
		s.Fields = map[string]string{}
		for k, v := range r.fields {
			s.Fields[k] = string(v)
		}
	}
	return s
}

// wipe overwrites the bytes. Copies that became strings stay until they are
// collected; nothing outside this process can read them.
func (r *result) wipe() {
	clear(r.value)
	for _, v := range r.fields {
		clear(v)
	}
	r.value, r.fields, r.revoke = nil, nil, nil
}

// fetchError is the failure of a source, in words of ours.
type fetchError struct {
	text, hint string
	cause      error
}

func (e *fetchError) Error() string {
	if e.cause != nil {
		return e.text + ": " + e.cause.Error()
	}
	return e.text
}
func (e *fetchError) Unwrap() error { return e.cause }

// Hint is what to do next.
func (e *fetchError) Hint() string { return e.hint }

func newSource(c policy.Credential, config Config, variables []string) (source, error) {
	s, err := sourceOf(c, config, variables)
	if err != nil {
		return nil, &Error{Credential: c.Name, Reason: "its source", cause: err}
	}
	return s, nil
}

// optionsOf are the options that a kind accepts. Others are refused: what a
// user puts there by mistake may be the secret.
var optionsOf = map[string][]string{
	kindFile:   {"key", "profile", "variable", "where"},
	kindVault:  {"address", "field", "namespace", "token-file"},
	kindGitHub: {"api", "app-id", "installation-id", "key-file", "permissions", "repositories"},
}

func sourceOf(c policy.Credential, config Config, variables []string) (source, error) {
	for key := range c.Source.Options {
		if !slices.Contains(optionsOf[c.Source.Kind], key) {
			return nil, fmt.Errorf("%s takes no option %q", c.Source.Kind, key)
		}
	}
	switch c.Source.Kind {
	case kindEnv:
		return newEnvSource(c, config)
	case kindFile:
		return newFileSource(c, config)
	case kindCommand:
		return newCommandSource(c, config, variables)
	case kindVault:
		return newVaultSource(c, config)
	case kindGitHub:
		return newGitHubSource(c, config)
	}
	return nil, fmt.Errorf("there is no kind %q; there are env, file, command, vault and github-app", c.Source.Kind)
}

// resultOf makes a result of what a source printed.
func resultOf(data []byte, sign string) (*result, error) {
	if sign == signAWS {
		return awsResult(data)
	}
	return &result{value: trimNewline(data)}, nil
}

// trimNewline cuts one newline off the end; a shell would cut all of them.
func trimNewline(data []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
}

// awsResult reads what programs print for credential_process of the AWS
// programs, version 1 (AWS SDKs and Tools Reference Guide, "Process credential
// provider").
func awsResult(data []byte) (*result, error) {
	var p struct {
		Version         int
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      string
	}
	if json.Unmarshal(data, &p) != nil { // the error could quote the secret
		return nil, errors.New("the source did not give the JSON of an AWS credential_process")
	}
	if p.Version != 1 {
		return nil, fmt.Errorf("the source gave version %d of the credential_process format; version 1 is known", p.Version)
	}
	r := awsKeys(p.AccessKeyID, p.SecretAccessKey, p.SessionToken)
	if p.Expiration == "" {
		return r, nil
	}
	at, err := time.Parse(time.RFC3339, p.Expiration)
	if err != nil {
		return nil, errors.New("the source gave an Expiration that is not RFC 3339")
	}
	r.expires = at
	return r, nil
}

func awsKeys(id, secret, token string) *result {
	r := &result{fields: map[string][]byte{policy.KeyID: []byte(id), policy.SecretKey: []byte(secret)}}
	if token != "" {
		r.fields[policy.SessionToken] = []byte(token)
	}
	return r
}

// envSource is a variable of the supervisor, read when the session began.
type envSource struct {
	names []string
	got   func() *result // a function, because fmt shows what a pointer points to
	err   error
}

// variablesOf names the variables of the supervisor that hold secrets.
func variablesOf(all []policy.Credential) []string {
	var out []string
	for _, c := range all {
		switch {
		case c.Source.Kind == kindEnv:
			out = append(out, envNames(c)...)
		case c.Source.Kind == kindVault && c.Source.Options["token-file"] == "":
			out = append(out, vaultToken)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// envNames are the variables of one credential: for AWS the three that belong
// together, given by the name of the first.
func envNames(c policy.Credential) []string {
	if names := awsNames(c.Source.Value); c.Sign == signAWS && names != nil {
		return names
	}
	return []string{c.Source.Value}
}

// awsNames are the names of the three that belong together, by that of the first; nil
// for any other name.
func awsNames(first string) []string {
	prefix, ok := strings.CutSuffix(first, "ACCESS_KEY_ID")
	if !ok {
		return nil
	}
	return []string{first, prefix + "SECRET_ACCESS_KEY", prefix + "SESSION_TOKEN"}
}

func newEnvSource(c policy.Credential, config Config) (source, error) {
	if c.Source.Value == "" || strings.ContainsAny(c.Source.Value, "=\x00") {
		return nil, errors.New("env needs the name of a variable")
	}
	s := &envSource{names: envNames(c)}
	values := make([]string, len(s.names))
	for i, name := range s.names {
		values[i], _ = config.Env(name)
	}
	switch {
	case values[0] == "":
		s.err = &fetchError{text: s.names[0] + " was not set when the run began", hint: "set it: export " + s.names[0] + "=…"}
	case len(values) == 3:
		keys := awsKeys(values[0], values[1], values[2])
		s.got = func() *result { return keys }
	default:
		var got *result
		got, s.err = resultOf([]byte(values[0]), c.Sign)
		s.got = func() *result { return got }
	}
	return s, nil
}

// fetch returns a copy: a lease that ends wipes its own.
func (s *envSource) fetch(context.Context) (*result, error) {
	if s.err != nil {
		return nil, s.err
	}
	got := s.got()
	out := &result{value: bytes.Clone(got.value), expires: got.expires}
	if got.fields != nil {
		out.fields = map[string][]byte{}
		for k, v := range got.fields {
			out.fields[k] = bytes.Clone(v)
		}
	}
	return out, nil
}
