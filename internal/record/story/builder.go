package story

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Builder makes a story of events, which are added in the order of the record.
type Builder struct {
	limits Limits
	bytes  int // of text that is kept
	s      Story

	programs     map[uint64]*Program
	runs         map[int]uint64 // program that a process runs
	files        map[string]*File
	refused      map[string]int // different refusals by action
	destinations map[string]*Destination
	sockets      map[socketKey]*Socket
	refusals     map[refusalKey]*Refusal
	credentials  map[credentialKey]*Credential
	alerts       map[string]*Alert
	approvals    map[string]*Approval // by "id ID", "grant GRANT" and "rule …"
	changes      map[string]*Change
	drops        *Drops             // nil before the session started
	open         map[uint64][]*Tool // calls in progress, by the program of the agent
}

// New begins a story.
func New(limits Limits) *Builder {
	return &Builder{
		limits: limits, programs: map[uint64]*Program{}, runs: map[int]uint64{}, refused: map[string]int{}, files: map[string]*File{},
		destinations: map[string]*Destination{}, sockets: map[socketKey]*Socket{}, refusals: map[refusalKey]*Refusal{},
		credentials: map[credentialKey]*Credential{}, alerts: map[string]*Alert{}, approvals: map[string]*Approval{}, changes: map[string]*Change{}, open: map[uint64][]*Tool{},
	}
}

// Add takes the next event, and keeps nothing of it but texts.
func (b *Builder) Add(e event.Event) {
	if b.s.Events == 0 {
		b.s.Session, b.s.Begin = b.retain(e.Session), e.Time
	}
	b.s.Events++
	if e.Time.After(b.s.End) {
		b.s.End = e.Time
	}
	kind, _, _ := strings.Cut(e.Action, ".")
	if e.Verdict == event.Denied && kind != "alert" && kind != "session" && kind != "approval" && kind != "review" && e.Action != event.FileQuarantine { // which have places of their own
		b.refusal(&e)
	}
	if e.Verdict == event.Unknown && (kind == "file" || kind == "sock" || kind == "sys" || kind == "net" || e.Action == event.ProcExec) {
		b.s.Unknown++
	}
	switch kind {
	case "proc":
		b.process(&e)
	case "file":
		if e.Action == event.FileQuarantine {
			b.addNote(&b.s.Notes, &e)
			return
		}
		b.file(&e)
	case "sock":
		b.socket(&e)
	case "net":
		b.network(&e)
	case "tool":
		b.tool(&e)
	case "approval":
		b.approval(&e)
	case "review":
		b.review(&e)
	case "credential", "honey":
		b.credential(&e)
	default:
		b.session(&e)
	}
}

// session takes the events of the session itself.
func (b *Builder) session(e *event.Event) {
	switch e.Action {
	case event.SessionStart:
		b.s.Workspace, b.s.Started, b.s.Begin = b.retain(e.Object), b.keepAll(e.Detail), e.Time
		b.s.Command, _ = b.arguments(e.Process.Argv)
		b.drops = NewDrops(detect.Place{Home: strings.Clone(e.Detail["home"]), Workspace: strings.Clone(e.Object)})
	case event.SessionAttest:
		b.s.Attested = b.keepAll(e.Detail)
	case event.SessionEnd:
		b.s.Ended, b.s.Status = true, b.retain(e.Detail["status"])
	case event.RecordBegin:
		b.s.Recorded = b.keepAll(e.Detail)
	case event.RecordDrop, event.RecordCut:
		b.addLoss(e)
	case event.RecordBlind:
		b.addNote(&b.s.Blind, e)
	case event.AlertRaise:
		b.alert(e)
	case event.SysCall:
		b.addTouch(e, (*Program).refusedList, e.Object, "", refusedAs(e))
	default:
		b.addNote(&b.s.Notes, e)
	}
}

// Story returns the story of the added events. Nothing may be added afterwards.
func (b *Builder) Story() *Story {
	b.foldQueries()
	if b.drops != nil {
		var more uint64
		b.s.Dropped, more = b.drops.List()
		b.s.Left.Other += more
	}
	slices.SortFunc(b.s.Files, func(a, c *File) int { return strings.Compare(a.Path, c.Path) })
	return &b.s
}

