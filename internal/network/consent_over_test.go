package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// allowUntil allows for as long as the channel is open.
func (q *question) allowUntil(over <-chan struct{}) {
	q.input <- event.Ruling{Verdict: event.Allowed, Granted: true, Over: over}
}

// TestAConnectionEndsWithItsApproval opens connections on an approval that is then
// taken back: to a host that no rule names, and to one that a rule allows as well.
func TestAConnectionEndsWithItsApproval(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, way := range waysIn {
			if way.port != 22 {
				continue // ends without help
			}
			d := newTestGate(nil)
			var rules []policy.HostRule
			if known {
				rules = append(rules, permits(newHost, 22, policy.TCP))
			}
			w := start(t, withGate(d), rules...)
			w.server(newHost+":22", echo)
			door := way.door(w)
			over := make(chan struct{})
			open := func() (net.Conn, *question) { // one at a time: either may ask first
				c := connect(t, door)
				if _, err := io.WriteString(c, way.input); err != nil {
					t.Fatal(err)
				}
				return c, d.next(t)
			}
			lasts, q := open()
			q.allow()
			ends, q := open()
			q.allowUntil(over)
			expect(t, lasts, way.get)
			expect(t, ends, way.get)
			close(over)
			if n, err := ends.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, known %v: it goes on: read %d bytes, %v", way.name, known, n, err)
			}
			send(t, lasts, "y")
			expect(t, lasts, "y")
			if r := w.refused(newHost); !strings.Contains(r.Reason, "approval") || r.Rule != "policy.yaml:9" || r.Count != 1 {
				t.Errorf("%s, known %v: refused as %+v", way.name, known, r)
			}
			var recorded []event.Event
			for _, ev := range w.sink.all() {
				if ev.Action == event.NetConnect && ev.Verdict == event.Denied && ev.Layer == event.LayerConsent {
					recorded = append(recorded, ev)
				}
			}
			if len(recorded) != 1 {
				t.Errorf("%s, known %v: recorded as %+v", way.name, known, recorded)
			}
		}
	}
}

// TestARequestEndsWithItsApproval takes the approval of a request back while its
// answer comes, and after it has come.
func TestARequestEndsWithItsApproval(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			d := newTestGate(pathsUnder("/"))
			way.config = withGate(d)
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "begun\n")
				if r.URL.Path == "/long" {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}
			}), way.shopConfig)
			get := func(path string, over <-chan struct{}) *http.Response {
				go func() { d.next(t).allowUntil(over) }()
				resp, err := s.client.Get(s.url(path))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { resp.Body.Close() })
				return resp
			}
			over := make(chan struct{})
			short := get("/short", over)
			if got, err := io.ReadAll(short.Body); err != nil || string(got) != "begun\n" {
				t.Fatalf("%q, %v", got, err)
			}
			long := bufio.NewReader(get("/long", over).Body)
			if line, err := long.ReadString('\n'); line != "begun\n" {
				t.Fatal(line, err)
			}
			close(over)
			if got, err := io.ReadAll(long); err == nil {
				t.Errorf("it ended as if it were whole: %q", got)
			}
			if r := s.refused(apiName); !strings.Contains(r.Reason, "under way") || r.Count != 1 {
				t.Errorf("it is refused as %+v", r)
			}
			if n := len(s.Refusals()); n != 1 {
				t.Errorf("%d things are refused", n)
			}
		})
	}
}

// overAlready is an approval that does not hold any more when it is given.
func overAlready() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

// untilEnded allows everything of a kind until the channel is closed.
type untilEnded struct {
	kind event.Kind
	over <-chan struct{}
}

func (u untilEnded) Judge(a event.Attempt) event.Ruling {
	if a.Kind != u.kind {
		return event.Ruling{Verdict: event.Allowed}
	}
	return event.Ruling{Verdict: event.Allowed, Granted: true, Over: u.over}
}

// TestNothingLeavesOnAnApprovalThatEnded: what ends a request runs beside it, and
// must not be in time for that.
func TestNothingLeavesOnAnApprovalThatEnded(t *testing.T) {
	for _, kind := range []event.Kind{event.KindRequest, event.KindConnect} {
		for _, way := range ways {
			t.Run(string(kind)+" "+way.name, func(t *testing.T) {
				way.config = func(c *Config) { c.Gate = untilEnded{kind, overAlready()} }
				s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }), way.shopConfig)
				for range 50 {
					if resp, err := s.client.Get(s.url("/")); err == nil {
						resp.Body.Close()
					}
				}
				until(t, "the refusal", func() bool {
					return s.event("net.connect", "reason", errLapsed.Error()) || s.event("net.request", "reason", errLapsed.Error())
				})
			})
		}
	}
}

