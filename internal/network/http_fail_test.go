package network

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestHangingUpstream(t *testing.T) {
	type call struct{ come, gone chan struct{} }
	calls := make(chan call, 1)
	everyWay(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case c := <-calls: // no second attempt has one
			close(c.come)
			<-r.Context().Done()
			close(c.gone)
		default:
		}
	}, func(t *testing.T, s *shop, _ bool) {
		c := call{make(chan struct{}), make(chan struct{})}
		calls <- c
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			select {
			case <-c.come:
			case <-time.After(patience): // the client must not wait for it for ever
			}
			cancel()
		}()
		r, _ := http.NewRequestWithContext(ctx, "GET", s.url("/"), nil)
		if resp, err := s.client.Do(r); err == nil {
			t.Errorf("answered %d", resp.StatusCode)
		}
		eventually(t, "upstream learns that the client is gone", patience, c.gone)
		until(t, "the connection ends", func() bool {
			s.client.CloseIdleConnections()
			return s.Stats().Open == 0
		})
	})
}

func TestUpstreamFails(t *testing.T) {
	rows := []struct {
		name   string
		answer string
		want   string
	}{
		{"it closes the connection", "", "502 holdfast got no answer from api.example.org: it closed the connection"},
		{"it says something else", "SSH-2.0-x secret\r\n\r\n", "502 holdfast got no answer from api.example.org: its response is not HTTP, or is too large"},
		{"its head is too large", "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "502 holdfast got no answer"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := newShop(t, http.NotFoundHandler(), shopConfig{})
			s.server(apiName+":80", func(c *net.TCPConn) {
				http.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, r.answer)
			})
			resp, got := s.ask("POST", "/", nil)
			if got = fmt.Sprintf("%d %s", resp.StatusCode, got); !strings.HasPrefix(got, r.want) || strings.Contains(got, "secret") {
				t.Errorf("answered %q", got)
			}
		})
	}
}

func TestUpstreamCertificate(t *testing.T) {
	for name, o := range map[string]*origin{
		"of an authority that is not trusted": newOrigin(t, http.NotFoundHandler(), apiName),
		"of another name":                     newOrigin(t, http.NotFoundHandler(), "evil.example.org"),
	} {
		for _, old := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := newShop(t, http.NotFoundHandler(), shopConfig{secure: true, old: old, config: func(c *Config) {
					if strings.Contains(name, "another") {
						c.Roots = rootsOf(t, o.pem)
					}
				}})
				s.out.mu.Lock()
				s.out.at[apiName+":443"] = o.Listener.Addr().String()
				s.out.mu.Unlock()
				resp, got := s.ask("GET", "/", nil)
				if resp.StatusCode != 502 || !strings.Contains(got, "its certificate is not valid") || strings.Count(got, "\n") != 1 {
					t.Errorf("a certificate %s is answered %d %q", name, resp.StatusCode, got)
				}
				if r := s.refused(apiName); !strings.Contains(r.Reason, "certificate") {
					t.Errorf("it is recorded as %+v", r)
				}
			})
		}
	}
}

func TestLearning(t *testing.T) {
	for _, learn := range []Learn{Observe, Through} {
		s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "upstream") }),
			shopConfig{secure: true, config: func(c *Config) { c.Learn = learn }})
		if err := s.Reload(nil); err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("PUT", "https://"+apiName+"/a/b?c", nil)
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := map[Learn]string{Observe: "holdfast refused", Through: "upstream"}[learn]; !strings.HasPrefix(string(b), want) {
			t.Errorf("learning %v: answered %d %q", learn, resp.StatusCode, b)
		}
		found := false
		for _, o := range s.Observations() {
			found = found || o == Observation{Name: apiName, Port: 443, Kind: policy.TLS, Method: "PUT", Path: "/a/b", Count: 1}
		}
		if !found {
			t.Errorf("learning %v: observed %v", learn, s.Observations())
		}
	}
}

func TestUnreachable(t *testing.T) {
	everyWay(t, nil, func(t *testing.T, s *shop, _ bool) {
		s.out.mu.Lock()
		clear(s.out.at)
		s.out.mu.Unlock()
		resp, got := s.ask("GET", "/", nil)
		if resp.StatusCode != 502 || !strings.HasPrefix(got, "holdfast got no answer from "+apiName+": nothing is there") {
			t.Errorf("answered %d %q", resp.StatusCode, got)
		}
		if len(s.Refusals()) > 0 {
			t.Errorf("recorded as refused: %v", s.Refusals())
		}
	})
}

// TestReloadOnAnOpenConnection: each request is decided by the rules of its time.
func TestReloadOnAnOpenConnection(t *testing.T) {
	everyWay(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, s *shop, _ bool) {
		if resp, got := s.ask("PUT", "/", nil); resp.StatusCode != 200 {
			t.Fatalf("answered %d %q", resp.StatusCode, got)
		}
		rule := s.Engine.rules.Load().exact[apiName][0].HostRule
		rule.Methods = []string{"GET"}
		if err := s.Reload([]policy.HostRule{rule}); err != nil {
			t.Fatal(err)
		}
		if resp, _ := s.ask("PUT", "/", nil); resp.StatusCode != 403 {
			t.Errorf("what is no longer allowed is answered %d", resp.StatusCode)
		}
		if resp, _ := s.ask("GET", "/", nil); resp.StatusCode != 200 {
			t.Errorf("what is still allowed is answered %d", resp.StatusCode)
		}
	})
}

