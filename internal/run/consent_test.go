//go:build linux

package run

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// human is a Gate that a test answers for, as slowly as it likes.
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

// connections are the rules of h, which are about nothing else.
func connections(h *human) gate.Rules {
	return gate.Rules{Gate: h, Wants: func(k event.Kind) bool { return k == event.KindConnect }}
}

func newHosts(a event.Attempt) bool { return a.Kind == event.KindConnect && !a.Known }

// TestAProgramGoesOnAfterAHumansAnswer has programs of others reach a host that no
// rule names, by each way to intercept.
func TestAProgramGoesOnAfterAHumansAnswer(t *testing.T) {
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) {
		for _, rung := range []boundary.Rung{boundary.TProxy, boundary.Redirect, boundary.Ports} {
			t.Run(string(rung), func(t *testing.T) { goesOn(t, n, rung) })
		}
	})
}

func TestRootAProgramGoesOnAfterAHumansAnswer(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) { goesOn(t, n, boundary.Tun) })
}

func goesOn(t *testing.T, n *testenv.Network, rung boundary.Rung) {
	for _, f := range []testenv.Feature{testenv.Curl, testenv.Git, testenv.Node} {
		testenv.Need(t, f, nil)
	}
	repository(t, n, "93.184.215.14:80")
	inner := site(t, n, "10.9.8.7:80")
	other := site(t, n, "93.184.215.15:80")
	task, out := browse(t, fetch+"http://allowed.test/a; git ls-remote http://allowed.test/repo.git; "+
		`node -e "require('http').get('http://allowed.test/a', r => { console.log('node', r.statusCode); r.resume() })"; `+
		fetch+"http://denied.test/b; "+fetch+"http://inner.test/c; "+fetch+"http://93.184.215.15/d; true")
	task.Rungs = []boundary.Rung{rung}
	h := &human{about: newHosts, answer: func(_ context.Context, a event.Attempt) event.Ruling {
		time.Sleep(50 * time.Millisecond)
		if a.Host == "allowed.test" || a.Host == "inner.test" {
			return granted
		}
		return refused
	}}
	task.rules = connections(h)
	task.Plan.Record.Level, task.Log, task.Keys = policy.RecordStandard, filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "keys")
	testenv.NoGoroutines(t)
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := out()
	for _, want := range []string{"a file\n", "refs/heads/main", "node 200", "holdfast refused denied.test:80: not today (policy.yaml:9)\n", "inner.test is at 10.9.8.7, a private address", "holdfast refused 93.184.215.15:80: not today"} {
		if !strings.Contains(got, want) {
			t.Errorf("printed %q, without %q", got, want)
		}
	}
	if inner.n.Load()+other.n.Load() != 0 {
		t.Error("what was not allowed was reached")
	}
	for _, a := range h.attempts() {
		if a.Port != 80 || a.Known || a.Protocol != "http" {
			t.Errorf("asked about %+v", a)
		}
		if name := filepath.Base(a.Process.Executable); a.Process.PID == 0 || name != "curl" && name != "node" && name != "git-remote-http" || len(a.Process.SHA256) != 64 {
			t.Errorf("asked by %+v", a.Process)
		}
	}
}

// repository serves a file and a repository of git.
func repository(t *testing.T, n *testenv.Network, address string) {
	t.Helper()
	dir := t.TempDir()
	for _, line := range []string{
		"printf 'a file\\n' > a", "git init -q -b main work", "git -C work -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first",
		"git clone -q --bare work repo.git", "git -C repo.git update-server-info",
	} {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, text)
		}
	}
	l, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// TestARunEndsAlthoughSomethingWaits has a human who never answers.
func TestARunEndsAlthoughSomethingWaits(t *testing.T) {
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) {
		task, _ := browse(t, fetch+"http://allowed.test/a & "+fetch+"http://denied.test/b & until test -e asked; do sleep 0.02; done; exit 3")
		var waiting atomic.Int32
		h := &human{about: newHosts, answer: func(ctx context.Context, _ event.Attempt) event.Ruling {
			if waiting.Add(1) == 2 {
				if err := os.WriteFile(task.Plan.Workspace+"/asked", nil, 0o644); err != nil {
					t.Error(err)
				}
			}
			<-ctx.Done()
			return event.Ruling{Verdict: event.Denied}
		}}
		task.rules = connections(h)
		testenv.NoGoroutines(t)
		begun := time.Now()
		r, err := task.Run(t.Context())
		if err != nil || r.Exit.Status() != 3 || time.Since(begun) > 30*time.Second {
			t.Errorf("%+v, %v, after %v", r.Exit, err, time.Since(begun))
		}
		if n := len(h.attempts()); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}
