//go:build linux

package supervise

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// human is a gate: rules by a word of the arguments or a path, and the person who
// answers.
type human struct {
	deny, ask, granted func(event.Attempt) bool
	answer             func(event.Attempt) event.Ruling // of what is asked; nil never answers

	mu     sync.Mutex
	asked  []event.Attempt
	seen   []event.Attempt
	gaveUp int
}

func (h *human) Judge(a event.Attempt) event.Ruling {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, a)
	is := func(f func(event.Attempt) bool) bool { return f != nil && f(a) }
	switch {
	case is(h.deny):
		return event.Ruling{Verdict: event.Denied, Rule: "policy.yaml:1", Reason: "not here"}
	case is(h.granted):
		return event.Ruling{Verdict: event.Allowed, Granted: true, Rule: "policy.yaml:2"}
	case is(h.ask):
		h.asked = append(h.asked, a)
		return event.Ruling{Rule: "policy.yaml:2", Wait: func(ctx context.Context) event.Ruling {
			if h.answer == nil || ctx.Err() != nil {
				<-ctx.Done()
				h.mu.Lock()
				defer h.mu.Unlock()
				h.gaveUp++
				return event.Ruling{Verdict: event.Denied, Reason: "nobody answered"}
			}
			return h.answer(a)
		}}
	}
	return event.Ruling{Verdict: event.Allowed}
}

func (h *human) requests() []event.Attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// waitFor waits until so many were asked for.
func (h *human) waitFor(t testing.TB, n int) []event.Attempt {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if a := h.requests(); len(a) >= n {
			return a
		}
	}
	t.Fatalf("%d requests, want %d", len(h.requests()), n)
	return nil
}

// about says that a rule could be about programs of these names.
func (h *human) about(names ...string) func(event.Attempt) bool {
	return func(a event.Attempt) bool {
		return len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(a.Process.Executable, "/"+n) })
	}
}

func gate(h *human, kinds ...event.Kind) option { return gateOf(h, nil, kinds...) }

func gateOf(g event.Gate, about func(event.Attempt) bool, kinds ...event.Kind) option {
	return func(_ *run, c *Config, _ *exec.Cmd) {
		c.Gate, c.About, c.Wants = g, about, func(k event.Kind) bool { return slices.Contains(kinds, k) }
	}
}

func hasArg(word string) func(event.Attempt) bool {
	return func(a event.Attempt) bool { return a.Kind == event.KindExec && slices.Contains(a.Process.Argv, word) }
}

func hasVariable(v string) func(event.Attempt) bool {
	return func(a event.Attempt) bool { return slices.Contains(a.Environment, v) }
}

func yes(event.Attempt) event.Ruling { return event.Ruling{Verdict: event.Allowed, Granted: true} }
func no(event.Attempt) event.Ruling {
	return event.Ruling{Verdict: event.Denied, Reason: "the human said no"}
}

func later(d time.Duration, f func(event.Attempt) event.Ruling) func(event.Attempt) event.Ruling {
	return func(a event.Attempt) event.Ruling { time.Sleep(d); return f(a) }
}

func TestExecutionsWaitForAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		human  *human
		status int
		out    string
		layer  string
	}{
		{"allowed", &human{ask: hasArg("pushed"), answer: later(50*time.Millisecond, yes)}, 0, "pushed\nafter\n", ""},
		{"denied by the human", &human{ask: hasArg("pushed"), answer: no}, 0, "Permission denied", event.LayerConsent},
		{"denied by a rule", &human{deny: hasArg("pushed")}, 0, "Permission denied", event.LayerConsent},
		{"granted before", &human{granted: hasArg("pushed")}, 0, "pushed\nafter\n", ""},
		{"no rule is about it", &human{ask: hasArg("other")}, 0, "pushed\nafter\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, []string{"/bin/sh", "-c", "/bin/echo pushed; echo after"}, gate(tt.human, event.KindExec))
			if status := r.wait(); status != tt.status || !strings.Contains(r.out.String(), tt.out) || !strings.Contains(r.out.String(), "after") {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			e := r.about(event.ProcExec, "/bin/echo")
			want := event.Allowed
			if tt.layer != "" {
				want = event.Denied
			}
			if e.Verdict != want || e.Layer != tt.layer || want == event.Denied && (e.Error != "EACCES" || e.Detail["reason"] == "") {
				t.Errorf("%+v", e)
			}
			for _, e := range r.eventsOf(event.ProcExec) {
				if e.Detail["instead_of"] != "" || e.Detail["unknown"] != "" {
					t.Errorf("%+v", e)
				}
			}
			for _, a := range tt.human.requests() {
				if a.Process.Executable != real(t, "/bin/echo") || a.Process.SHA256 != sumOf(t, "/bin/echo") || a.ParentExecutable != real(t, "/bin/sh") ||
					a.Path != "/bin/echo" || a.Process.Cwd == "" || a.Process.PID == 0 {
					t.Errorf("asked about %+v", a)
				}
			}
		})
	}
}

