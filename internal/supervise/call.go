//go:build linux

package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// call is one notification on its way through.
type call struct {
	*notification
	now       int64
	tid       int
	info      *callInfo
	proc      *proc
	refusal   syscall.Errno
	refused   bool
	layer     string // that refuses, "" for the filter
	rule      string // that does
	killed    bool   // its process, by us
	blind     bool   // the kernel hides its process from the supervisor
	unnamed   bool   // it is about a descriptor, by an empty path
	flags     uint64 // of open
	looks     bool   // it is an event only where it is refused
	private   bool   // it changes what a private tree has
	shared    bool   // another than its thread can change what its arguments say
	again     bool   // the kernel restarted it, because of a stop of ours
	judged    bool   // by the rules of consent, which let it go on
	began     int64  // when it was received, by the clock of files, in nanoseconds
	attribute string // name of an extended attribute, as far as it could be read
	detail    map[string]string
}

var unknownCall callInfo

// arg is argument i, 0 for none.
func (c *call) arg(i int8) uint64 {
	if i < 0 {
		return 0
	}
	return c.args[i]
}

// dirfd is the directory in argument i that a path is relative to.
func (c *call) dirfd(i int8) int {
	if i < 0 {
		return unix.AT_FDCWD
	}
	return int(int32(c.args[i]))
}

// add puts one more word into the detail of the event.
func (c *call) add(key, value string) {
	if c.detail == nil {
		c.detail = map[string]string{}
	}
	c.detail[key] = value
}

// notePrivate notes in the event of a successful private change that it vanishes with the
// run.
func (c *call) notePrivate(e *event.Event) {
	if c.private && e.Verdict == event.Allowed && e.Error == "" {
		c.add(event.DetailKept, event.KeptPrivate)
	}
}

// uncompared notes that the effect of c is not compared with its event, and why.
func (c *call) uncompared(why string) {
	c.add("compared", "no")
	c.add("reason", why)
}

// unknown notes what could not be found out.
func (c *call) unknown(what string) {
	if old := c.detail["unknown"]; old != "" {
		what = old + "; " + what
	}
	c.add("unknown", what)
}
