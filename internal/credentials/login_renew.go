package credentials

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// answerMost bounds a token endpoint's answer, in bytes.
const answerMost = 64 << 10

// renewalRefused is the answer of a provider that does not renew a login.
type renewalRefused struct {
	code  string // of RFC 6749, section 5.2, or of a provider; one of codes
	login string // what to type
}

func (e *renewalRefused) Error() string {
	return fmt.Sprintf("the provider refused to renew the login (%s): %s", e.code, e.login)
}

func (e *renewalRefused) Hint() string { return e.login }

// LoginEnded tells the network that the program should hear of no login, and not of one
// that is not allowed.
func (e *renewalRefused) LoginEnded() bool { return true }

// codes are those that another try does not change. They pass inside as they are: what a
// provider writes into an error otherwise could be a secret.
var codes = []string{
	"invalid_grant", "invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope", // RFC 6749
	"refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated", // OpenAI
	"bad_refresh_token", // GitHub
}

func (s *loginSource) failure(text string, cause error) error {
	if cause == nil {
		text += ": " + s.renewal.Login
	}
	return &fetchError{text: text, cause: cause, hint: s.renewal.Login}
}

// ask asks the provider for other tokens. Its answer is one of tokens, a
// *renewalRefused, or a failure that says nothing about the refresh token.
func (s *loginSource) ask(ctx context.Context, t tokens) (tokens, error) {
	r, err := s.request(ctx, t.refresh)
	if err != nil {
		return tokens{}, s.failure("the renewal of the login", err)
	}
	client, err := s.client()
	if err != nil {
		return tokens{}, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return tokens{}, unreachable(r.URL.Host+", which renews the login,", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, answerMost))
	defer clear(data)
	code, refused := errorCode(data), answer.StatusCode == http.StatusOK && refuses(data)
	switch {
	case err != nil:
		return tokens{}, unreachable(r.URL.Host+", which renews the login,", err)
	case code != "" && (refused || answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusUnauthorized):
		return tokens{}, &renewalRefused{code, s.renewal.Login}
	case refused || answer.StatusCode != http.StatusOK: // also a proxy's page, or that it is too early
		return tokens{}, &fetchError{text: fmt.Sprintf("%s answered %d to the renewal of the login", r.URL.Host, answer.StatusCode), hint: "try again later, or " + s.renewal.Login}
	}
	return s.granted(t, data)
}

func (s *loginSource) request(ctx context.Context, refresh string) (*http.Request, error) {
	fields := map[string]string{"grant_type": "refresh_token", "refresh_token": refresh, "client_id": s.renewal.Client, "client_secret": s.renewal.Secret}
	form := url.Values{}
	for name, value := range fields {
		if value == "" {
			delete(fields, name)
			continue
		}
		form.Set(name, value)
	}
	kind, body := "application/x-www-form-urlencoded", []byte(form.Encode())
	if s.renewal.JSON {
		kind = "application/json"
		body, _ = json.Marshal(fields) // a map of texts is always JSON
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.renewal.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Accept", "application/json")
	return r, nil
}

// errorCode is the error that an answer names, if it is one of codes; else "". OpenAI puts
// it into an object.
func errorCode(data []byte) string {
	for _, key := range []string{"error", "error.code", "code"} {
		if code := jsonText(data, key); slices.Contains(codes, code) {
			return code
		}
	}
	return ""
}

// refuses reports whether an answer of status 200 is an error all the same, as at GitHub.
func refuses(data []byte) bool {
	return jsonText(data, "access_token") == "" && jsonText(data, "error")+jsonText(data, "error.code") != ""
}

// granted reads the answer to a renewal (RFC 6749, section 5.1).
func (s *loginSource) granted(old tokens, data []byte) (tokens, error) {
	fresh := tokens{access: jsonText(data, "access_token"), refresh: cmp.Or(jsonText(data, "refresh_token"), old.refresh), id: cmp.Or(jsonText(data, "id_token"), old.id)}
	for _, v := range []string{fresh.access, fresh.refresh, fresh.id} {
		s.hold(v)
		if why := secretFault(v); why != "" && (v != "" || v == fresh.access) {
			return tokens{}, &fetchError{text: "the answer to the renewal of the login cannot be used: " + why, hint: s.renewal.Login}
		}
	}
	if fresh.ends = jwtEnd(fresh.access); fresh.ends.IsZero() {
		if seconds, err := strconv.ParseInt(jsonText(data, "expires_in"), 10, 64); err == nil && seconds > 0 && seconds < 1<<31 {
			fresh.ends = s.now().Add(time.Duration(seconds) * time.Second)
		}
	}
	return fresh, nil
}
