package egress

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/event"
	"holdfast.dev/holdfast/internal/policy"
)

// allowUntil allows for as long as the channel is open.
func (q *question) allowUntil(over <-chan struct{}) {
	q.say <- event.Ruling{Verdict: event.Allowed, Granted: true, Over: over}
}

// TestAConnectionEndsWithItsApproval opens connections on an approval that is then
// taken back: to a host that no rule names, and to one that a rule allows as well.
func TestAConnectionEndsWithItsApproval(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, way := range waysIn {
			if way.port != 22 {
				continue // ends by itself
			}
			d := newDesk(nil)
			var rules []policy.HostRule
			if known {
				rules = append(rules, permits(newHost, 22, policy.TCP))
			}
			w := start(t, withDesk(d), rules...)
			w.server(newHost+":22", echo)
			door := way.door(w)
			over := make(chan struct{})
			open := func() (net.Conn, *question) { // one at a time: either may ask first
				c := connect(t, door)
				if _, err := io.WriteString(c, way.say); err != nil {
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
				if ev.Action == connectAction && ev.Verdict == event.Denied && ev.Layer == event.LayerConsent {
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
			d := newDesk(pathsUnder("/"))
			way.config = withDesk(d)
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
