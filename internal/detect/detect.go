package detect

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// Alert says that a rule was met.
type Alert struct {
	N           uint64        `json:"-"` // which alert of its session it is, from 1, as the record numbers them; 0 where it is not recorded
	Rule        string        `json:"rule"`
	Title       string        `json:"title"`
	Severity    Severity      `json:"severity"`
	Technique   []string      `json:"technique"` // of ATT&CK, or of ATLAS
	Session     string        `json:"session"`
	Time        time.Time     `json:"time"`             // of the last event
	Key         string        `json:"key,omitempty"`    // distinguishes this alert from others of the rule
	Count       int           `json:"count"`            // how many times so far, under this key
	Events      []uint64      `json:"events,omitempty"` // places in the log, at most 64
	Process     event.Process `json:"process,omitzero"` // the last one that asked
	Object      string        `json:"object"`
	Explanation string        `json:"explanation"`
}

// Config is what an Engine needs.
type Config struct {
	Raise func(Alert) // called on the goroutine of Observe, never while a lock is held; may be nil
	Rules []Rule      // the user's own, besides the built-in ones
	Place Place       // of the session; workspace and home in session.start take precedence
	Alone bool        // without the built-in rules

	Baseline *baseline.Checker // finds what is new in the session; nil if nothing is
}

// Engine evaluates rules on events as they come. It can be used by several
// goroutines at once.
type Engine struct {
	raise    func(Alert)
	baseline *baseline.Checker
	rules    []*ruleState
	index    [len(actionNames)][]*matcher
	place    atomic.Pointer[Place]

	mu       sync.Mutex // guards what follows, and the state of rules
	programs table
	arrivals uint64
	broken   error
}

// matcher looks for the events of one rule, or of one step of it.
type matcher struct {
	rule      *ruleState
	step      int // of a temporal correlation; 0 elsewhere
	verdict   event.Verdict
	any       bool // verdict does not matter
	objects   []string
	want      wordSet // at least one of these; none for any
	unless    wordSet
	fresh     uint32 // kinds of things of which one must be new, a bit each; 0 for no such condition
	condition string
	detail    string        // without which the condition does not hold; "" for none
	program   *expr.Program // made at the first candidate
	failed    bool          // it could not be compiled: the error is kept
}

// ruleState is a rule with what has been seen of it.
type ruleState struct {
	*Rule
	feeds  []feed      // the correlations that it is a step of
	waits  bool        // a sequence in groups: later steps count only after a first
	armed  atomic.Bool // there was a first
	raised map[string]*tally
	groups map[string]*group
}

type feed struct {
	to   *ruleState
	step int
}

// Builtin are the rules that every engine has.
func Builtin() []Rule { return slices.Clone(builtin()) }

