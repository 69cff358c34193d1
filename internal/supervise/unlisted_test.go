//go:build linux

package supervise

import (
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// lister is a gate that keeps what it is asked about.
type lister struct {
	judge func(event.Attempt) event.Ruling

	mu   sync.Mutex
	seen []event.Attempt
}

func (l *lister) Judge(a event.Attempt) event.Ruling {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, a)
	return l.judge(a)
}

// TestUnlistedProgramsAreNoted has events say which file a list of programs lacks,
// whatever becomes of the execution.
func TestUnlistedProgramsAreNoted(t *testing.T) {
	h := &human{answer: yes}
	h.ask = hasArg("asked")
	l := &lister{judge: func(a event.Attempt) event.Ruling {
		r := h.Judge(a)
		if hasArg("refused")(a) {
			r = event.Ruling{Verdict: event.Denied, Rule: "policy.yaml:4", Reason: "not listed"}
		}
		if !hasArg("listed")(a) && !a.Command {
			r.Unlisted = a.Process.Executable
		}
		return r
	}}
	r := start(t, []string{"/bin/sh", "-c", "/bin/echo reported; /bin/echo refused; /bin/echo asked; /bin/echo listed; exit 0"}, gateOf(l, nil, event.KindExec))
	if status := r.wait(); status != 0 || !strings.Contains(r.out.String(), "reported\n") || !strings.Contains(r.out.String(), "asked\nlisted\n") {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	want := map[string]string{"reported": real(t, "/bin/echo"), "refused": real(t, "/bin/echo"), "asked": real(t, "/bin/echo"), "listed": ""}
	for _, e := range r.eventsOf(event.ProcExec) {
		if len(e.Process.Argv) != 2 {
			continue
		}
		word := e.Process.Argv[1]
		if e.Detail["unlisted"] != want[word] || (e.Verdict == event.Denied) != (word == "refused") {
			t.Errorf("%s: %v, unlisted %q", word, e.Verdict, e.Detail["unlisted"])
		}
		delete(want, word)
	}
	if len(want) != 0 {
		t.Errorf("no events of %v", want)
	}
}

// TestCommandAndScriptsBetween checks that a gate sees the command that begins the run,
// and every script that interprets another.
func TestCommandAndScriptsBetween(t *testing.T) {
	dir := makeTree(t)
	for name, text := range map[string]string{"inner": "#!/bin/sh\nexit 0\n", "middle": "#!" + dir + "/inner\n", "outer": "#!" + dir + "/middle\n"} {
		if err := programs.Write(dir+"/"+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := &lister{judge: func(event.Attempt) event.Ruling { return event.Ruling{Verdict: event.Allowed} }}
	r := start(t, []string{"/bin/sh", "-c", "/bin/sh -c 'exit 0'; ./inner; ./outer; exit 0"}, in(dir), gateOf(l, (&human{}).about("none"), event.KindExec))
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	between := map[string]string{}
	for i, a := range l.seen {
		if a.Command != (i == 0) {
			t.Errorf("execution %d, of %v: the command is %v", i, a.Process.Argv, a.Command)
		}
		between[strings.TrimPrefix(a.Script, dir+"/")] = strings.ReplaceAll(strings.Join(a.Between, " "), dir+"/", "")
	}
	if between["inner"] != "" || between["outer"] != "middle inner" || len(l.seen) != 4 {
		t.Errorf("%d executions, %v", len(l.seen), between)
	}
}
