// Package incident makes the report of a run for engineers who were not there: what
// was attempted in order and what held it, what got through by permission, what a
// human should check or rotate, how to retest, and what could not be seen.
//
// It reads the events of a record in their order and keeps a bounded number of
// groups of like attempts: many attempts of one kind take no room from other kinds. It
// knows neither the rows of the escape matrix nor the names that a host executes: the
// caller passes them in.
package incident

import (
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// Options are what a report takes from elsewhere.
type Options struct {
	Session string        // valid, see audit.ValidSession: commands contain it
	File    string        // of the record, quoted for a shell
	Rules   []detect.Rule // for their honest causes
	Rows    []Row         // of the escape matrix; nil where they cannot be played
	// Executes returns why the host would execute or obey a path below the
	// workspace, relative to it; "" for an ordinary one. nil if that is not known.
	Executes func(path string) string
	Usual    func(object string) bool // nearly every program asks for it; nil: no object
}

// Findings are what is known after all events were added.
type Findings struct {
	Record   string   // verdict on the record, in the word of 'log verify'
	Problems []string // what does not fit, a line each
	Running  bool     // the run is in progress
	Changes  *Changes // as kept beside the record; nil if they are not
	Settled  []string // what was found after the supervisor was killed, a line each
}

// Changes are the changes of the workspace that are listed, or wait, since the end of the run.
type Changes struct {
	Waits int       // changes that wait for review and have not reached the workspace
	Flags []Flagged // files that the host executes
	Whole bool      // nothing is missing in Flags
}

// Flagged is a file that a host executes, and how it was changed. Held is where it
// was moved; "" when it stayed.
type Flagged struct{ Path, Change, Reason, Held string }

// Row is a row of the escape matrix, with what a record must show of it.
type Row struct {
	ID, Class string
	Core      bool
	Rules     []string // alerts that it raises
	Attempts  []Attempt
}

// Attempt is an attempt of a row. Object may begin with a letter for a directory of
// the row's world, and a slash.
type Attempt struct{ Action, Object, Layer string }

// limits of what is kept of a run. The rest is counted.
const (
	perKind      = 20  // groups of attempts of one kind
	kinds        = 400 // kinds: actions, verdicts and layers are few, except in a forged record
	named        = 4   // objects that a group names
	entries      = 200 // credentials, fake credentials, rules of alerts and directories, each
	maxHosts     = 2000
	reasons      = 100 // groups of files that a host executes
	recentEvents = 8192
)

// storyLimits leave out the lists that a report does not show.
var storyLimits = story.Limits{Programs: 20_000, Refusals: 1000, Bytes: 16 << 20}

// Builder takes the events of a run in the order of the record.
type Builder struct {
	o         Options
	story     *story.Builder
	workspace string

	groups   []*group
	byKey    map[groupKey]*group
	ofKind   map[groupKey]int
	unlisted uint64 // events of kinds for which there was no room
	refused  map[string]uint64
	routine  uint64 // refusals of what nearly every program asks for
	unknown  uint64

	hosts       boundedList[host]
	moreOut     uint64 // bytes to hosts that are not listed, at most: some of them count twice
	credentials boundedList[credentialUse]
	honey       boundedList[honeytoken]
	executed    boundedList[executable]
	outside     boundedList[changedDir]
	private     boundedList[changedDir]
	held        []string // paths that were held back at the end
	heldMore    uint64
	blind       []blindness
	recent      [recentEvents]outcome // by sequence number
	alerts      boundedList[alertGroup]
	wrote       uint64 // changes of files below the workspace
}

// outcome is what became of one event.
type outcome struct {
	seq     uint64
	verdict event.Verdict
	layer   string
}

// New begins a report.
func New(o Options) *Builder {
	b := &Builder{
		o: o, story: story.New(storyLimits),
		byKey: map[groupKey]*group{}, ofKind: map[groupKey]int{}, refused: map[string]uint64{},
	}
	if o.Usual == nil {
		b.o.Usual = func(string) bool { return false }
	}
	return b
}

// Add takes the next event, and keeps only texts of it.
func (b *Builder) Add(e event.Event) {
	b.story.Add(e)
	b.recent[e.Seq%recentEvents] = outcome{e.Seq, e.Verdict, cut(e.Layer, 40)}
	switch e.Action {
	case event.SessionStart:
		b.workspace = strings.Clone(e.Object)
	case event.AlertRaise:
		b.addAlert(&e)
	case event.RecordBlind:
		if len(b.blind) < entries {
			b.blind = append(b.blind, blindness{cut(e.Object, 200), cut(e.Detail["reason"], 1000), cut(e.Detail["seen"], 1000), e.Time})
		}
	}
	b.addAttempt(&e)
	if e.Verdict == event.Allowed && e.Error == "" {
		b.addAllowed(&e)
	}
	if e.Action == event.FileQuarantine {
		if len(b.held) < entries {
			b.held = append(b.held, cut(e.Object, 4096))
		} else {
			b.heldMore++
		}
	}
}

// blindness is what the sensors of a run could not see.
type blindness struct {
	what, why, seen string
	since           time.Time
}

// boundedList is a bounded list by key, in the order of first occurrence.
type boundedList[T any] struct {
	list []*T
	at   map[string]*T
	more uint64 // events of what is not listed
}

// entry returns the entry of key, made if there is room; nil if there is none.
func (k *boundedList[T]) entry(key string, most int) *T {
	if v := k.at[key]; v != nil {
		return v
	}
	if len(k.list) >= most {
		k.more++
		return nil
	}
	if k.at == nil {
		k.at = map[string]*T{}
	}
	v := new(T)
	k.at[strings.Clone(key)] = v
	k.list = append(k.list, v)
	return v
}

// span is when something happened first and last.
type span struct {
	first, last time.Time
	seq         uint64 // of the first
	count       uint64
}

func (s *span) add(e *event.Event, n uint64) {
	if s.count == 0 {
		s.first, s.seq = e.Time, e.Seq
	}
	s.last = e.Time
	s.count += n
}

// names are the first few different texts.
type names struct {
	list []string
	more bool
}

func (n *names) add(s string) {
	switch s = cut(s, 300); {
	case s == "" || slices.Contains(n.list, s):
	case len(n.list) >= named:
		n.more = true
	default:
		n.list = append(n.list, s)
	}
}

// cut is a copy of s with at most about n bytes.
func cut(s string, n int) string { return strings.Clone(text.Cut(s, n)) }