// TestProgramsBehaveTheSameWhenLookedAt has every execution looked at once more
// when it begins.
func TestProgramsBehaveTheSameWhenLookedAt(t *testing.T) {
	path := behaviour(t)
	for _, what := range []string{"vfork", "spawn", "threads", "short-lived", "thread-executes", "killed", "stopped", "race", "edge", "orphan", "chain"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := start(t, []string{"/bin/sh", "-c", path + " " + what + "; exit $?"}, in(makeTree(t)), gateOf(quiet{}, nil, event.KindExec, event.KindFile))
			if status := r.wait(); status != 0 {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			for _, e := range r.eventsOf(event.ProcExec) {
				if e.Detail["instead_of"] != "" {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// TestWhatIsLookedAtIsWhatRuns executes in all the ways that there are: what the
// kernel makes of each is what was judged, and nothing is taken for something else.
func TestWhatIsLookedAtIsWhatRuns(t *testing.T) {
	dir := makeTree(t)
	write := func(name, text string) string {
		if err := programs.Write(dir+"/"+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	inner := write("inner", "#! /bin/sh  -e \necho inner \"$@\"\n")
	write("outer", "#!"+inner+" with two words\n")
	write("env", "#!/usr/bin/env -S sh -e\necho env \"$@\"\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, script, out string }{
		{"a script of a script", "./outer x y", "inner with two words ./outer x y\n"},
		{"by PATH", "PATH=" + dir + ":$PATH; inner x", "inner x\n"},
		{"env", "./env x", "env x\n"},
		{"a link", "ln -s inner linked; ./linked x", "inner x\n"},
		{"many arguments", "/bin/echo $(seq 20000) | wc -w", "20000\n"},
		{"a long argument", "/bin/echo " + strings.Repeat("x", 100_000) + " | wc -c", "100001\n"},
		{"many arguments of a script", "./inner $(seq 20000) | wc -w", "20001\n"},
		{"nothing", "/bin/echo ''", "\n"},
		{"odd bytes", "/bin/echo \"$(printf 'a\\nb\\377')\"", "a\nb\xff\n"},
		{"itself", "/proc/self/exe -c 'echo self'", "self\n"},
		{"a descriptor", "exec 9<./inner; /proc/self/fd/9 x", "inner x\n"},
		{"memory", roleVar + "='exec 0 memory' " + self, "memory\n"},
		{"a descriptor of a script", roleVar + "='exec 0 script' " + self, "inner by descriptor\n"},
		{"from a directory", roleVar + "='exec 0 directory' " + self, "inner by directory\n"},
		{"no arguments", roleVar + "='exec 0 none' " + self, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, []string{"/bin/bash", "-c", tt.script + "\nexit"}, in(dir), gateOf(quiet{}, nil, event.KindExec))
			if status := r.wait(); status != 0 && tt.out != "" || r.out.String() != tt.out {
				t.Errorf("status %d: %q, want %q", status, r.out.String(), tt.out)
			}
			for _, e := range r.eventsOf(event.ProcExec) {
				if e.Detail["instead_of"] != "" {
					t.Errorf("taken for something else: %+v", e)
				}
			}
		})
	}
}

// TestTheEnvironmentIsJudged has the gate see the variables that are not as the
// command of the run was given them, and no others.
func TestTheEnvironmentIsJudged(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"/bin/echo pushed", ""},
		{"cd /; exec /bin/echo pushed", ""},
		{"B=2 A=1 /bin/echo pushed", "A=1 B=2"},
		{"KEPT=other /bin/echo pushed", "KEPT=other"},
		{"unset KEPT; A= /bin/echo pushed", "A= KEPT"},
		{"env -i PWD=/x KEPT=yes KEPT=no /bin/echo pushed", "KEPT=no PATH"},
		{"A=" + strings.Repeat("x", argvKept) + " /bin/echo pushed", "unknown"},
	} {
		h := &human{ask: func(a event.Attempt) bool { return a.Path == "/bin/echo" }, answer: yes}
		alone := func(_ *run, _ *Config, cmd *exec.Cmd) { cmd.Env = []string{"KEPT=yes", "PATH=/usr/bin:/bin"} }
		r := start(t, []string{"/bin/sh", "-c", tt.script}, alone, gateOf(h, h.about("echo"), event.KindExec))
		if status := r.wait(); status != 0 {
			t.Errorf("%s: status %d: %s", tt.script, status, r.out.String())
		}
		asked := h.requests()
		if len(asked) != 1 {
			t.Fatalf("%s: %d were asked about: %s", tt.script, len(asked), r.dump())
		}
		got := strings.Join(asked[0].Environment, " ")
		if asked[0].EnvironmentUnknown {
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%s: the variables are %q, want %q", tt.script, got, tt.want)
		}
	}
}