// cutText cuts a text to the length that is kept.
func cutText(s string) string { return text.Cut(s, longest) }

// retain returns a text to keep: cut if it is long, and "…" if there is no room left.
func (b *Builder) retain(s string) string {
	if len(s) > longest+len("…") {
		b.s.Left.Bytes += uint64(len(s) - longest)
		s = cutText(s)
	}
	if b.bytes+len(s) > b.limits.Bytes {
		b.s.Left.Bytes += uint64(len(s))
		return "…"
	}
	b.bytes += len(s)
	return strings.Clone(s)
}

// How many quarters of the room each may use. A program that makes files until
// none is left must not hide what was refused afterwards.
const (
	ofFiles    = 2
	ofPrograms = 3
	ofAll      = 4
)

// overhead is the size of one thing besides its texts, in bytes.
const overhead = 250

// admit reports whether there is room for another thing with n bytes of text,
// and takes the room for its overhead.
func (b *Builder) admit(n, quarters int) bool {
	if b.bytes+overhead+min(n, 2*longest) > b.limits.Bytes/4*quarters {
		return false
	}
	b.bytes += overhead
	return true
}

// maxDetails is how many details of an event are kept.
const maxDetails = 32

func (b *Builder) keepAll(m map[string]string) map[string]string {
	out := map[string]string{}
	keys := slices.Sorted(maps.Keys(m))
	for i, k := range keys {
		if i == maxDetails {
			b.s.Left.Other += uint64(len(keys) - i)
			break
		}
		out[b.retain(k)] = b.retain(m[k])
	}
	return out
}

func (b *Builder) addNote(into *[]Note, e *event.Event) {
	if len(*into) >= b.limits.Refusals || !b.admit(len(e.Object), ofAll) {
		b.s.Left.Other++
		return
	}
	*into = append(*into, Note{Action: b.retain(e.Action), Object: b.retain(e.Object), Detail: b.keepAll(e.Detail), Seq: e.Seq})
}

// addLoss adds the counts of a record.drop or record.cut to those of the same sensor
// and reason, of which there may be one a second.
func (b *Builder) addLoss(e *event.Event) {
	for i := range b.s.Lost {
		l := &b.s.Lost[i]
		if l.Action != e.Action || l.Detail["of"] != e.Detail["of"] || l.Detail["reason"] != e.Detail["reason"] {
			continue
		}
		for k, v := range e.Detail {
			if _, had := l.Detail[k]; strings.HasPrefix(k, "count") && (had || len(l.Detail) < 2*maxDetails) {
				l.Detail[b.retain(k)] = strconv.FormatUint(parseCount(l.Detail[k])+parseCount(v), 10)
			}
		}
		if to := e.Detail["to"]; to != "" {
			l.Detail["to"] = b.retain(to)
		}
		delete(l.Detail, "ranges") // of the first report alone
		return
	}
	b.addNote(&b.s.Lost, e)
}

func parseCount(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64) // what is not a number counts as 0
	return n
}

func (b *Builder) alert(e *event.Event) {
	key := cutText(e.Object + "\x00" + e.Detail["severity"] + "\x00" + e.Detail["key"])
	if a := b.alerts[key]; a != nil {
		a.Count++
		return
	}
	if len(b.alerts) >= b.limits.Refusals || !b.admit(len(key), ofAll) {
		b.s.Left.Other++
		return
	}
	a := &Alert{Rule: b.retain(e.Object), Detail: b.keepAll(e.Detail), Count: 1, Seq: e.Seq, Time: e.Time}
	b.alerts[b.retain(key)] = a
	b.s.Alerts = append(b.s.Alerts, a)
}

// maxNamed is how many programs, rules and reasons are named of one thing.
const maxNamed = 4

// appendFew adds v to the first few different ones.
func appendFew[T comparable](list []T, v T) []T {
	var zero T
	if v == zero || len(list) >= maxNamed || slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
