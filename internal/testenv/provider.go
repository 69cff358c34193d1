package testenv

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Provider is a stand-in for the service that a program's account is at: its token
// endpoint is ServeHTTP. It rotates refresh tokens as real ones do: each is good once.
type Provider struct {
	Client   string           // client_id that it knows
	JSON     bool             // requests are JSON, else forms
	Claims   map[string]any   // of its tokens, which are JWTs then; nil for opaque ones
	Lifetime time.Duration    // of an access token
	Keeps    bool             // refresh tokens stay good, as at Google
	Now      func() time.Time // nil for the machine's clock

	mu      sync.Mutex
	access  map[string]time.Time // when each ends
	refresh map[string]bool      // whether each is still good
	asked   []string             // refresh tokens of the requests, in order
	refuse  string               // error that every renewal gets; "" for none
	hold    func()
}

// ProviderLogin is what a program has after a login.
type ProviderLogin struct{ Access, Refresh, ID string }

// Login makes a login whose access token ends after a time.
func (p *Provider) Login(lasts time.Duration) ProviderLogin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.issue(lasts)
}

func (p *Provider) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

func (p *Provider) issue(lasts time.Duration) ProviderLogin {
	if p.access == nil {
		p.access, p.refresh = map[string]time.Time{}, map[string]bool{}
	}
	ends := p.now().Add(lasts)
	l := ProviderLogin{Access: p.token("access", ends), Refresh: "rt_" + rand.Text() + rand.Text(), ID: p.token("id", ends)}
	p.access[l.Access], p.refresh[l.Refresh] = ends, true
	return l
}

func (p *Provider) token(use string, ends time.Time) string {
	if p.Claims == nil {
		return use + "-" + rand.Text() + rand.Text()
	}
	claims := maps.Clone(p.Claims)
	claims["exp"], claims["jti"], claims["use"] = ends.Unix(), rand.Text(), use
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(payload) + "." + encode([]byte(strings.Repeat(rand.Text(), 4)))
}

// Accepts reports whether a request has an access token that is good.
func (p *Provider) Accepts(r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Before(p.access[token])
}

// End ends all access tokens, as a provider does on its own account.
func (p *Provider) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.access)
}

// Refuse lets every renewal be refused with an error from now on; "" for not.
func (p *Provider) Refuse(code string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = code
}

// Hold is called in a renewal between its success and the answer.
func (p *Provider) Hold(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = f
}

// Renewals are the refresh tokens that were asked with, in order.
func (p *Provider) Renewals() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// ServeHTTP is the token endpoint (RFC 6749, section 6).
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fields := map[string]string{}
	if p.JSON {
		if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	} else if err := r.ParseForm(); err == nil {
		for name := range r.PostForm {
			fields[name] = r.PostForm.Get(name)
		}
	}
	status, answer, hold := p.renew(fields)
	if hold != nil && status == http.StatusOK {
		hold()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (p *Provider) renew(fields map[string]string) (int, map[string]any, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	refresh := fields["refresh_token"]
	p.asked = append(p.asked, refresh)
	switch {
	case fields["grant_type"] != "refresh_token":
		return http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"}, nil
	case fields["client_id"] != p.Client:
		return http.StatusUnauthorized, map[string]any{"error": "invalid_client"}, nil
	case p.refuse != "":
		return http.StatusBadRequest, map[string]any{"error": p.refuse, "error_description": "the token was " + refresh}, nil
	case !p.refresh[refresh]:
		return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}, nil
	}
	l := p.issue(p.Lifetime)
	answer := map[string]any{"access_token": l.Access, "id_token": l.ID, "token_type": "Bearer", "expires_in": int(p.Lifetime.Seconds())}
	if !p.Keeps {
		p.refresh[refresh], answer["refresh_token"] = false, l.Refresh
	}
	return http.StatusOK, answer, p.hold
}
