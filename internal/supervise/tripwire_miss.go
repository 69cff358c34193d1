//go:build linux

package supervise

import (
	"encoding/binary"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// miss is a look-up of a path that is not in the root of the view, or an open of the
// cover of something hidden.
type miss struct {
	tid    int    // in the inner pid namespace
	path   string // that was looked up
	name   string // its last component
	quiet  bool   // expected, and not there for good
	hidden bool   // it is there, and no process inside may read it
}

// missFor reports whether the answer to r is that there is no such name, or none that
// may be read, and that it counts. The caller holds t.mu.
func (t *Tripwire) missFor(r fuseRequest, answer []byte) (miss, bool) {
	if !t.fs.sealed {
		return miss{}, false
	}
	if r.op == fuseGetattr {
		return t.hiddenMiss(r)
	}
	if r.op != fuseLookup || len(answer) != fuseReply || int32(binary.LittleEndian.Uint32(answer[4:])) != -int32(unix.ENOENT) {
		return miss{}, false
	}
	name, _, errno := fuseName(r.body)
	if errno != 0 {
		return miss{}, false
	}
	dir := t.fs.tree.get(r.node)
	m := miss{tid: r.tid, path: dir.childPath(name), name: name}
	if dir.covers {
		m.path = path.Join(dir.coveredPath(), name)
	}
	if t.quiet.paths[m.path] {
		m.quiet = true
		return m, true
	}
	return m, r.tid != 0 // 0 is for a process outside of the inner pid namespace
}

// hiddenMiss reports whether r is about a hidden file. The kernel asks again for
// attributes that it has cached only if the mode would refuse (fuse_permission in
// fs/fuse/dir.c), while the refused caller waits.
func (t *Tripwire) hiddenMiss(r fuseRequest) (miss, bool) {
	n := t.fs.tree.get(r.node)
	if n == nil || !n.covers || n.dir() || r.tid == 0 || t.config.Reads {
		return miss{}, false
	}
	path := n.coveredPath()
	return miss{tid: r.tid, path: path, name: path[strings.LastIndexByte(path, '/')+1:], hidden: true}, true
}

// record makes the event of a look-up. False means that it is not an event, because the
// path is missing on the host too.
func (t *Tripwire) record(m miss, a pendingCall) bool {
	looked := m.path
	e := event.Event{Sensor: event.Tripwire, Action: event.FileLookup, Object: a.path, Verdict: event.Denied, Layer: event.LayerView,
		Error: "ENOENT", Process: t.process(a), Detail: map[string]string{}}
	if m.hidden {
		if !a.reads {
			return true // asked again for another reason, or reported by the recorder of calls
		}
		e.Action, e.Layer, e.Rule, e.Error = event.FileOpen, event.LayerHidden, t.rule(m.path), "EACCES"
	}
	a.describe(e.Detail)
	found := a.absolute()
	if other := fromDir(a.secondDir, a.second); !paths.Within(looked, found) && paths.Within(looked, other) {
		a.path, a.dir, found = a.second, a.secondDir, other
		e.Object = a.path
	}
	switch {
	case a.path == "":
		// Only the first name that is missing is known, not what would follow.
		e.Object, e.Detail["partial"] = looked, "true"
	case paths.Within(looked, found):
		if t.quiet.contains(found) {
			return true
		}
		e.Resolved = found
	case a.executes:
		// A program that exists, whose interpreter does not.
		e.Object, e.Detail["for"] = looked, a.path
	default: // there was a link on the way
		e.Resolved = leadsTo(a.tid, found, looked)
	}
	if e.Resolved == e.Object {
		e.Resolved = ""
	}
	if !m.hidden && t.config.Ordinary != nil && t.config.Ordinary(e, looked) {
		return false
	}
	t.flood.add(e)
	return true
}

func (t *Tripwire) rule(path string) string {
	if t.config.Rule == nil {
		return ""
	}
	return t.config.Rule(path)
}

// describe adds how it was asked.
func (a pendingCall) describe(detail map[string]string) {
	if a.call != "" {
		detail["call"] = a.call
	}
	if a.tid != 0 && a.tid != a.pid {
		detail["thread"] = strconv.Itoa(a.tid)
	}
	if a.creates {
		detail["creates"] = "true"
	}
}

// mostLinks is how many the kernel follows in one path (path_resolution(7)).
const mostLinks = 40

// leadsTo follows the links of path, as the thread tid sees them, up to looked, and
// says where the rest of it would be. It is looked where no way leads there: what
// was a link may be none any more, and those of /proc are another's for us.
func leadsTo(tid int, path, looked string) string {
	root := "/proc/" + strconv.Itoa(tid) + "/root"
	at, rest := "", strings.Split(strings.TrimPrefix(path, "/"), "/")
	for len(rest) > 2 && rest[0] == "proc" && rest[2] == "root" { // a process's root, and none inside has another
		rest = rest[3:]
	}
	for links := 0; len(rest) > 0 && links <= mostLinks; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
			continue
		}
		next := at + "/" + name
		if next == looked {
			return strings.TrimSuffix(looked+"/"+strings.Join(rest, "/"), "/")
		}
		to, err := os.Readlink(root + next)
		if err != nil {
			at = next
			continue
		}
		links++
		rest = append(strings.Split(to, "/"), rest...)
		if strings.HasPrefix(to, "/") {
			at = ""
		}
	}
	return looked
}

func (t *Tripwire) process(a pendingCall) event.Process {
	p := event.Process{PID: a.pid}
	if t.config.Process != nil && a.pid != 0 {
		p = t.config.Process(a.pid)
		p.PID = a.pid
	}
	if a.dir != "" && a.cwd {
		p.Cwd = a.dir
	}
	return p
}

// observe hands an event over.
func (t *Tripwire) observe(e event.Event) {
	put := t.config.Sink.Observe
	if e.Sensor == event.Honey {
		put = t.config.Honeytokens.Sink.Emit
	}
	if err := put(e); err != nil {
		t.failed.set(err)
	}
}
