package egress

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestNothingFollowsABody has requests with and without a body, one after the
// other: whatever the client speaks and whatever the rules are about, no request
// comes over a connection that carried a body.
func TestNothingFollowsABody(t *testing.T) {
	var mu sync.Mutex
	var over []string // connections, in the order of their requests
	upstream := func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		over = append(over, r.RemoteAddr)
	}
	last := func() string { mu.Lock(); defer mu.Unlock(); return over[len(over)-1] }
	rules := map[string]func(*policy.HostRule){
		"any request":       nil,
		"methods and paths": func(r *policy.HostRule) { r.Methods, r.Paths = []string{"GET", "POST", "DELETE"}, []string{"/ok"} },
		"a credential":      bindForge,
	}
	for name, rule := range rules {
		for _, way := range ways {
			way.older = true // HTTP/2 says where a body ends
			if way.rule = rule; !way.secure && name == "a credential" {
				continue // none goes in the clear
			}
			t.Run(name+" "+way.name, func(t *testing.T) {
				way.credentials = newVault(nil)
				s := newShop(t, http.HandlerFunc(upstream), way.shopConfig)
				used := map[string]bool{} // connections that carried a body
				for _, method := range []string{"GET", "POST", "DELETE"} {
					for _, body := range []io.Reader{nil, strings.NewReader("x"), struct{ io.Reader }{strings.NewReader("y")}, nil} {
						if resp, _ := s.ask(method, "/ok", body); resp.StatusCode != http.StatusOK {
							t.Fatalf("%s was answered %s", method, resp.Status)
						}
						if used[last()] {
							t.Errorf("%s came over a connection that a body was sent on", method)
						}
						used[last()] = used[last()] || body != nil
					}
				}
			})
		}
	}
}
