//go:build linux

package supervise

import (
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// Honeytokens are files of the root of the view that no program has a reason to open.
type Honeytokens struct {
	// Details are additional details for the events of each, by its path.
	Details map[string]map[string]string

	// Sink gets the events. A process that touches a honeytoken waits until Emit returns.
	Sink Sink
}

// honeytoken marks the files.
func (t *tree) honeytoken(files map[string]map[string]string) error {
	for path := range files {
		n := t.find(path)
		if n == nil || n.kind() != unix.S_IFREG {
			return fmt.Errorf("placing the honeytoken %s: there is no such file", path)
		}
		n.honeytoken = path
	}
	return nil
}

// attrFor is how many seconds the kernel may cache the attributes of n. For a
// honeytoken it is 0: then the kernel asks for them whenever it checks permissions, so
// at each open and whatever name it has, before it opens (fuse_permission in
// fs/fuse/dir.c).
func (n *node) attrFor() uint64 {
	if n.honeytoken != "" {
		return 0
	}
	return fuseForever
}

// touch is what is done to a honeytoken.
type touch struct {
	tid        int // in the inner pid namespace
	honeytoken string
	operation  string
}

// touchFor reports whether r does something to a honeytoken; for a request for
// attributes only the call behind it can show that. It runs before r is answered. The
// caller holds t.mu.
func (t *Tripwire) touchFor(r fuseRequest) (touch, bool) {
	n := t.fs.tree.get(r.node)
	if n == nil || !t.fs.sealed || r.tid == 0 || t.config.Honeytokens.Sink == nil {
		return touch{}, false
	}
	operation := ""
	switch r.op {
	case fuseGetattr:
		operation = "open"
	case fuseRead:
		operation = "read"
	case fuseWrite:
		operation = "write"
	case fuseSetattr:
		if in, _, ok := r.splitFixed(4); ok && binary.LittleEndian.Uint32(in)&fuseSetSize != 0 {
			operation = "write"
		}
	case fuseRename, fuseRename2:
		operation = "rename"
		if n = t.renamedToken(n, r); n == nil {
			return touch{}, false
		}
	}
	return touch{r.tid, n.honeytoken, operation}, n.honeytoken != "" && operation != ""
}

// renamedToken is the honeytoken that r gives another name; nil for none.
func (t *Tripwire) renamedToken(dir *node, r fuseRequest) *node {
	in, errno := parseRename(r)
	if errno != 0 {
		return nil
	}
	if n := dir.child(in.name); n != nil && n.honeytoken != "" {
		return n
	}
	if to := t.fs.tree.get(in.to); to != nil && in.flags&unix.RENAME_EXCHANGE != 0 {
		return to.child(in.other)
	}
	return nil
}

// opensBy reports whether a call opens the file whose attributes the kernel requests
// during the call. An unknown call may.
func opensBy(call string) bool {
	switch call {
	case "", "open", "openat", "openat2", "creat", "truncate", "execve", "execveat", "uselib", "swapon", "acct":
		return true
	}
	return false
}

// tellPatience is how long to keep trying to identify a call that may open a
// honeytoken: on a busy machine its thread may not have gone to sleep yet. It waits for
// us.
const tellPatience = 200 * time.Millisecond

// recordTouch records that a honeytoken was touched.
func (t *Tripwire) recordTouch(w touch) {
	a := t.inspect(w.tid)
	if w.operation == "open" {
		for end := time.Now().Add(tellPatience); a.call == "" && a.tid != 0 && time.Now().Before(end); {
			a = t.inspect(w.tid)
		}
		if a.tid == 0 || !opensBy(a.call) { // a dead thread opens nothing
			return
		}
	}
	e := event.Event{Sensor: event.Honey, Action: event.HoneyRead, Object: w.honeytoken, Verdict: event.Allowed,
		Process: t.process(a), Detail: maps.Clone(t.config.Honeytokens.Details[w.honeytoken])}
	e.Detail[w.operation] = "1"
	if w.operation != "open" && w.operation != "rename" {
		a.call = "" // it is the operation
	}
	a.creates = false // it is there
	a.describe(e.Detail)
	t.flood.addBy(e, w.operation+a.call)
}

// marked reports whether an event must not be summarised in a flood of others.
func (t *Tripwire) marked(e event.Event) bool {
	return e.Sensor == event.Honey || t.config.Marked != nil && t.config.Marked(e)
}
