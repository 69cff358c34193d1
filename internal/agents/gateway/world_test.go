package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// peer is one side, played by a test.
type peer struct {
	t    *testing.T
	out  *io.PipeWriter // what it writes
	in   *io.PipeReader // what it reads
	read chan string    // lines of in; closed at the end
}

func newPeer(t *testing.T, read bool) (*peer, Streams) {
	outR, outW := io.Pipe()
	inR, inW := io.Pipe()
	p := &peer{t: t, out: outW, in: inR, read: make(chan string, 100_000)}
	if read {
		go p.listen()
	}
	return p, Streams{In: inW, Out: outR}
}

func (p *peer) listen() {
	defer close(p.read)
	r := bufio.NewReader(p.in)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		p.read <- strings.TrimSuffix(line, "\n")
	}
}

// say writes lines.
func (p *peer) say(lines ...string) {
	for _, l := range lines {
		if _, err := io.WriteString(p.out, l+"\n"); err != nil {
			p.t.Errorf("writing: %v", err)
		}
	}
}

// hears checks the next line that it reads, as JSON.
func (p *peer) hears(want string) {
	p.t.Helper()
	select {
	case got, open := <-p.read:
		if !open || !same(p.t, got, want) {
			p.t.Fatalf("read %s, want %s", got, want)
		}
	case <-time.After(10 * time.Second):
		p.t.Fatalf("nothing to read, want %s", want)
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, s := range []string{a, b} {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatalf("%q is no JSON: %v", s, err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0] == texts[1]
}

// journal keeps events.
type journal struct {
	mu     sync.Mutex
	all    []event.Event
	refuse error
}

func (j *journal) Emit(e event.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.refuse != nil {
		return j.refuse
	}
	j.all = append(j.all, e)
	return nil
}

// said are the events as text: action, object and some details.
func (j *journal) said(details ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, e := range j.all {
		words := []string{e.Action, e.Object}
		for _, d := range details {
			if v, ok := e.Detail[d]; ok {
				words = append(words, d+"="+v)
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// world is an agent and a server with the gateway between them.
type world struct {
	agent, server *peer
	journal       *journal
	kill          context.CancelFunc // signals that the server is dead
	asked, killed chan struct{}
	report        chan Report
}

// newWorld starts a session; change may modify its configuration.
func newWorld(t *testing.T, change func(*Config)) *world {
	return begin(t, change, true)
}

func begin(t *testing.T, change func(*Config), read bool) *world {
	t.Helper()
	w := &world{journal: &journal{}, asked: make(chan struct{}), killed: make(chan struct{}), report: make(chan Report, 1)}
	c := Config{Name: "server", Sink: w.journal, Limits: Limits{Leave: 50 * time.Millisecond, Die: 50 * time.Millisecond}}
	w.agent, c.Agent = newPeer(t, read)
	w.server, c.Server = newPeer(t, read)
	c.Ask, c.Kill = func() { close(w.asked) }, func() { close(w.killed); w.die() }
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.kill = cancel
	go func() { w.report <- Run(ctx, c) }()
	t.Cleanup(func() {
		w.die()
		w.agent.out.Close()
		w.agent.in.Close()
	})
	return w
}

// die ends the server as a kill would.
func (w *world) die() {
	w.server.out.Close()
	w.server.in.Close()
	w.kill()
}

// ended is the report of the session.
func (w *world) ended(t *testing.T) Report {
	t.Helper()
	select {
	case r := <-w.report:
		return r
	case <-time.After(10 * time.Second):
		t.Fatal("the session does not end")
		return Report{}
	}
}

func soon(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}
