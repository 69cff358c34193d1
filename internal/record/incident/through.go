package incident

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// alertGroup is the alerts of one rule.
type alertGroup struct {
	span
	rule, title, explanation, technique string
	severity                            detect.Severity
	objects                             names
	held                                []string // layers that refused what the alerts are about
	passed                              bool     // some of it was not refused
}

// host is a destination that was reached.
type host struct {
	span
	name              string
	rules, methods    names
	in, out           uint64 // bytes into the boundary, and out of it
	requests          uint64
	bytesAreOfRequest bool // the end of the connection counts the same bytes
}

// credentialUse is a credential and a place where it was used.
type credentialUse struct {
	span
	name, where string
	rules       names
}

// honeytoken is a fake credential that was read or sent.
type honeytoken struct {
	span
	kind, where string
	sent        bool
}

// executable is the files that a host executes for one reason.
type executable struct {
	span
	reason string
	paths  names
	gone   int
}

// changedDir is a directory outside of the workspace in which something was changed.
type changedDir struct {
	span
	dir   string
	paths names
}

// addAlert adds an alert, with the verdict on the event that raised it.
func (b *Builder) addAlert(e *event.Event) {
	a := b.alerts.entry(cut(e.Object, 200), entries)
	if a == nil {
		return
	}
	d := e.Detail
	if a.count == 0 {
		a.rule, a.severity, a.title = cut(e.Object, 200), detect.Severity(cut(d["severity"], 20)), cut(d["title"], 400)
		a.explanation, a.technique = cut(d["explanation"], 2000), cut(d["technique"], 200)
	}
	a.add(e, 1)
	a.objects.add(b.shortPath(d["object"]))
	last := parseCount(d["events"][strings.LastIndexByte(d["events"], ',')+1:])
	o := b.recent[last%recentEvents]
	switch {
	case last == 0 || o.seq != last:
	case o.verdict == event.Denied:
		if word := layerName(o.layer); !slices.Contains(a.held, word) && len(a.held) < named {
			a.held = append(a.held, word)
		}
	default:
		a.passed = true
	}
}

// addAllowed adds an event that was allowed.
func (b *Builder) addAllowed(e *event.Event) {
	switch e.Action {
	case event.NetConnect, event.NetRequest, event.NetClose:
		b.addTraffic(e)
	case event.CredentialUse:
		if l := b.credentials.entry(cut(e.Detail["credential"]+"\x00"+e.Object, 600), entries); l != nil {
			l.name, l.where = cut(e.Detail["credential"], 200), cut(e.Object, 300)
			l.rules.add(e.Rule)
			l.add(e, 1+parseCount(e.Detail["again"]))
		}
	case event.HoneyRead, event.HoneySent:
		if t := b.honey.entry(cut(e.Action+e.Object, 600), entries); t != nil {
			t.kind, t.where, t.sent = cut(e.Detail["kind"], 100), cut(e.Object, 300), e.Action == event.HoneySent
			t.add(e, 1)
		}
	case event.FileWrite, event.FileTruncate, event.FileMknod, event.FileChmod, event.FileMkdir, event.FileLink, event.FileSymlink:
		b.addChange(e, foundPath(e))
	case event.FileRename:
		b.addRemoval(foundPath(e))
		b.addChange(e, cmp.Or(e.Detail["to_resolved"], e.Detail["to"]))
	case event.FileUnlink:
		b.addRemoval(foundPath(e))
	}
}