// New makes an engine with the built-in rules and those of the user.
func New(c Config) (*Engine, error) {
	e := &Engine{raise: c.Raise, baseline: c.Baseline}
	e.place.Store(&c.Place)
	rules := c.Rules
	if !c.Alone {
		rules = append(builtin(), c.Rules...)
	}
	byID := make(map[string]*ruleState, len(rules))
	for i := range rules {
		l := &ruleState{Rule: &rules[i], waits: rules[i].waits()}
		if byID[l.ID] != nil {
			return nil, errors.New("the rule " + l.ID + " is defined twice")
		}
		e.rules, byID[l.ID] = append(e.rules, l), l
	}
	for _, l := range e.rules {
		if err := e.connect(l, byID); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// connect indexes the matchers of a rule, and links it to the rules that it is made of.
func (e *Engine) connect(l *ruleState, byID map[string]*ruleState) error {
	if !l.isTemporal() {
		e.addMatcher(l, 0, l.Match)
		return nil
	}
	for i, s := range l.Correlation.Steps {
		for _, id := range s.Rules {
			from := byID[id]
			if from == nil {
				return errors.New("the rule " + l.ID + " needs the rule " + id + ", which does not exist")
			}
			from.feeds = append(from.feeds, feed{l, i})
		}
		if len(s.Match.Actions) > 0 {
			e.addMatcher(l, i, s.Match)
		}
	}
	return nil
}

func (e *Engine) addMatcher(l *ruleState, step int, m Match) {
	one := &matcher{rule: l, step: step, any: m.Verdict == "", condition: m.Condition, objects: m.Objects, detail: detailOf(m.Condition)}
	if !one.any && one.verdict.UnmarshalText([]byte(m.Verdict)) != nil {
		return // the loader accepted it, so it is a word
	}
	one.want, one.unless = wordSetOf(m.Marks), wordSetOf(m.Unless)
	for _, n := range m.New {
		if k, ok := baseline.KindOf(n); ok {
			one.fresh |= 1 << k
		}
	}
	for _, a := range m.Actions {
		n := actionOf(a)
		e.index[n] = append(e.index[n], one)
	}
}

// wordSet are the words of a rule, by what they describe.
type wordSet struct {
	object, to mark
	by         trait
}

func wordSetOf(words []string) (w wordSet) {
	for _, word := range words {
		if rest, ok := strings.CutPrefix(word, toPrefix); ok {
			w.to |= markOf(rest)
			continue
		}
		w.object |= markOf(word)
		w.by |= traitOf(word)
	}
	return w
}

// intersects reports whether one of the words is among those of an event.
func (w *wordSet) intersects(of wordSet) bool {
	return w.object&of.object != 0 || w.to&of.to != 0 || w.by&of.by != 0
}

// Rules returns the rules that the engine evaluates.
func (e *Engine) Rules() []Rule {
	out := make([]Rule, len(e.rules))
	for i, l := range e.rules {
		out[i] = *l.Rule
	}
	return out
}

// Err returns the first error of evaluating a condition.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

// Observe evaluates the rules on an event, and raises the alerts that follow.
func (e *Engine) Observe(ev event.Event) {
	if ev.Sensor == event.Detect {
		return // the engine's own
	}
	by, counts := e.follow(&ev)
	if !counts {
		return
	}
	var room [4]baseline.Thing
	news := room[:0]
	if e.baseline != nil {
		news = e.baseline.News(&ev, news)
	}
	matchers := e.index[actionOf(ev.Action)]
	if len(matchers) == 0 {
		return
	}
	var is wordSet // all words of the event; those of the program where the event is its execution
	is.object, is.to = e.place.Load().marks(&ev)
	if by != nil {
		is.by = by.is
	}
	var s *candidate
	var alerts []Alert
	for _, m := range matchers {
		if m.fresh != 0 && len(news) == 0 || !m.mayMatch(&ev, is) {
			continue
		}
		if s == nil {
			s = newSeen(ev, e.place.Load(), is.object, is.to, by)
		}
		if m.fresh == 0 {
			alerts = e.candidate(m, s, alerts)
		}
		for _, n := range news {
			if m.fresh>>n.Kind&1 != 0 {
				s.fresh = n
				alerts = e.candidate(m, s, alerts)
				s.fresh = baseline.Thing{}
			}
		}
	}
	if e.raise == nil {
		return
	}
	for _, a := range alerts {
		e.raise(a)
	}
}

// follow learns from an event about programs and the session, and returns the
// program if one is executed. It reports whether the event counts.
func (e *Engine) follow(ev *event.Event) (by *program, counts bool) {
	switch ev.Action {
	case event.SessionStart, event.RecordBegin:
		e.learn(ev)
	case event.ProcExec:
		if ev.Error == "ENOENT" && ev.Verdict == event.Allowed {
			return nil, false // a directory of PATH without the program: nothing is executed
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		by = e.programs.addProgram(e.place.Load(), ev)
	case event.ProcSeen:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.programs.runs(ev.Process.PID, ev.Process.Exec)
	case event.ProcExit:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.programs.removeProcess(ev.Process.PID)
	}
	return by, true
}

// mayMatch reports, without evaluating anything, whether an event can match.
func (m *matcher) mayMatch(e *event.Event, is wordSet) bool {
	switch {
	case !m.any && m.verdict != e.Verdict, m.unless.intersects(is):
		return false
	case m.want != wordSet{} && !m.want.intersects(is):
		return false
	case m.step > 0 && m.rule.waits && !m.rule.armed.Load():
		return false
	case m.detail != "" && e.Detail[m.detail] == "":
		return false
	}
	return m.objects == nil || slices.Contains(m.objects, e.Object)
}

// detailOf is the detail that a condition tests if it tests nothing else, ""
// for any other condition. Most events do not have it, so no condition has to
// be compiled, which takes 2 ms of the first execution.
func detailOf(condition string) string {
	name, asks := strings.CutPrefix(condition, "detail.")
	name, alone := strings.CutSuffix(name, ` != ""`)
	if !asks || !alone || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return name
}

// learn takes the workspace and the home of the session from an event.
func (e *Engine) learn(ev *event.Event) {
	p := *e.place.Load()
	if ev.Action == event.SessionStart && ev.Object != "" {
		p.Workspace = ev.Object
	}
	if home := ev.Detail["home"]; home != "" {
		p.Home = home
	}
	e.place.Store(&p)
}

// candidate evaluates the condition of a matcher on an event that has the marks.
func (e *Engine) candidate(m *matcher, s *candidate, alerts []Alert) []Alert {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.program == nil {
		s.program = e.programs.processProgram(e.place.Load(), &s.event.Process)
	}
	if m.condition != "" && !e.holds(m, s) {
		return alerts
	}
	if s.arrival == 0 {
		e.arrivals++
		s.arrival = e.arrivals
	}
	return e.handleMatch(m.rule, m.step, s, alerts)
}

func (e *Engine) holds(m *matcher, s *candidate) bool {
	if m.failed {
		return false
	}
	var err error
	if m.program == nil {
		if m.program, err = expr.Compile(m.condition); err != nil {
			m.failed = true
		}
	}
	var ok bool
	if err == nil {
		ok, err = m.program.Matches(s)
	}
	if err != nil && e.broken == nil {
		e.broken = errors.Join(errors.New("evaluating the rule "+m.rule.ID), err)
	}
	return ok && err == nil
}
