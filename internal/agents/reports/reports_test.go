//go:build linux

package reports

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/agents/hooks"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// human is a Gate whose answers, and their delay, the test controls.
type human struct {
	mu     sync.Mutex
	asked  []event.Attempt
	about  func(event.Attempt) bool
	answer func(context.Context, event.Attempt) event.Ruling
}

func (h *human) Judge(a event.Attempt) event.Ruling {
	if !h.about(a) {
		return event.Ruling{Verdict: event.Allowed}
	}
	h.mu.Lock()
	h.asked = append(h.asked, a)
	h.mu.Unlock()
	return event.Ruling{Rule: "policy.yaml:9", Wait: func(ctx context.Context) event.Ruling { return h.answer(ctx, a) }}
}

func (h *human) attempts() []event.Attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Attempt{}, h.asked...)
}

var (
	granted = event.Ruling{Verdict: event.Allowed, Granted: true}
	refused = event.Ruling{Verdict: event.Denied, Reason: "not today"}
)

// nowhere is a record that discards everything.
type nowhere struct{}

func (nowhere) Observe(event.Event) error { return nil }

// channel serves a hook channel without a run around it.
func channel(t *testing.T, h *human) (socket string, r *Server) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "tools")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	r = serve(Config{Rules: gate.Rules{Gate: h}, Sink: nowhere{}, Process: func(pid int) event.Process { return event.Process{PID: pid} }}, l)
	t.Cleanup(r.Close)
	return socket, r
}

func call(tool string, waits int) hooks.Report {
	return hooks.Report{Agent: "claude", Kind: hooks.Call, Tool: tool, Arguments: []byte(`{"command":"ls"}`), Waits: waits}
}

func never(ctx context.Context, _ event.Attempt) event.Ruling {
	<-ctx.Done()
	return event.Ruling{Verdict: event.Denied}
}

func aTool(a event.Attempt) bool { return a.Kind == event.KindTool && a.Tool != "Free" }

func TestACallOfAToolWaits(t *testing.T) {
	testenv.NoGoroutines(t)
	h := &human{about: aTool, answer: func(ctx context.Context, a event.Attempt) event.Ruling {
		time.Sleep(toolTime + 300*time.Millisecond) // longer than the channel waits for anything else
		if a.Tool == "Yes" {
			return granted
		}
		return refused
	}}
	socket, r := channel(t, h)
	var all sync.WaitGroup
	for tool, want := range map[string]string{"Yes": "", "No": "not today"} {
		all.Go(func() {
			told := time.Duration(0)
			a, err := hooks.Send(socket, call(tool, 600), func(d time.Duration) { told = d })
			if err != nil || a.Deny != want || told < 590*time.Second {
				t.Errorf("%s: %+v, %v, told to wait %v", tool, a, err, told)
			}
		})
	}
	a, err := hooks.Send(socket, call("Free", 600), func(time.Duration) { t.Error("it waits") })
	if err != nil || a.Deny != "" {
		t.Errorf("%+v, %v", a, err)
	}
	all.Wait()
	for _, a := range h.attempts() {
		if a.Agent != "claude" || a.Arguments != `{"command":"ls"}` || a.Process.PID != os.Getpid() {
			t.Errorf("asked about %+v", a)
		}
	}
	r.Close()
}

// TestAnAgentThatDoesNotWaitIsToldNoBefore: the denial must come before the agent
// goes on without its hook.
func TestAnAgentThatDoesNotWaitIsToldNoBefore(t *testing.T) {
	socket, _ := channel(t, &human{about: aTool, answer: never})
	const waits = 8 // AnswerTime leaves a quarter of it
	begun := time.Now()
	a, err := hooks.Send(socket, call("Bash", waits), func(time.Duration) {})
	if d := time.Since(begun); err != nil || !strings.Contains(a.Deny, "that claude waits for its hook") || d >= waits*time.Second {
		t.Errorf("%+v, %v, after %v", a, err, d)
	}
}

func TestHooksThatWaitAreBoundedAndKeepNobodyOff(t *testing.T) {
	testenv.NoGoroutines(t)
	socket, r := channel(t, &human{about: aTool, answer: never})
	answers := make(chan string, toolsHeld+1)
	for i := range toolsHeld + 1 {
		held := make(chan struct{})
		go func() {
			a, err := hooks.Send(socket, call(fmt.Sprint("Bash", i), 600), func(time.Duration) { close(held) })
			answers <- fmt.Sprint(a.Deny, err)
		}()
		if i < toolsHeld {
			<-held
		}
	}
	if a := <-answers; !strings.Contains(a, "too much waits") {
		t.Errorf("one too many: %q", a)
	}
	if a, err := hooks.Send(socket, call("Free", 600), nil); err != nil || a.Deny != "" {
		t.Errorf("another call: %+v, %v", a, err)
	}
	// A hook that is killed takes its question back.
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	r.Close()
	for range toolsHeld {
		if a := <-answers; !strings.Contains(a, "the run has ended") {
			t.Errorf("at the end: %q", a)
		}
	}
}

func TestAHookThatIsKilledTakesItsQuestionBack(t *testing.T) {
	testenv.NoGoroutines(t)
	ended := make(chan struct{})
	socket, r := channel(t, &human{about: aTool, answer: func(ctx context.Context, a event.Attempt) event.Ruling {
		defer close(ended)
		return never(ctx, a)
	}})
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(c, `{"agent":"claude","kind":"call","tool":"Bash"}`)
	line := make([]byte, 64)
	if n, err := c.Read(line); err != nil || !strings.HasPrefix(string(line[:n]), `{"wait":7500}`) {
		t.Errorf("%q, %v", line[:n], err)
	}
	c.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it is still asked about")
	}
	r.Close()
}
