// Package rules judges attempts by rules of consent: what a human must be asked
// about, and what is denied without asking. It has the shipped sets, and reads
// what is executed as each of the programs that it may be. It knows neither the
// policy that has the rules, nor who is asked.
package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// Rule is a rule of consent: a human is asked about what it is about, or it is
// denied. A shipped set is one rule; the rule of a Judgement is the one of the
// set that decided.
type Rule struct {
	Set      string // name of a shipped set; "" for none
	Name     string // of a Judgement: which rule of Set; "" without Set
	When     string // condition on the attempt, see expr.CompileAttempt; with Set both must hold; "" for none
	Reason   string // for the human, or for the refused program; "" for a text of ours
	Attended bool   // of ask: asks only while somebody is there to answer; else the boundary decides as it would without the rule
	Origin   string // where it is written, as file:line

	condition *expr.Program // of When, if it is already compiled
}

// Compile checks the condition of a rule, and keeps it compiled.
func (r *Rule) Compile() (err error) {
	r.condition, err = expr.CompileAttempt(r.When)
	return err
}

// String is a rule in one line.
func (r Rule) String() string {
	var parts []string
	for _, one := range []string{r.Set, r.Name} {
		if one != "" {
			parts = append(parts, one)
		}
	}
	text := strings.Join(parts, "/")
	if r.When != "" {
		text = strings.TrimSpace(text + " when " + strings.Join(strings.Fields(r.When), " "))
	}
	if r.Attended {
		text += ", while attended"
	}
	return text
}

// Judgement is what the rules say of an attempt.
type Judgement struct {
	Verdict event.Verdict // Allowed: no rule is about it; Denied; Unknown: a human has to decide
	Rule    Rule          // that decides or asks; the zero value if Verdict is Allowed
	Reason  string        // never empty where a rule is about it
}

// Host is what rules need to know of the host and of the view.
type Host struct {
	// Find finds a program by its name as a command inside would: its file,
	// with every link followed, and the SHA-256 of its content in hex. Both are
	// "" if there is none. nil: programs are recognised only by their names.
	Find func(name string) (path, sha256 string)

	// Fixed reports whether nothing inside can put a file at a path. nil: SystemFile.
	Fixed func(path string) bool

	// Outside reports whether a path is not in the workspace. nil: each path is.
	Outside func(path string) bool
}

// Matcher judges attempts by the rules of a run. Nothing is read, compiled or hashed
// before an attempt needs it. It can be used by several goroutines at once.
type Matcher struct {
	indexes map[event.Kind]*ruleIndex
	files   *files
	out     func(path string) bool // Host.Outside
}

// New makes rules ready. An error is a condition that cannot be compiled, or an
// unknown set.
func New(ask, deny []Rule, h Host) (*Matcher, error) {
	m := &Matcher{indexes: map[event.Kind]*ruleIndex{}, out: h.Outside}
	var names []string
	order := 0 // among equals the first of a policy decides
	for i, one := range slices.Concat(deny, ask) {
		all, err := one.expand()
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			names = append(names, r.programs...)
			m.add(r, i < len(deny), order)
			order++
		}
	}
	m.files = newFiles(names, h)
	return m, nil
}

// Wants reports whether any rule can be about a kind of attempts. If none can,
// callers need not ask.
func (m *Matcher) Wants(k event.Kind) bool { return m.indexes[k] != nil }

// Asks reports whether any rule can ask a human about a kind of attempts, while
// somebody is there to answer, or not.
func (m *Matcher) Asks(k event.Kind, attended bool) bool {
	return m.Wants(k) && slices.ContainsFunc(m.indexes[k].all, func(r *prepared) bool {
		return !r.denies() && (attended || !r.rule.Attended)
	})
}

// Firm reports whether any rule about a kind of attempts does not depend on
// whether somebody is there to answer.
func (m *Matcher) Firm(k event.Kind) bool {
	return m.Wants(k) && slices.ContainsFunc(m.indexes[k].all, func(r *prepared) bool { return !r.rule.Attended })
}

