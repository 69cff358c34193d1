package network

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestTokenEndpoint: nothing that is sent to a token endpoint, or to another path of its
// host, reaches the host.
func TestTokenEndpoint(t *testing.T) {
	for _, old := range []bool{false, true} {
		upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("upstream has got %s", r.URL) })
		login := policy.Login{Host: policy.HostPort{Host: apiName, Port: 443}, Path: "/token", Credential: "forge", Title: "Forge", Text: "forge login"}
		shop := newShop(t, upstream, shopConfig{secure: true, old: old, credentials: newVault(nil),
			rule:   func(r *policy.HostRule) { r.Methods, r.Paths = []string{"POST"}, []string{"/token"} },
			config: func(c *Config) { c.Logins = []policy.Login{login} },
		})
		const none = "there is no login from inside, for its token would be there; for Forge: forge login"
		for _, row := range []struct {
			name, method, path, body string
			status                   int
			want                     string
		}{
			{"a renewal", "POST", "/token", "renew=" + testPlaceholder, 200, `{"access_token":"` + testPlaceholder + `"}`},
			{"a login", "POST", "/token", "code=x", 403, none},
			{"a login without a body", "POST", "/token", "", 403, none},
			{"another path", "POST", "/device", "x", 403, none},
			{"another method", "GET", "/token", "", 403, none},
			{"the path in another spelling", "POST", "/%74oken", "x", 403, none},
			{"another placeholder", "POST", "/token", "renew=" + otherPlaceholder, 403, "in its body"},
			{"a placeholder in the URL", "POST", "/token?" + testPlaceholder, "renew=" + testPlaceholder, 403, "in its URL"},
			{"more than a renewal has", "POST", "/token", strings.Repeat("x", 70<<10), 400, "too large"},
		} {
			r, err := http.NewRequest(row.method, shop.url(row.path), strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := shop.client.Do(r)
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
				continue
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != row.status || !strings.Contains(string(body), row.want) {
				t.Errorf("%s: %v, %d %s", row.name, err, answer.StatusCode, body)
			}
		}
	}
}

// endedLogin is why there is no secret of a login that its provider does not renew.
type endedLogin struct{}

func (endedLogin) Error() string    { return "log in" }
func (endedLogin) LoginEnded() bool { return true }

// TestUnauthorized: an answer of 401 is made known to the broker, and is what a program
// gets for a login that has ended.
func TestUnauthorized(t *testing.T) {
	v := newVault(nil)
	shop := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"/": 401, "/forbidden": 403}[r.URL.Path])
	}), shopConfig{secure: true, credentials: v, rule: bindForge})
	ask := func(path, token string) int {
		r, err := http.NewRequest("GET", shop.url(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := shop.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	ask("/", "")
	ask("/forbidden", testPlaceholder)
	if len(v.rejected) > 0 {
		t.Errorf("got %v", v.rejected)
	}
	ask("/", testPlaceholder)
	if !slices.Equal(v.rejected, []string{"forge"}) {
		t.Errorf("got %v", v.rejected)
	}
	v.err = fmt.Errorf("its source: %w", endedLogin{})
	if got := ask("/", testPlaceholder); got != 401 {
		t.Errorf("got %d", got)
	}
}
