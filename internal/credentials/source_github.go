package credentials

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// githubSource makes installation tokens of a GitHub app, for the repositories
// and permissions that the policy names and no others (GitHub REST API, "Create
// an installation access token for an app").
type githubSource struct {
	api, app, installation string
	keyFile                string
	repositories           []string          // names without the owner
	permissions            map[string]string // name to level
	writable               []string
	client                 func() (*http.Client, error)
	now                    func() time.Time
}

const githubAPI = "https://api.github.com"

func newGitHubSource(c policy.Credential, config Config) (source, error) {
	o := c.Source.Options
	s := &githubSource{
		api: githubAPI, app: o["app-id"], installation: o["installation-id"], keyFile: o["key-file"],
		repositories: words(o["repositories"]), permissions: map[string]string{},
		writable: config.Writable, client: config.upstream(), now: config.Now,
	}
	if o["api"] != "" {
		var err error
		if s.api, err = policy.ServiceURL(o["api"]); err != nil {
			return nil, err
		}
	}
	for _, p := range words(o["permissions"]) {
		name, level, ok := strings.Cut(p, "=")
		if !ok || rank(level) == 0 {
			return nil, fmt.Errorf("%q is not a permission such as contents=read", p)
		}
		s.permissions[name] = level
	}
	switch {
	case !number(s.app) || !number(s.installation):
		return nil, errors.New("github-app needs app-id and installation-id, which are numbers")
	case !filepath.IsAbs(s.keyFile):
		return nil, errors.New("github-app needs key-file, an absolute path")
	case len(s.repositories) == 0 || len(s.permissions) == 0:
		return nil, errors.New("github-app needs repositories and permissions: a token is limited to those")
	}
	return s, nil
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func number(text string) bool { return text != "" && strings.Trim(text, digits) == "" }

// rank orders levels; 0 for none of them.
func rank(level string) int { return slices.Index([]string{"read", "write", "admin"}, level) + 1 }

func (s *githubSource) fetch(ctx context.Context) (*result, error) {
	jwt, err := s.identity()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"repositories": s.repositories, "permissions": s.permissions})
	if err != nil {
		return nil, fmt.Errorf("writing a request to github: %w", err)
	}
	answer, err := s.do(ctx, http.MethodPost, "/app/installations/"+s.installation+"/access_tokens", jwt, body)
	if err != nil {
		return nil, err
	}
	defer discard(answer.Body)
	if answer.StatusCode != http.StatusCreated {
		return nil, s.refusal(answer.StatusCode)
	}
	var made struct {
		Token       string            `json:"token"`
		ExpiresAt   time.Time         `json:"expires_at"`
		Permissions map[string]string `json:"permissions"`
		Selection   string            `json:"repository_selection"`
	}
	if json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&made) != nil { // the error could quote the token
		return nil, errors.New("github's answer cannot be parsed")
	}
	token := made.Token
	r := &result{value: []byte(token), expires: made.ExpiresAt, revoke: func(ctx context.Context) error { return s.revoke(ctx, token) }}
	if why := s.excess(made.Permissions, made.Selection); why != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		return nil, errors.Join(errors.New(why), r.revoke(ctx))
	}
	return r, nil
}

// excess returns how a token may do more than was asked for; "" if it may not.
// Reading metadata comes with every token.
func (s *githubSource) excess(permissions map[string]string, selection string) string {
	if selection == "all" {
		return "github made a token for all repositories, not for those that were named"
	}
	for name, level := range permissions {
		if rank(level) > rank(s.permissions[name]) && !(name == "metadata" && level == "read") {
			return "github made a token that may do more than was asked for: " + fmt.Sprintf("%.40q", name)
		}
	}
	return ""
}

func (s *githubSource) revoke(ctx context.Context, token string) error {
	answer, err := s.do(ctx, http.MethodDelete, "/installation/token", token, nil)
	if err != nil {
		return err
	}
	defer discard(answer.Body)
	if answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusUnauthorized { // the token is not valid any more
		return fmt.Errorf("github answered %d when the token was revoked", answer.StatusCode)
	}
	return nil
}

func (s *githubSource) do(ctx context.Context, method, path, token string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.api+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("writing a request to github: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("X-Github-Api-Version", "2022-11-28")
	r.Header.Set("User-Agent", "holdfast")
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, unreachable("github", err)
	}
	return answer, nil
}

func (s *githubSource) refusal(status int) error {
	e := &fetchError{text: fmt.Sprintf("github answered %d", status)}
	switch status {
	case http.StatusUnauthorized:
		e.text += ": key-file is not a key of the app, or this machine's clock is wrong"
	case http.StatusForbidden, http.StatusUnprocessableEntity:
		e.text += ": the installation does not have all of these repositories and permissions"
	case http.StatusNotFound:
		e.text += ": the app has no such installation"
	}
	e.hint = "see the app's settings and the installation's at github"
	return e
}

// identity is the app's own token: a JWT (RFC 7519) signed with RS256 (RFC 7518
// section 3.3), good for nine of the ten minutes that GitHub accepts, and from
// a minute ago, because clocks differ.
func (s *githubSource) identity() (string, error) {
	key, err := s.key()
	if err != nil {
		return "", &fetchError{text: "the key of the github app", cause: err, hint: "download a private key in the app's settings, and name it as key-file"}
	}
	now := s.now()
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix(), "iss": s.app})
	if err != nil {
		return "", fmt.Errorf("writing the app's token: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("signing the app's token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func (s *githubSource) key() (*rsa.PrivateKey, error) {
	data, err := (&fileSource{path: s.keyFile, writable: s.writable}).read()
	if err != nil {
		return nil, err
	}
	defer clear(data)
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s is not in PEM", s.keyFile)
	}
	defer clear(block.Bytes)
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s is not a private RSA key", s.keyFile)
	}
	return key, nil
}
