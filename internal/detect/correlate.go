package detect

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of what is kept of a rule; the programs that cause events must not be
// able to make the supervisor grow.
const (
	keptGroups = 64  // of events that have the same fields
	keptStamps = 64  // of one group of a temporal correlation
	keptAlerts = 64  // different alerts of one rule; what follows counts as one more
	keptKey    = 256 // bytes of the key of an alert or group
	keptEvents = 64  // places in the log that one alert names
	overflow   = "…" // the key of what follows
)

// slack is how much later the time of an event may be than that of the event
// after it: each sensor reads the clock itself.
const slack = 20 * time.Millisecond

// hashSeed differs in each process, so that the programs that choose the values
// cannot make them collide.
var hashSeed = sync.OnceValue(maphash.MakeSeed)

// tally is an alert that was raised.
type tally struct{ count, next int }

// stamp is the time of something that a correlation waits for.
type stamp struct {
	at      time.Time
	seq     uint64
	arrival uint64 // distinguishes events without a place in a log
	step    int
	value   uint64 // of value_count
}

// group is the events seen with the same fields.
type group struct{ stamps []stamp }

// handleMatch handles an event that matches a rule, or a step of one.
func (e *Engine) handleMatch(l *ruleState, step int, s *candidate, alerts []Alert) []Alert {
	at := stamp{at: s.event.Time, seq: s.event.Seq, arrival: s.arrival, step: step}
	c := l.Correlation
	if c == nil {
		return e.met(l, s, []stamp{at}, alerts)
	}
	g := l.group(c.By, s, l.waits && step > 0)
	if g == nil {
		return alerts
	}
	if l.waits {
		l.armed.Store(true)
	}
	var met []stamp
	switch c.Type {
	case eventCount:
		met = g.count(at, c)
	case valueCount:
		at.value = maphash.String(hashSeed(), s.field(c.Field))
		met = g.distinct(at, c)
	default:
		met = g.sequence(at, c)
	}
	if met == nil {
		return alerts
	}
	g.stamps = g.stamps[:0]
	return e.met(l, s, met, alerts)
}

// met raises a rule, unless it was raised for the same before, and passes the
// event to the correlations that it is a step of.
func (e *Engine) met(l *ruleState, s *candidate, because []stamp, alerts []Alert) []Alert {
	if a, ok := l.raise(s, because); ok {
		alerts = append(alerts, a)
	}
	for _, f := range l.feeds {
		alerts = e.handleMatch(f.to, f.step, s, alerts)
	}
	return alerts
}

// raise makes the alert. The first is raised, and the tenth, the hundredth…
func (l *ruleState) raise(s *candidate, because []stamp) (Alert, bool) {
	key := l.key(s)
	if l.raised == nil {
		l.raised = map[string]*tally{}
	}
	full := s.event.Session + "\x00" + key
	t := l.raised[full]
	if t == nil && len(l.raised) >= keptAlerts {
		key = overflow
		full = s.event.Session + "\x00" + key
		t = l.raised[full]
	}
	if t == nil {
		t = &tally{next: 1}
		l.raised[full] = t
	}
	if t.count++; t.count < t.next {
		return Alert{}, false
	}
	t.next *= 10
	a := Alert{
		Rule: l.ID, Title: l.Title, Severity: l.Severity, Technique: l.Technique, Session: s.event.Session, Time: s.event.Time,
		Key: key, Count: t.count, Process: *s.process(), Object: s.event.Object, Explanation: l.Explanation,
	}
	for _, b := range because {
		if b.seq != 0 && len(a.Events) < keptEvents {
			a.Events = append(a.Events, b.seq)
		}
	}
	return a, true
}

// key identifies an alert among those of the rule.
func (l *ruleState) key(s *candidate) string {
	fields := l.Key
	if len(fields) == 0 {
		if fields = []string{"target"}; l.Correlation != nil {
			fields = l.Correlation.By
		}
	}
	return joinFields(fields, s)
}

func joinFields(fields []string, s *candidate) string {
	switch len(fields) {
	case 0:
		return ""
	case 1:
		return boundKey(s.field(fields[0]))
	}
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = s.field(f)
	}
	return boundKey(strings.Join(parts, " "))
}