// Judge judges an attempt by the rules. A rule that denies wins over one that
// asks, and one that always asks over one that asks while somebody is there. A
// condition that cannot be evaluated counts as true.
func (m *Matcher) Judge(a event.Attempt) Judgement {
	l := m.indexes[a.Kind]
	if l == nil {
		return Judgement{Verdict: event.Allowed}
	}
	f := attemptFields{attempt: &a, outside: a.Kind == event.KindFile && m.outside(a)}
	var best *prepared
	var failed bool
	over := attemptedPool.Get().(*expr.Attempted)
	defer attemptedPool.Put(over)
	try := func(one *prepared) {
		if best != nil && one.rank >= best.rank {
			return
		}
		if matches, err := one.matches(over); matches || err != nil {
			best, failed = one, err != nil
		}
	}
	over.Reset(f)
	for _, one := range l.once {
		try(one)
	}
	for _, r := range m.readings(a) {
		f.reading = r
		over.Reset(f)
		l.candidates(r, a.Cut, try)
	}
	if best == nil {
		return Judgement{Verdict: event.Allowed}
	}
	return best.judgement(failed)
}

var attemptedPool = sync.Pool{New: func() any { return new(expr.Attempted) }}

// outside reports whether a file is not in the workspace, by either of its
// names.
func (m *Matcher) outside(a event.Attempt) bool {
	return m.out == nil || m.out(a.Path) || a.To != "" && m.out(a.To)
}

// prepared is a rule that is ready: of a shipped set, or of a user's condition.
type prepared struct {
	rule     Rule
	rank     int // the lowest decides: deny, ask, ask while attended; then the order of the policy
	about    []event.Kind
	programs []string // only these; nil for any
	verbs    []string // likewise
	plain    bool     // it is the same for every reading
	when     []func() (*expr.Program, error)
}

func (r *prepared) matches(a *expr.Attempted) (bool, error) {
	for _, compiled := range r.when {
		p, err := compiled()
		if err != nil {
			return false, err
		}
		matches, err := p.Matches(a)
		if !matches || err != nil {
			return matches, err
		}
	}
	return true, nil
}

func (r *prepared) judgement(failed bool) Judgement {
	j := Judgement{Verdict: event.Unknown, Rule: r.rule, Reason: r.rule.Reason}
	if r.denies() {
		j.Verdict = event.Denied
	}
	switch {
	case failed:
		j.Reason = "the condition of a rule cannot be evaluated here"
	case j.Reason == "" && r.denies():
		j.Reason = "the policy denies it"
	case j.Reason == "":
		j.Reason = "the policy asks for consent"
	}
	return j
}

// The ranks of rules begin here.
const (
	rankDeny = iota << 20
	rankAsk
	rankAttended
)

func (r *prepared) denies() bool { return r.rank < rankAsk }

// expand makes one rule of a plan ready.
func (r Rule) expand() ([]*prepared, error) {
	var when []func() (*expr.Program, error)
	var about []event.Kind
	var programs, verbs []string
	plain := true
	if r.When != "" {
		p := r.condition
		if p == nil {
			var err error
			if p, err = expr.CompileAttempt(r.When); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Origin, err)
			}
		}
		about = p.About()
		programs, _ = p.Only("program")
		verbs, _ = p.Only("verb")
		plain = !p.Names("program", "verb", "args")
		when = append(when, func() (*expr.Program, error) { return p, nil })
	}
	if r.Set == "" {
		return []*prepared{{rule: r, about: about, programs: programs, verbs: verbs, plain: plain, when: when}}, nil
	}
	set, ok := setNamed(r.Set)
	if !ok {
		return nil, fmt.Errorf("%s: there is no rule set %q", r.Origin, r.Set)
	}
	var out []*prepared
	for _, one := range set.Rules {
		rule := r
		rule.Name = one.ID
		if rule.Reason == "" {
			rule.Reason = one.Reason
		}
		compiled := sync.OnceValues(func() (*expr.Program, error) { return expr.CompileAttempt(one.When) })
		out = append(out, &prepared{rule: rule, about: one.About, programs: one.Programs, verbs: one.Verbs,
			when: append([]func() (*expr.Program, error){compiled}, when...)})
	}
	return out, nil
}

// Possible lists the rules that an execution can meet with some command line,
// each once, in the order in which they decide.
func (m *Matcher) Possible(a event.Attempt) (out []string) {
	l := m.indexes[event.KindExec]
	if l == nil {
		return nil
	}
	var met []*prepared
	for _, r := range m.readings(a) {
		over := new(expr.Attempted)
		over.Reset(attemptFields{attempt: &a, reading: r})
		for _, one := range l.all {
			if matches, err := one.matches(over); (matches || err != nil) && !slices.Contains(met, one) {
				met = append(met, one)
			}
		}
	}
	slices.SortFunc(met, func(a, b *prepared) int { return a.rank - b.rank })
	for _, one := range met {
		name := one.rule.Origin
		if one.rule.Set != "" {
			name = one.rule.Set + " (" + name + ")"
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
