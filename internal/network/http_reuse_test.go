package network

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// limits are the restrictions on requests; the last entry has none.
var limits = []struct {
	name    string
	secret  bool // it is about a credential
	rule    func(*policy.HostRule)
	more    bool // a second rule permits all
	binding func(*Binding)
	gate    event.Kind
}{
	{name: "methods and paths", rule: pathsOnly},
	{name: "methods and paths, and a second rule that binds nothing", rule: pathsOnly, more: true},
	{name: "a credential", secret: true, rule: bindForge},
	{name: "a credential, and a second rule that binds nothing", secret: true, rule: bindForge, more: true},
	{name: "a credential's paths", secret: true, binding: func(b *Binding) { b.Paths = []string{"/ok"} }},
	{name: "a rule of consent for requests", gate: event.KindRequest},
	{name: "a rule of consent for credentials", gate: event.KindCredential},
	{name: "nothing"},
}

func pathsOnly(r *policy.HostRule) {
	r.Methods, r.Paths = []string{"GET", "POST", "DELETE"}, []string{"/ok"}
}

// connections is an upstream that remembers which connection each request came over.
type connections struct {
	mu   sync.Mutex
	over []string // in the order of the requests
	body []bool
}

func (c *connections) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.body = append(c.over, r.RemoteAddr), append(c.body, n > 0)
}

// after counts the requests that came over a connection after one with a body.
func (c *connections) after() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, used := 0, map[string]bool{}
	for i, at := range c.over {
		if used[at] {
			n++
		}
		used[at] = used[at] || c.body[i]
	}
	return n
}

// TestNothingFollowsABody has requests with and without a body, one after the
// other and many at once: whatever client and server speak, no request comes over a
// connection that carried a body, where anything limits requests. To a server of
// HTTP/1.1 that is so without a limit, too.
func TestNothingFollowsABody(t *testing.T) {
	for _, limit := range limits {
		for _, way := range ways {
			for _, older := range []bool{true, false} {
				if !way.secure && (limit.secret || !older) {
					continue // no credential goes in the clear, nor does HTTP/2
				}
				t.Run(fmt.Sprintf("%s, %s, older server %v", limit.name, way.name, older), func(t *testing.T) {
					way.older, way.rule = older, limit.rule
					way.config = func(c *Config) {
						if limit.gate != "" {
							c.Gate, c.Wants = untilEnded{limit.gate, nil}, func(k event.Kind) bool { return k == limit.gate }
						}
						if limit.more {
							c.Allow = append(c.Allow, permits(apiName, c.Allow[0].Ports[0], c.Allow[0].Kind))
						}
					}
					if limit.secret {
						way.credentials = newVault(limit.binding)
					}
					up := &connections{}
					s := newShop(t, up, way.shopConfig)
					askInTurn(s)
					askAtOnce(s)
					shared := limit.name == "nothing" && !older && !way.old
					if n := up.after(); n > 0 != shared {
						t.Errorf("%d of %d requests came over a connection that a body was sent on", n, len(up.over))
					}
				})
			}
		}
	}
}

// bodies are: none, one of known length, one of unknown length, and none.
func bodies() []io.Reader {
	return []io.Reader{nil, strings.NewReader("x"), struct{ io.Reader }{strings.NewReader("y")}, nil}
}

func askInTurn(s *shop) {
	for _, method := range []string{"GET", "POST", "DELETE"} {
		for _, body := range bodies() {
			if resp, _ := s.ask(method, "/ok", body); resp.StatusCode != http.StatusOK {
				s.t.Fatalf("%s was answered %s", method, resp.Status)
			}
		}
	}
}

func askAtOnce(s *shop) {
	var asked sync.WaitGroup
	for _, body := range slices.Concat(bodies(), bodies(), bodies(), bodies(), bodies(), bodies()) {
		asked.Go(func() {
			r, _ := http.NewRequest("POST", s.url("/ok"), body)
			resp, err := s.client.Do(r)
			if err != nil {
				s.t.Error(err)
				return
			}
			if resp.Body.Close(); resp.StatusCode != http.StatusOK {
				s.t.Errorf("it was answered %s", resp.Status)
			}
		})
	}
	asked.Wait()
}
