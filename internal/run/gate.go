//go:build linux

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// gate joins the policy's rules of consent, which say what needs an answer, and
// the desk, where that waits.
type gate struct {
	rules *policy.Consent
	desk  *desk
	task  *Task
}

// newGate makes the run's desk and what holds things back for it. A policy
// without rules of consent has neither.
func (t *Task) newGate() error {
	d, err := t.newDesk(consent.Config{Chain: t.chain, Writable: t.writable})
	if err != nil || d == nil {
		return err
	}
	rules, err := t.Plan.Consent()
	if err != nil {
		d.close()
		return err
	}
	if err := t.observable(); err != nil {
		d.close()
		return err
	}
	g := &gate{rules: rules, desk: d, task: t}
	t.desk, t.consent = d, consents{gate: g, wants: rules.Wants, asks: g.asks, may: g.about, hosts: g.asksHosts}
	return nil
}

// observable refuses rules that nothing would ask: what is executed and what is
// changed outside is held by what observes system calls. A rule that asks only
// while somebody is there may stand idle.
func (t *Task) observable() error {
	if t.Plan.Record.Level != policy.RecordOff {
		return nil
	}
	if t.Plan.Programs.Else != "" {
		return &UnobservedError{event.KindExec}
	}
	rules, err := t.Plan.Consent()
	if err != nil {
		return err
	}
	for _, k := range []event.Kind{event.KindExec, event.KindFile} {
		if rules.Firm(k) {
			return &UnobservedError{k}
		}
	}
	return nil
}

// UnobservedError says that a rule of consent could not be kept.
type UnobservedError struct{ Kind event.Kind }

func (e *UnobservedError) Error() string {
	return fmt.Sprintf("a rule under ask, deny or programs is about attempts of kind %s, which nothing would see without the record of system calls", e.Kind)
}

// Hint is what to change.
func (e *UnobservedError) Hint() string {
	return "leave out '--without record', or the rules ('holdfast policy show' says where they come from)"
}

// Judge implements event.Gate. A rule that asks only while somebody is there says
// nothing when nobody is: the boundary decides as it would without it.
func (g *gate) Judge(a event.Attempt) event.Ruling {
	j := g.rules.Judge(a)
	r := g.ruling(a, j)
	r.Unlisted = j.Unlisted
	return r
}

func (g *gate) ruling(a event.Attempt, j policy.Judgement) event.Ruling {
	rule := j.Rule.Origin
	switch {
	case j.Verdict == event.Allowed:
		return event.Ruling{Verdict: event.Allowed}
	case j.Verdict == event.Denied:
		return g.desk.Deny(a, rule, j.Reason)
	case j.Rule.Attended && !g.attended():
		return event.Ruling{Verdict: event.Allowed}
	}
	return g.desk.Ask(a, rule, j.Reason)
}

// about says whether a rule could be about an attempt of which not all is known.
// Nobody is asked.
func (g *gate) about(a event.Attempt) bool {
	return g.rules.Judge(a).Verdict != event.Allowed
}

// asks says whether a human could be asked about a kind at this moment.
func (g *gate) asks(k event.Kind) bool {
	if k == event.KindConnect && !g.task.intercepts {
		return false // an address would lead nowhere
	}
	return g.couldAsk(k)
}

// asksHosts says whether a run that is about to begin may ask about hosts that its
// policy does not name, so that connections have to be intercepted for it. A rule
// that asks only while somebody is there counts when somebody is there now: a run
// that nobody watches has no way out, not even one that leads to a refusal.
func (g *gate) asksHosts() bool { return g.couldAsk(event.KindConnect) }

// couldAsk says whether a rule about a kind could ask somebody now. Whether
// anybody is there costs a look at a file, and matters to few rules.
func (g *gate) couldAsk(k event.Kind) bool {
	return g.desk.approvals() != nil && (g.rules.Asks(k, false) || g.rules.Asks(k, true) && g.attended())
}

// attended says whether somebody is there to answer. Whoever follows what runs ask
// finds a new one within a moment, and is there before that.
func (g *gate) attended() bool {
	return g.desk.Attended() || consent.Present(g.task.State)
}

// writable says whether what runs inside may write a file.
func (t *Task) writable(path string) bool {
	private := append(slices.Clone(privateTrees), t.Plan.Identity.Home)
	if slices.ContainsFunc(private, func(tree string) bool { return within(path, tree) }) {
		return true
	}
	return slices.ContainsFunc(workspace.WritableTrees(t.Plan), func(tree string) bool { return within(path, tree) })
}

// chained is how many processes are named of those that led to a request.
const chained = 8

// chain is who led to an attempt, the nearest first, as far as it is inside. What
// a process says of itself is its own word.
func (t *Task) chain(p event.Process) []consent.Asker {
	var out []consent.Asker
	self := os.Getpid()
	for pid := p.PID; pid > 1 && pid != self && len(out) < chained; {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil {
			break
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // without it the program is still named
		asker := consent.Asker{PID: pid, Executable: exe}
		if text := strings.TrimSuffix(string(command[:min(len(command), 4<<10)]), "\x00"); text != "" {
			asker.Argv = strings.Split(text, "\x00")
		}
		out = append(out, asker)
		if pid, err = parentOf(dir); err != nil {
			break
		}
	}
	for range 2 { // the first two inside are ours; who calls himself so is not left out
		if n := len(out); n > 0 && strings.HasPrefix(out[n-1].Executable, "/memfd:holdfast-") {
			out = out[:n-1]
		}
	}
	return out
}

// parentOf is the parent of the process whose directory in /proc is dir.
func parentOf(dir string) (int, error) {
	fields, err := sys.StatFields(dir)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[sys.StatParent])
}
