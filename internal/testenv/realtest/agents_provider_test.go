package realtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

// provider is the stand-in for all model providers; it requires the key.
type provider struct {
	mu      sync.Mutex
	scripts map[string]model.Script
	turns   map[string]int            // by script: the last requested step
	said    map[string][]model.Result // by script: the results of the steps so far
	strange []string                  // requests with another key
	both    map[string]bool           // by name of an agent: a request had the prompts of both runs
	told    map[string]bool           // by name of an agent: a request said where it runs
}

func newProvider() *provider {
	return &provider{
		scripts: map[string]model.Script{}, turns: map[string]int{}, said: map[string][]model.Result{},
		both: map[string]bool{}, told: map[string]bool{},
	}
}

const modelKey = "sk-ant-api03-not-a-real-key-0123456789abcdefghijklmnopqrstuvwxyz"

func (p *provider) lookup(name string) (model.Script, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.scripts[name]
	return s, ok
}

func (p *provider) turn(_ context.Context, t model.Turn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns[t.Script] = max(p.turns[t.Script], t.Step)
	p.said[t.Script] = t.Results
	return nil
}

// guard passes only requests with the key in a place that the dialects use.
func (p *provider) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := []string{r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")}
		if key := strings.Join(got, ""); key != modelKey {
			p.mu.Lock()
			p.strange = append(p.strange, fmt.Sprintf("%s %s with %q", r.Method, r.URL.Path, key))
			p.mu.Unlock()
			http.Error(w, "who is it?", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, a := range workers {
			if strings.Contains(string(body), model.Marker(a.name+"-work")) && strings.Contains(string(body), "You run inside Holdfast") {
				p.mu.Lock()
				p.told[a.name] = true
				p.mu.Unlock()
			}
			if strings.Contains(string(body), model.Marker(a.name+"-work")) && strings.Contains(string(body), model.Marker(a.name+"-more")) {
				p.mu.Lock()
				p.both[a.name] = true
				p.mu.Unlock()
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// modelAddress is the address of all providers.
const modelAddress = "93.184.215.30"

// withModels runs a test in a network of its own, in which hosts lead to where models are
// served.
func withModels(t *testing.T, needs testenv.Feature, hosts []string, test func(t *testing.T, w *world, p *provider)) {
	names := maps.Clone(addresses)
	for _, host := range hosts {
		names[host] = modelAddress
	}
	testenv.Need(t, needs, nil)
	testenv.WithNetwork(t, names, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := newWorld(t, n, root)
		w.nameServer()
		test(t, w, newProvider())
	})
}

// serveModels serves hosts by TLS where their models are. It logs nothing: agents disconnect.
func (w *world) serveModels(handler http.Handler, hosts ...string) {
	w.t.Helper()
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{Certificates: []tls.Certificate{w.net.Certificate(w.t, hosts...)}}}
	w.serveAt(modelAddress+":443", func(l net.Listener) error { return server.ServeTLS(l, "", "") })
	w.t.Cleanup(func() { server.Close() })
}

func (p *provider) serve(w *world) {
	w.t.Helper()
	var hosts []string
	for _, a := range workers {
		hosts = append(hosts, a.host)
	}
	w.serveModels(p.guard(model.New(model.Options{Lookup: p.lookup, Turn: p.turn})), hosts...)
}

// add makes the model play steps for prompts with this name.
func (p *provider) add(name, workspace string, steps []model.Step) {
	s := model.Script{Name: name}
	for _, step := range steps {
		step.Path, step.Command = strings.ReplaceAll(step.Path, "{ws}", workspace), strings.ReplaceAll(step.Command, "{ws}", workspace)
		step.Script = strings.ReplaceAll(step.Script, "{script}", name)
		s.Steps = append(s.Steps, step)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts[name] = s
}

// reached returns the last requested step, and the refused requests.
func (p *provider) reached(name string) (int, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns[name], slices.Clone(p.strange)
}