// boundKey returns a key of limited length that still differs from other keys.
func boundKey(key string) string {
	if len(key) <= keptKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return strings.ToValidUTF8(key[:keptKey/2], "") + overflow + hex.EncodeToString(sum[:8])
}

// group finds the group of an event; nil if known is set and there is none.
// When there are too many, an arbitrary other one is forgotten.
func (l *ruleState) group(by []string, s *candidate, known bool) *group {
	key := s.event.Session
	if len(by) > 0 {
		key += "\x00" + joinFields(by, s)
	}
	g := l.groups[key]
	if g != nil || known {
		return g
	}
	if l.groups == nil {
		l.groups = map[string]*group{}
	}
	if len(l.groups) >= keptGroups {
		for other := range l.groups {
			delete(l.groups, other)
			break
		}
	}
	g = &group{}
	l.groups[key] = g
	return g
}

// insert puts a stamp in its place by time: events of different sensors may
// arrive in another order than they happened.
func (g *group) insert(s stamp) {
	i := len(g.stamps)
	for i > 0 && g.stamps[i-1].at.After(s.at.Add(slack)) {
		i--
	}
	g.stamps = slices.Insert(g.stamps, i, s)
}

// forget drops the stamps that are too old to be in one window with the newest.
func (g *group) forget(window time.Duration) {
	if len(g.stamps) == 0 {
		return
	}
	from := g.stamps[len(g.stamps)-1].at.Add(-window)
	n := 0
	for n < len(g.stamps) && g.stamps[n].at.Before(from) {
		n++
	}
	g.stamps = slices.Delete(g.stamps, 0, n)
}

// count returns the events when there are enough within the window.
func (g *group) count(s stamp, c *Correlation) []stamp {
	g.insert(s)
	g.forget(c.Window)
	if len(g.stamps) < c.AtLeast {
		return nil
	}
	return slices.Clone(g.stamps)
}

// distinct is count for values that differ; of each the newest event is kept.
func (g *group) distinct(s stamp, c *Correlation) []stamp {
	g.stamps = slices.DeleteFunc(g.stamps, func(old stamp) bool { return old.value == s.value })
	return g.count(s, c)
}

// sequence returns the events if there is one for each step. Of several in a
// row for the same step, the first and the last are kept, so that repeating a
// step pushes nothing out.
func (g *group) sequence(s stamp, c *Correlation) []stamp {
	g.insert(s)
	g.forget(c.Window)
	for i := 1; i+1 < len(g.stamps); i++ {
		if a, b := g.stamps[i-1].step, g.stamps[i+1].step; a == g.stamps[i].step && a == b {
			g.stamps = slices.Delete(g.stamps, i, i+1)
			i--
		}
	}
	if len(g.stamps) > keptStamps {
		g.stamps = slices.Delete(g.stamps, 0, len(g.stamps)-keptStamps)
	}
	if c.Type == temporal {
		return g.together(len(c.Steps))
	}
	return g.chain(len(c.Steps))
}

// chain finds one event for each step, in the order of the steps. All stamps
// lie within the window.
func (g *group) chain(steps int) []stamp {
	best := make([][]stamp, steps) // the chain of the first steps
	for _, s := range g.stamps {
		switch {
		case s.step == 0:
			best[0] = []stamp{s}
		case best[s.step-1] != nil && !hasStamp(best[s.step-1], s):
			best[s.step] = append(slices.Clone(best[s.step-1]), s)
		}
	}
	return best[steps-1]
}

// together finds one event for each step in any order, and no event for two steps.
func (g *group) together(steps int) []stamp {
	var out []stamp
	for step := range steps {
		i := slices.IndexFunc(g.stamps, func(s stamp) bool { return s.step == step && !hasStamp(out, s) })
		if i < 0 {
			return nil
		}
		out = append(out, g.stamps[i])
	}
	slices.SortFunc(out, func(a, b stamp) int { return a.at.Compare(b.at) })
	return out
}

func hasStamp(list []stamp, s stamp) bool {
	return slices.ContainsFunc(list, func(one stamp) bool { return one.arrival == s.arrival })
}