// TestNothingLeavesWhenTheApprovalEndsMeanwhile has the approval end while the
// connection to the server is made.
func TestNothingLeavesWhenTheApprovalEndsMeanwhile(t *testing.T) {
	for _, kind := range []event.Kind{event.KindRequest, event.KindConnect} {
		for _, way := range ways {
			t.Run(string(kind)+" "+way.name, func(t *testing.T) {
				over := make(chan struct{})
				way.config = func(c *Config) { c.Gate = untilEnded{kind, over} }
				s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }), way.shopConfig)
				to := Destination{Name: apiName, Port: s.Engine.rules.Load().exact[apiName][0].Ports[0]}.String()
				at := s.out.at[to]
				s.out.do[to] = func() (net.Conn, error) {
					c, err := net.Dial("tcp", at)
					close(over)
					return c, err
				}
				if resp, err := s.client.Get(s.url("/")); err == nil {
					if resp.Body.Close(); resp.StatusCode != http.StatusForbidden {
						t.Errorf("it is answered %s", resp.Status)
					}
				}
				if r := s.refused(apiName); !strings.Contains(r.Reason, "approval") {
					t.Errorf("it is refused as %+v", r)
				}
			})
		}
	}
}

// TestAStreamEndsWithTheApprovalOfItsSecret takes back the approval of a credential
// while the answer to a request that carried it comes.
func TestAStreamEndsWithTheApprovalOfItsSecret(t *testing.T) {
	for _, way := range ways[1:] {
		t.Run(way.name, func(t *testing.T) {
			v := &askedVault{vault: newVault(nil), d: newTestGate(nil)}
			way.rule, way.credentials = bindForge, v
			way.config = func(c *Config) {
				c.Gate, c.Wants = v.d, func(k event.Kind) bool { return k == event.KindCredential }
			}
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "begun\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}), way.shopConfig)
			over := make(chan struct{})
			go func() { v.d.next(t).allowUntil(over) }()
			r, _ := http.NewRequest("GET", s.url("/"), nil)
			r.Header.Set("Authorization", "Bearer "+testPlaceholder)
			resp, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			if line, err := in.ReadString('\n'); line != "begun\n" {
				t.Fatal(line, err)
			}
			close(over)
			if got, err := io.ReadAll(in); err == nil {
				t.Errorf("it ended as if it were whole: %q", got)
			}
			if r := s.refused(apiName); !strings.Contains(r.Reason, "under way") || r.Count != 1 {
				t.Errorf("it is refused as %+v", r)
			}
		})
	}
}

// TestAHostPortEndsWithItsApproval: a service of the host is a connection as others
// are.
func TestAHostPortEndsWithItsApproval(t *testing.T) {
	service, door := listenLocal(t), listenLocal(t)
	go func() {
		for {
			c, err := service.AcceptTCP()
			if err != nil {
				return
			}
			go func() { defer c.Close(); echo(c) }()
		}
	}()
	over := make(chan struct{})
	port, at := service.Addr().(*net.TCPAddr).Port, door.Addr().String()
	w := start(t, func(c *Config) {
		c.Doors.HostPorts = map[int]*os.File{port: fileOf(t, door)}
		c.Gate = untilEnded{event.KindConnect, over}
	})
	c := connect(t, at)
	send(t, c, "ping")
	expect(t, c, "ping")
	close(over)
	if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it goes on: read %d bytes, %v", n, err)
	}
	if r := w.refused("localhost"); !strings.Contains(r.Reason, "the open connection") {
		t.Errorf("it is refused as %+v", r)
	}
	late, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return // it may be ended before the handshake is seen to be through
	}
	defer late.Close()
	late.SetDeadline(time.Now().Add(patience))
	if n, err := late.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("another is opened: read %d bytes, %v", n, err)
	}
}

// TestWhatNoRuleIsAbout: whose a connection is is looked for only where a rule could
// be about it, and what no approval allowed is moved by the kernel.
func TestWhatNoRuleIsAbout(t *testing.T) {
	for _, concerned := range []bool{false, true} {
		t.Run(strconv.FormatBool(concerned), func(t *testing.T) {
			service, door := listenLocal(t), listenLocal(t)
			go func() {
				if c, err := service.AcceptTCP(); err == nil {
					defer c.Close()
					pour(c, 1, 64<<20)
				}
			}()
			port := service.Addr().(*net.TCPAddr).Port
			d := newTestGate(func(event.Attempt) event.Verdict { return event.Allowed })
			found := make(chan [2]netip.AddrPort, 1)
			w := start(t, withGate(d, func(c *Config) {
				c.Doors.HostPorts = map[int]*os.File{port: fileOf(t, door)}
				c.MayConcern = func(a event.Attempt) bool { return concerned && a.Cut && a.Host == "localhost" }
				c.Client = func(local, remote netip.AddrPort) event.Process {
					found <- [2]netip.AddrPort{local, remote}
					return event.Process{PID: 7}
				}
			}))
			c := connect(t, door.Addr().String())
			if _, err := io.CopyN(io.Discard, c, 4*spliceAfter); err != nil {
				t.Fatal(err)
			}
			until(t, "it is spliced", func() bool { return w.relayPool.pipes.Load() > 0 })
			local, _ := addressOf(c.LocalAddr())
			remote, _ := addressOf(c.RemoteAddr())
			select {
			case ends := <-found:
				if !concerned || ends != [2]netip.AddrPort{local, remote} {
					t.Errorf("concerned %v: the process at %v was looked for, want %v and %v", concerned, ends, local, remote)
				}
			default:
				if concerned {
					t.Error("the process was not looked for")
				}
			}
		})
	}
}
