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
			rule:   func(r *policy.HostRule) { r.Methods, r.Paths, r.Answered = []string{"POST"}, []string{"/token"}, true },
			config: func(c *Config) { c.Logins, c.Learn = []policy.Login{login}, Observe },
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
		for _, o := range shop.Observations() {
			if plainPath(o.Path) == "/token" {
				t.Errorf("a rule is proposed of %+v", o)
			}
		}
	}
}

// TestLoginPaths: what is not near a place of logins is refused as at any other host.
func TestLoginPaths(t *testing.T) {
	shop := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("upstream has got %s", r.URL) }), shopConfig{secure: true,
		rule: func(r *policy.HostRule) {
			r.Methods, r.Paths, r.Answered = []string{"POST"}, []string{"/login/device/code"}, true
		},
		config: func(c *Config) {
			c.Logins = []policy.Login{{Host: policy.HostPort{Host: apiName, Port: 443}, Path: "/login/device/code", Title: "Forge", Text: "forge login"}}
		},
	})
	for path, want := range map[string]string{
		"/login/device/code/": "no login from inside", "/login/device": "no login from inside", "/login/device/other": "no login from inside",
		"/octo/x.git/info/refs?service=git-upload-pack": "no rule allows it; to allow it: --allow " + apiName, "/login/other": "no rule allows it",
	} {
		answer, err := shop.client.Get(shop.url(path))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != 403 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v, %d %s", path, err, answer.StatusCode, body)
		}
	}
}

// TestLoginAtAnAllowedHost: where the user's own rule allows the host of a token
// endpoint, a form of another client passes there, and still no login.
func TestLoginAtAnAllowedHost(t *testing.T) {
	loginAtAllowed(t, 200)
	loginAtAllowed(t, 403, "/token") // a rule for that alone is the user's as well
}

// loginAtAllowed is TestLoginAtAnAllowedHost with a rule that has paths. other is the
// status for another path.
func loginAtAllowed(t *testing.T, other int, paths ...string) {
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	at := policy.HostPort{Host: apiName, Port: 443}
	shop := newShop(t, upstream, shopConfig{secure: true, credentials: newVault(nil),
		rule: func(r *policy.HostRule) { r.Inspect, r.Paths = true, paths },
		config: func(c *Config) {
			c.Logins = []policy.Login{
				{Host: at, Path: "/token", Credential: "forge", Title: "Forge", Text: "forge login", Client: "forge client"},
				{Host: at, Path: "/login/device/code", Title: "Forge", Text: "forge login"},
			}
		},
	})
	const form, grant = "application/x-www-form-urlencoded", "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c"
	for _, row := range []struct {
		name, path, kind, body string
		status                 int
		want                   string
	}{
		{"of a service account", "/token", form, grant, 200, grant},
		{"of one, with a charset", "/token", form + "; charset=UTF-8", grant, 200, grant},
		{"a renewal", "/token", form, "renew=" + testPlaceholder, 200, `"access_token"`},
		{"another placeholder", "/token", form, "renew=" + otherPlaceholder, 403, "in its body"},
		{"a login of the client", "/token", form, "code=x&client_id=forge+client", 403, "no login from inside"},
		{"one in another spelling", "/token", form, "code=x&client_id=%66orge%20client", 403, "no login from inside"},
		{"one in the query", "/token?client_id=x", form, grant, 403, "no login from inside"},
		{"one that is no form", "/token", "application/json", `{}`, 403, "no login from inside"},
		{"a login of no known client", "/login/device/code", form, "client_id=x", 403, "no login from inside"},
		{"the same with a slash", "/login/device/code/", form, "client_id=x", 403, "no login from inside"},
		{"the same with an escape", "/login/device/%63ode", form, "client_id=x", 403, "no login from inside"},
		{"another path", "/octo", form, "x", other, ""},
	} {
		answer, err := shop.client.Post(shop.url(row.path), row.kind, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != row.status || !strings.Contains(string(body), row.want) {
			t.Errorf("%s: %v, %d %s", row.name, err, answer.StatusCode, body)
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
