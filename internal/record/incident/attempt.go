package incident

import (
	"cmp"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
)

// group is a set of like attempts: of one kind, and in one place.
type group struct {
	span
	groupKey
	err, reason string
	objects     names
	by          []uint64 // programs, the first few
	rest        bool     // those of its kind that have no group of their own
}

// groupKey says which attempts are alike.
type groupKey struct {
	action  string
	verdict event.Verdict
	layer   string
	marked  bool   // it is about something noteworthy, such as credentials
	failed  bool   // it was permitted, and failed by itself
	kept    bool   // it changed something that is lost with the run
	rule    string // "" of a kind
	place   string // directory, host, program or rule; "" of a kind
}

// unknownLayer stands for unknown layers.
const unknownLayer = "?"

// skippedActions are actions that say nothing about an attempt, or have a section of their own.
var skippedActions = map[string]bool{
	event.ProcExit: true, event.ProcSeen: true, event.NetClose: true, event.ToolResult: true, event.ToolList: true, event.ApprovalRequest: true,
	event.ApprovalUse: true, event.AlertRaise: true, event.SessionStart: true, event.SessionAttest: true, event.SessionEnd: true,
	event.RecordBegin: true, event.RecordDrop: true, event.RecordCut: true, event.RecordBlind: true,
}

// addAttempt adds an event to the group of like attempts.
func (b *Builder) addAttempt(e *event.Event) {
	if skippedActions[e.Action] || e.Action == event.ProcExec && e.Error != "" && e.Verdict == event.Allowed { // a search along PATH
		return
	}
	n, object := 1+parseCount(e.Detail["again"]), foundPath(e)
	switch {
	case e.Verdict == event.Denied && b.o.Usual(object):
		b.routine += n
		return
	case e.Verdict == event.Denied:
		b.refused[layerName(e.Layer)] += n
	case ofSystem(object):
		return
	case e.Verdict == event.Unknown && !strings.HasPrefix(e.Action, "approval.") && !strings.HasPrefix(e.Action, "review."):
		b.unknown += n
	}
	kind := kindOf(e)
	key := kind
	key.rule, key.place = cut(e.Rule, 300), b.placeOf(e, object)
	g := b.byKey[key]
	if g == nil {
		g = b.newGroup(key, kind)
	}
	if g == nil {
		b.unlisted += n
		return
	}
	g.add(e, n)
	g.objects.add(b.shortPath(objectOrCommand(e, object)))
	g.addDetails(e, n)
}

// kindOf is the kind of an attempt: its key without rule and place.
func kindOf(e *event.Event) groupKey {
	key := groupKey{
		action: e.Action, verdict: e.Verdict, layer: e.Layer, marked: e.Detail["mark"] != "",
		failed: e.Error != "" && e.Verdict != event.Denied, kept: e.Detail["kept"] != "",
	}
	if _, known := verbs[key.action]; !known {
		key.action = "" // all invented actions are one kind
	}
	if _, known := layerWords[key.layer]; !known {
		key.layer = unknownLayer
	}
	return key
}

// objectOrCommand is the object of an event; of an execution, its command line.
func objectOrCommand(e *event.Event, object string) string {
	if e.Action == event.ProcExec && len(e.Process.Argv) > 0 {
		return commandLine(e.Process.Argv)
	}
	return object
}

// addDetails adds error, reason and program of an event that stands for n.
func (g *group) addDetails(e *event.Event, n uint64) {
	if g.err == "" {
		g.err = cut(e.Error, 40)
	}
	switch reason := cut(e.Detail["reason"], 400); {
	case g.count == n:
		g.reason = reason
	case g.reason != reason:
		g.reason = "" // they have no common reason
	}
	if id := e.Process.Exec; id != 0 && len(g.by) < named && !slices.Contains(g.by, id) {
		g.by = append(g.by, id)
	}
}

// newGroup makes the group of a key. If its kind has no room it returns the
// group for the rest of the kind, or nil.
func (b *Builder) newGroup(key, kind groupKey) *group {
	switch {
	case b.ofKind[kind] == 0 && len(b.ofKind) >= kinds:
		return nil
	case b.ofKind[kind] >= perKind:
		if g := b.byKey[kind]; g != nil {
			return g
		}
		key = kind
	}
	b.ofKind[kind]++
	g := &group{groupKey: key, rest: key == kind}
	b.byKey[key] = g
	b.groups = append(b.groups, g)
	return g
}

// placeOf is where an attempt was made: attempts in one place are one line.
func (b *Builder) placeOf(e *event.Event, object string) string {
	kind, _, _ := strings.Cut(e.Action, ".")
	switch {
	case e.Action == event.ProcExec && e.Verdict == event.Allowed:
		return "program " + cut(path.Base(cmp.Or(e.Process.Executable, object)), 100)
	case kind == "file" && e.Verdict != event.Denied && b.relative(object) != "":
		return "the workspace"
	case e.Action == event.FileQuarantine:
	case kind == "file" || e.Action == event.ProcExec:
		return cut(path.Dir(object), 300)
	case kind == "net" || kind == "sock":
		return cut(domain(object), 300)
	}
	return cut(object, 300)
}

// domain is the last two labels of the host of a destination or name, or a whole
// address: many queries below one domain, as when names carry data out, are one line.
func domain(object string) string {
	host := object
	if h, _, err := net.SplitHostPort(object); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, "/") {
		return host
	}
	labels := strings.Split(host, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}

// commandLine is an argument vector in shell syntax, for a reader.
func commandLine(argv []string) string {
	var b strings.Builder
	for i, arg := range argv {
		if b.Len() > 1000 {
			break // it is cut anyway
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text.Word(arg))
	}
	return b.String()
}

// relative is a path below the workspace relative to it; "" for any other path.
func (b *Builder) relative(name string) string {
	rest, _ := paths.Rel(b.workspace, name)
	return rest
}

// shortPath is a path as the report shows it: relative if it is below the workspace.
func (b *Builder) shortPath(name string) string {
	if rest := b.relative(name); rest != "" {
		return "./" + rest
	}
	return name
}

// foundPath is the object of an event as found, or else as requested.
func foundPath(e *event.Event) string { return cmp.Or(e.Resolved, e.Object) }

// ofSystem reports whether a path is a device or a kernel file that programs
// write to when they print or query.
func ofSystem(name string) bool {
	return strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/dev/shm/") || strings.HasPrefix(name, "/proc/")
}

// parseCount reads a count; 0 for anything else.
func parseCount(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 50)
	if err != nil {
		return 0
	}
	return n
}
