package policy

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// GateRule is a rule of consent: a human is asked before what it is about, or
// it is denied. In a Plan a shipped set stands as one rule; the rule of a
// Judgement is the one of the set that decided.
type GateRule struct {
	Set      string // name of a shipped set; "" for none
	Name     string // of a Judgement: which rule of Set; "" without Set
	When     string // condition on the attempt, see expr.CompileAttempt; besides Set both must hold; "" for none
	Reason   string // what the human, or whoever is refused, is told; "" for a text of ours
	Attended bool   // of ask: asks only while somebody is there to answer; else the boundary decides as it would without the rule
	Origin   Origin

	condition *expr.Program // of When, where it is compiled already
}

// Approvals says how long a human has and how he is told.
type Approvals struct {
	Timeout time.Duration // what is not answered by then is denied; 0: nobody is asked, deny at once
	Notify  []Notifier
	Origin  Origin // of Timeout
}

// Notifier is a place besides holdfast approve where a human is told that he is
// asked. Its files are outside of all that is in view.
type Notifier struct {
	Kind      string        // tmux, desktop or webhook
	Address   string        // webhook: URL; else ""
	Secret    string        // webhook: absolute path of a file with the key that requests and answers are signed with
	Headers   string        // webhook: absolute path of a file with a header a line; "" for none
	Authority string        // webhook: absolute path of a PEM file with certificate authorities besides the system's; "" for none
	Timeout   time.Duration // webhook: of one attempt; else 0
	Insecure  bool          // webhook: http to a host that is not loopback was asked for
	Origin    Origin
}

// ProgramsFunc finds a program by its name as a command inside would: the file
// that it is, every link followed, and the SHA-256 of its content in hex. Both
// are "" where there is none.
type ProgramsFunc func(name string) (path, sha256 string)

// Judgement is what the rules of consent say of an attempt.
type Judgement struct {
	Verdict event.Verdict // Allowed: no rule is about it; Denied; Unknown: a human has to say
	Rule    GateRule      // that decides or asks; the zero value where Verdict is Allowed
	Reason  string        // never empty where a rule is about it

	// Unlisted is the file of an execution that Plan.Programs does not have,
	// whether that denies it or not; "" for none.
	Unlisted string
}

// Gates are the rules of consent of a run. Nothing is read, compiled or hashed
// before an attempt needs it. It can be used by several goroutines at once.
type Gates struct {
	workspace string // what is below it is not outside; "" for not known
	lanes     map[event.Kind]*lane
	files     *files
	programs  Programs
}

// NewGates makes the rules ready. Known may be nil: then a program is
// recognised by its names alone. An error is a condition that cannot be
// compiled, or a set that is not known.
func NewGates(ask, deny []GateRule, known ProgramsFunc) (*Gates, error) {
	g := &Gates{lanes: map[event.Kind]*lane{}}
	var names []string
	order := 0 // the first of a policy decides among equals
	for i, one := range slices.Concat(deny, ask) {
		all, err := one.expand()
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			names = append(names, r.programs...)
			g.add(r, i < len(deny), order)
			order++
		}
	}
	g.files = newFiles(names, known)
	return g, nil
}

// Gates makes the plan's rules of consent ready.
func (p Plan) Gates() (*Gates, error) {
	g, err := NewGates(p.Ask, p.Deny, p.program)
	if err != nil {
		return nil, err
	}
	g.workspace, g.programs = p.Workspace, p.Programs
	g.files.fixed = explainer{plan: p}.fixed
	return g, nil
}

// fixed says whether nothing inside can put a file at a path.
func (x explainer) fixed(path string) bool {
	r := x.rule(path)
	return r.Access == Read || r.Path == "" && systemFile(path)
}

// Wants says whether any rule can be about a kind of attempts. Where none can,
// callers need not ask.
func (g *Gates) Wants(k event.Kind) bool {
	return g != nil && (g.lanes[k] != nil || k == event.KindExec && g.programs.Else != "")
}

// Judge says what the rules say of an attempt. A rule that denies wins over one
// that asks, and one that asks in any case over one that asks while somebody is
// there. A condition that cannot be evaluated counts as true. What the list of
// programs refuses nobody is asked about.
func (g *Gates) Judge(a event.Attempt) Judgement {
	if !g.Wants(a.Kind) {
		return Judgement{Verdict: event.Allowed}
	}
	return g.listed(g.ruled(a), a)
}

// ruled is what the rules of consent alone say.
func (g *Gates) ruled(a event.Attempt) Judgement {
	l := g.lanes[a.Kind]
	if l == nil {
		return Judgement{Verdict: event.Allowed}
	}
	f := attemptFields{attempt: &a, outside: a.Kind == event.KindFile && g.outside(a)}
	var best *gate
	var failed bool
	over := overs.Get().(*expr.Attempted)
	defer overs.Put(over)
	try := func(one *gate) {
		if best != nil && one.rank >= best.rank {
			return
		}
		if matches, err := one.matches(over); matches || err != nil {
			best, failed = one, err != nil
		}
	}
	over.Over(f)
	for _, one := range l.once {
		try(one)
	}
	for _, r := range g.readings(a) {
		f.reading = r
		over.Over(f)
		l.candidates(r, a.Cut, try)
	}
	if best == nil {
		return Judgement{Verdict: event.Allowed}
	}
	return best.judgement(failed)
}

var overs = sync.Pool{New: func() any { return new(expr.Attempted) }}

// outside reports whether a file is not in the workspace, by either of its
// names.
func (g *Gates) outside(a event.Attempt) bool {
	return g.workspace == "" || !within(a.Path, g.workspace) || a.To != "" && !within(a.To, g.workspace)
}

// gate is one rule that is ready: of a shipped set, or of a user's condition.
type gate struct {
	rule     GateRule
	rank     int // the least decides: deny, ask, ask while attended; then the order of the policy
	about    []event.Kind
	programs []string // none but these; nil for any
	verbs    []string // likewise
	plain    bool     // it is the same by every reading
	when     []func() (*expr.Program, error)
}

func (r *gate) matches(a *expr.Attempted) (bool, error) {
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

func (r *gate) judgement(failed bool) Judgement {
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

func (r *gate) denies() bool { return r.rank < rankAsk }

// expand makes one rule of a plan ready.
func (r GateRule) expand() ([]*gate, error) {
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
		return []*gate{{rule: r, about: about, programs: programs, verbs: verbs, plain: plain, when: when}}, nil
	}
	set, ok := gateSet(r.Set)
	if !ok {
		return nil, fmt.Errorf("%s: %w", r.Origin, unknownSet(r.Set))
	}
	var out []*gate
	for _, one := range set.Rules {
		rule := r
		rule.Name = one.ID
		if rule.Reason == "" {
			rule.Reason = one.Reason
		}
		compiled := sync.OnceValues(func() (*expr.Program, error) { return expr.CompileAttempt(one.When) })
		out = append(out, &gate{rule: rule, about: one.About, programs: one.Programs, verbs: one.Verbs,
			when: append([]func() (*expr.Program, error){compiled}, when...)})
	}
	return out, nil
}
