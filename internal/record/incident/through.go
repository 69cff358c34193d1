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

// alerted is the alerts of one rule.
type alerted struct {
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

// lent is a credential and a place where it was used.
type lent struct {
	span
	name, where string
	rules       names
}

// touched is a fake credential that was read or sent.
type touched struct {
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

// place is a directory outside of the workspace in which something was changed.
type place struct {
	span
	dir   string
	paths names
}

// alert takes an alert, with what became of the event that it is about.
func (b *Builder) alert(e *event.Event) {
	a := b.alerts.get(cut(e.Object, 200), entries)
	if a == nil {
		return
	}
	d := e.Detail
	if a.count == 0 {
		a.rule, a.severity, a.title = cut(e.Object, 200), detect.Severity(cut(d["severity"], 20)), cut(d["title"], 400)
		a.explanation, a.technique = cut(d["explanation"], 2000), cut(d["technique"], 200)
	}
	a.add(e, 1)
	a.objects.add(b.short(d["object"]))
	last := number(d["events"][strings.LastIndexByte(d["events"], ',')+1:])
	o := b.recent[last%recently]
	switch {
	case last == 0 || o.seq != last:
	case o.verdict == event.Denied:
		if word := heldWord(o.layer); !slices.Contains(a.held, word) && len(a.held) < named {
			a.held = append(a.held, word)
		}
	default:
		a.passed = true
	}
}

// through takes what was let through.
func (b *Builder) through(e *event.Event) {
	switch e.Action {
	case event.NetConnect, event.NetRequest, event.NetClose:
		b.reached(e)
	case event.CredentialUse:
		if l := b.credentials.get(cut(e.Detail["credential"]+"\x00"+e.Object, 600), entries); l != nil {
			l.name, l.where = cut(e.Detail["credential"], 200), cut(e.Object, 300)
			l.rules.add(e.Rule)
			l.add(e, 1+number(e.Detail["again"]))
		}
	case event.HoneyRead, event.HoneySent:
		if t := b.honey.get(cut(e.Action+e.Object, 600), entries); t != nil {
			t.kind, t.where, t.sent = cut(e.Detail["kind"], 100), cut(e.Object, 300), e.Action == event.HoneySent
			t.add(e, 1)
		}
	case event.FileWrite, event.FileTruncate, event.FileMknod, event.FileChmod, event.FileMkdir, event.FileLink, event.FileSymlink:
		b.changed(e, found(e))
	case event.FileRename:
		b.gone(found(e))
		b.changed(e, cmp.Or(e.Detail["to_resolved"], e.Detail["to"]))
	case event.FileUnlink:
		b.gone(found(e))
	}
}

// reached takes what the egress let out.
func (b *Builder) reached(e *event.Event) {
	h := b.hosts.get(cut(e.Object, 300), reach)
	if h == nil {
		b.moreOut += number(e.Detail["out"])
		return
	}
	if h.name == "" {
		h.name, h.first, h.seq = cut(e.Object, 300), e.Time, e.Seq
	}
	h.last = e.Time
	h.rules.add(e.Rule)
	switch {
	case e.Action == event.NetConnect:
		h.count += 1 + number(e.Detail["again"])
		return
	case e.Action == event.NetRequest && e.Detail["status"] == "": // it left; its answer has an event of its own
		h.methods.add(e.Detail["method"])
		return
	case e.Action == event.NetRequest:
		h.bytesAreOfRequest = true
		h.requests++
		h.methods.add(e.Detail["method"])
	case h.bytesAreOfRequest:
		return
	}
	h.in += number(e.Detail["in"])
	h.out += number(e.Detail["out"])
}

// changed takes a file that was made or changed, whatever its name was before.
func (b *Builder) changed(e *event.Event, name string) {
	inside := b.below(name)
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
		if x := b.executed.get(cut(reason, 400), reasons); x != nil {
			x.reason = cut(reason, 400)
			x.add(e, 1)
			x.paths.add("./" + inside)
		}
	case !path.IsAbs(name) || ofSystem(name):
	case e.Detail["kept"] != "":
		b.apart(&b.private, e, name)
	default:
		b.apart(&b.outside, e, name)
	}
}

// apart takes a change outside of the workspace.
func (b *Builder) apart(into *keyed[place], e *event.Event, name string) {
	if p := into.get(cut(path.Dir(name), 600), entries); p != nil {
		p.dir = cut(path.Dir(name), 300)
		p.add(e, 1)
		p.paths.add(name)
	}
}

// gone takes a name that is not there any more.
func (b *Builder) gone(name string) {
	name = "./" + b.below(name)
	for _, x := range b.executed.list {
		if i := slices.Index(x.paths.list, name); i >= 0 {
			x.paths.list = slices.Delete(x.paths.list, i, i+1)
			x.gone++
		}
	}
}

// wasHeld reports whether a path of the workspace was moved out of it at the end,
// or lies below one that was.
func (b *Builder) wasHeld(short string) bool {
	full := b.workspace + strings.TrimPrefix(short, ".")
	return slices.ContainsFunc(b.held, func(h string) bool { return paths.Within(h, full) })
}

// left are the files that a host executes, that were changed and that are still
// there as far as the record says, by reason.
func (b *Builder) left() (out []*executable) {
	for _, x := range b.executed.list {
		x.paths.list = slices.DeleteFunc(x.paths.list, b.wasHeld)
		if len(x.paths.list) > 0 || x.paths.more {
			out = append(out, x)
		}
	}
	return out
}

// farthest are the hosts that most bytes went to, as many as there are lines for, in
// the order in which they were reached, and what the others come to.
func (b *Builder) farthest() (list []*host, others uint64, out uint64) {
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

// refusals is how many attempts were refused, and by what, the most first.
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