// addTraffic adds a connection or request that was allowed.
func (b *Builder) addTraffic(e *event.Event) {
	h := b.hosts.entry(cut(e.Object, 300), maxHosts)
	if h == nil {
		b.moreOut += parseCount(e.Detail["out"])
		return
	}
	if h.name == "" {
		h.name, h.first, h.seq = cut(e.Object, 300), e.Time, e.Seq
	}
	h.last = e.Time
	h.rules.add(e.Rule)
	switch {
	case e.Action == event.NetConnect:
		h.count += 1 + parseCount(e.Detail["again"])
		return
	case e.Action == event.NetRequest && e.Detail["status"] == "": // it was sent; its answer has an event of its own
		h.methods.add(e.Detail["method"])
		return
	case e.Action == event.NetRequest:
		h.bytesAreOfRequest = true
		h.requests++
		h.methods.add(e.Detail["method"])
	case h.bytesAreOfRequest:
		return
	}
	h.in += parseCount(e.Detail["in"])
	h.out += parseCount(e.Detail["out"])
}

// addChange adds a file that was made or changed, by its new name.
func (b *Builder) addChange(e *event.Event, name string) {
	inside := b.relative(name)
	switch {
	case inside != "":
		b.wrote++
		if b.o.Executes == nil || e.Action == event.FileMkdir { // what is made in it has an event of its own
			return
		}
		reason := b.o.Executes(inside)
		if reason == "" {
			return
		}
		if x := b.executed.entry(cut(reason, 400), reasons); x != nil {
			x.reason = cut(reason, 400)
			x.add(e, 1)
			x.paths.add("./" + inside)
		}
	case !path.IsAbs(name) || ofSystem(name):
	case e.Detail["kept"] != "":
		b.addOutside(&b.private, e, name)
	default:
		b.addOutside(&b.outside, e, name)
	}
}

// addOutside adds a change outside of the workspace.
func (b *Builder) addOutside(into *boundedList[changedDir], e *event.Event, name string) {
	if p := into.entry(cut(path.Dir(name), 600), entries); p != nil {
		p.dir = cut(path.Dir(name), 300)
		p.add(e, 1)
		p.paths.add(name)
	}
}

// addRemoval removes a name from the files that a host executes.
func (b *Builder) addRemoval(name string) {
	name = "./" + b.relative(name)
	for _, x := range b.executed.list {
		if i := slices.Index(x.paths.list, name); i >= 0 {
			x.paths.list = slices.Delete(x.paths.list, i, i+1)
			x.gone++
		}
	}
}

// quarantined reports whether a path of the workspace was moved out of it at the end,
// or lies below one that was.
func (b *Builder) quarantined(short string) bool {
	full := b.workspace + strings.TrimPrefix(short, ".")
	return slices.ContainsFunc(b.held, func(h string) bool { return paths.Within(h, full) })
}

// remainingExecutables are the changed files that a host executes and that are still there
// according to the record, by reason.
func (b *Builder) remainingExecutables() (out []*executable) {
	for _, x := range b.executed.list {
		x.paths.list = slices.DeleteFunc(x.paths.list, b.quarantined)
		if len(x.paths.list) > 0 || x.paths.more {
			out = append(out, x)
		}
	}
	return out
}

// topHosts returns the hosts that received most bytes, as many as there are lines for,
// in the order in which they were reached, and the number and bytes of the others.
func (b *Builder) topHosts() (list []*host, others uint64, out uint64) {
	list = slices.Clone(b.hosts.list)
	out = b.moreOut
	if len(list) > lines {
		slices.SortStableFunc(list, func(x, y *host) int { return cmp.Compare(y.out, x.out) })
		for _, h := range list[lines:] {
			out += h.out
		}
		others = uint64(len(list) - lines)
		list = list[:lines]
		slices.SortFunc(list, func(x, y *host) int { return cmp.Compare(x.seq, y.seq) })
	}
	return list, others, out
}

// refusals is how many attempts were refused, and by which layers, the most frequent first.
func (b *Builder) refusals() (total uint64, words []string) {
	words = slices.SortedFunc(maps.Keys(b.refused), func(x, y string) int {
		if b.refused[x] != b.refused[y] {
			return cmp.Compare(b.refused[y], b.refused[x])
		}
		return strings.Compare(x, y)
	})
	for _, n := range b.refused {
		total += n
	}
	return total, words
}
