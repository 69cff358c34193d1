package rules

import (
	"slices"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// ruleIndex holds the rules that can be about one kind of attempts, by what is
// necessary for them to be true. Each list is sorted by rank.
type ruleIndex struct {
	byProgram map[string][]*prepared
	byVerb    map[string][]*prepared // of those that may be about any program
	always    []*prepared            // of any program and verb
	once      []*prepared            // likewise, and the same for every reading
	all       []*prepared
}

// add puts a rule into the indexes of the kinds that it is about.
func (m *Matcher) add(r *prepared, deny bool, order int) {
	switch r.rank = rankAsk + order; {
	case deny:
		r.rank = rankDeny + order
	case r.rule.Attended:
		r.rank = rankAttended + order
	}
	for _, kind := range r.about {
		l := m.indexes[kind]
		if l == nil {
			l = &ruleIndex{byProgram: map[string][]*prepared{}, byVerb: map[string][]*prepared{}}
			m.indexes[kind] = l
		}
		l.add(r, kind)
	}
}

func (l *ruleIndex) add(r *prepared, kind event.Kind) {
	l.all = insertByOrder(l.all, r)
	switch {
	case kind == event.KindExec && len(r.programs) > 0:
		for _, name := range r.programs {
			l.byProgram[name] = insertByOrder(l.byProgram[name], r)
		}
	case kind == event.KindExec && len(r.verbs) > 0:
		for _, name := range r.verbs {
			l.byVerb[name] = insertByOrder(l.byVerb[name], r)
		}
	case r.plain:
		l.once = insertByOrder(l.once, r)
	default:
		l.always = insertByOrder(l.always, r)
	}
}

func insertByOrder(list []*prepared, r *prepared) []*prepared {
	at, _ := slices.BinarySearchFunc(list, r, func(a, b *prepared) int { return a.rank - b.rank })
	return slices.Insert(list, at, r)
}

// candidates calls try with the rules that can be true of a reading of an
// attempt, those of each list in the order of their ranks. cut means that the
// missing part of its arguments may be anything.
func (l *ruleIndex) candidates(r reading, cut bool, try func(*prepared)) {
	if r.anything || cut && r.ended && len(l.byVerb) > 0 {
		for _, one := range l.all {
			try(one)
		}
		return
	}
	for _, one := range l.byProgram[r.program] {
		if len(one.verbs) == 0 || cut && r.ended || slices.Contains(one.verbs, r.verb) {
			try(one)
		}
	}
	for _, list := range [][]*prepared{l.byVerb[r.verb], l.always} {
		for _, one := range list {
			try(one)
		}
	}
}

// attemptFields gives a condition the fields of an attempt, as one reading of
// it has them.
type attemptFields struct {
	attempt *event.Attempt
	reading reading
	outside bool
}

// Field implements expr.Fields.
func (f attemptFields) Field(name string) (any, bool) {
	switch a := f.attempt; name {
	case "action":
		return string(a.Kind), true
	case "program":
		return orUnknown(f.reading.program, !f.reading.anything)
	case "verb":
		return orUnknown(f.reading.verb, !f.reading.anything && !(f.attempt.Cut && f.reading.ended))
	case "args":
		return orUnknown(f.reading.args, !f.reading.anything && !f.attempt.Cut)
	case "argv":
		return orUnknown(a.Process.Argv, !a.Cut)
	case "executable":
		return orUnknown(a.Process.Executable, !anyProcess(a))
	case "sha256":
		return orUnknown(a.Process.SHA256, !anyProcess(a))
	case "cwd":
		return orUnknown(a.Process.Cwd, !anyProcess(a))
	case "parent":
		return a.ParentExecutable, true
	case "script":
		return a.Script, true
	case "path":
		return a.Path, true
	case "outside":
		return f.outside, true
	}
	return f.object(name)
}

// anyProcess reports whether a is a connection or a request of an unknown process.
func anyProcess(a *event.Attempt) bool {
	return a.Cut && (a.Kind == event.KindConnect || a.Kind == event.KindRequest)
}

// orUnknown returns a value, or expr.Unknown if it is not known: it was cut,
// the arguments end before it, or it may be anything.
func orUnknown(v any, known bool) (any, bool) {
	if !known {
		return expr.Unknown, true
	}
	return v, true
}

// object returns the fields of attempts that are not executions.
func (f attemptFields) object(name string) (any, bool) {
	switch a := f.attempt; name {
	case "operation":
		return a.Operation, true
	case "to":
		return a.To, true
	case "host":
		return a.Host, true
	case "port":
		return a.Port, true
	case "kind":
		return a.Protocol, true
	case "known":
		return a.Known, true
	case "method":
		return a.Method, true
	case "url_path":
		return a.URLPath, true
	case "credential":
		return a.Name, true
	case "tool":
		return a.Tool, true
	case "server":
		return a.Server, true
	case "agent":
		return a.Agent, true
	case "arguments":
		return orUnknown(toolArguments(a.Arguments), !a.Cut)
	}
	return nil, false
}