// TestUnrecordedIsNotGoneOn: an event that is lost ends the connection.
func TestUnrecordedIsNotGoneOn(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), shopConfig{})
	if resp, got := s.ask("GET", "/", nil); resp.StatusCode != 200 {
		t.Fatalf("answered %d %q", resp.StatusCode, got)
	}
	until(t, "the event", func() bool { return s.event("net.request", "status", "200") })
	s.sink.mu.Lock()
	s.sink.err = io.ErrShortWrite
	s.sink.mu.Unlock()
	if resp, err := s.client.Get(s.url("/")); err == nil {
		resp.Body.Close()
		if resp, err = s.client.Get(s.url("/")); err == nil {
			t.Errorf("after an event was lost a request is answered %d", resp.StatusCode)
			resp.Body.Close()
		}
	}
}

// TestNothingLeavesAfterTheRecordFailed: one lost event of any writer is enough, also
// for the requests of a connection that is open.
func TestNothingLeavesAfterTheRecordFailed(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			var arrived atomic.Int64
			sink := &failed{}
			w.config = func(c *Config) { c.Sink = sink }
			s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }), w.shopConfig)
			if resp, got := s.ask("GET", "/", nil); resp.StatusCode != 200 {
				t.Fatalf("answered %d %q", resp.StatusCode, got)
			}
			sink.failed.Store(true)
			for range 20 {
				if resp, err := s.client.Get(s.url("/")); err == nil {
					if resp.Body.Close(); resp.StatusCode == 200 {
						t.Error("it is answered")
					}
				}
			}
			if n := arrived.Load(); n != 1 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

// TestOneRequestAtMostLeavesUnrecorded makes many requests at once when the record
// fails and no goroutine has noticed yet.
func TestOneRequestAtMostLeavesUnrecorded(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			var arrived atomic.Int64
			s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/late" {
					arrived.Add(1)
					time.Sleep(100 * time.Millisecond) // its event comes with its answer
				}
			}), w.shopConfig)
			if resp, got := s.ask("GET", "/", nil); resp.StatusCode != 200 {
				t.Fatalf("answered %d %q", resp.StatusCode, got)
			}
			until(t, "the event", func() bool { return s.event("net.request", "status", "200") })
			s.sink.mu.Lock()
			s.sink.err = io.ErrShortWrite
			s.sink.mu.Unlock()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if resp, err := s.client.Get(s.url("/late")); err == nil {
						resp.Body.Close()
					}
				})
			}
			all.Wait()
			if n := arrived.Load(); n > 1 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

// failed is a sink that keeps nothing and says when another event was lost.
type failed struct{ failed atomic.Bool }

func (f *failed) Emit(event.Event) error { return nil }
func (f *failed) Failed() bool           { return f.failed.Load() }

// TestInterimAnswersAreCounted: a server may send some before its answer, and not
// any number.
func TestInterimAnswersAreCounted(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, _ := strconv.Atoi(r.URL.RawQuery)
				for range n {
					w.WriteHeader(http.StatusProcessing)
				}
			}), w.shopConfig)
			if resp, _ := s.ask("GET", "/?20", nil); resp.StatusCode != 200 {
				t.Errorf("after 20 it is answered %s", resp.Status)
			}
			if resp, _ := s.ask("GET", "/?2000", nil); resp.StatusCode != http.StatusBadGateway {
				t.Errorf("after 2000 it is answered %s", resp.Status)
			}
		})
	}
}

// TestCloseWaits: nothing of a request continues after the engine is closed.
func TestCloseWaits(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			testenv.NoGoroutines(t)
			arrived, release := make(chan struct{}), make(chan struct{})
			s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-release
			}), w.shopConfig)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := s.client.Get(s.url("/")); err == nil {
					resp.Body.Close()
				}
			}()
			eventually(t, "the request arrives", patience, arrived)
			s.Close()
			if open := s.Stats().Open; open != 0 {
				t.Errorf("%d connections are open", open)
			}
			eventually(t, "the client learns of it", patience, done)
			close(release)
		})
	}
}

// TestClientThatSaidAll ends its half of the connection, and still gets what it
// asked for, also when that takes a while.
func TestClientThatSaidAll(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond) // longer than the end of the client's half takes to arrive
		io.Copy(w, r.Body)
		fmt.Fprint(w, "answer to ", r.RequestURI)
	}), shopConfig{})
	c := connect(t, s.at)
	send(t, c, "GET /one HTTP/1.1\r\nHost: "+apiName+"\r\n\r\nGET /two HTTP/1.1\r\nHost: "+apiName+"\r\n\r\n")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(got), "answer to /one") || !strings.HasSuffix(string(got), "answer to /two") {
		t.Errorf("read %q (%v)", got, err)
	}
	until(t, "the connection ends", func() bool { return s.Stats().Open == 0 })
}
