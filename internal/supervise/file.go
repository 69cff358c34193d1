//go:build linux

package supervise

import (
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// file records a call on one or two paths.
func (s *Supervisor) file(c *call) {
	e := event.Event{Action: c.info.action, Verdict: event.Allowed}
	if c.info.action == event.FileXattr {
		s.attributeName(c)
	}
	if c.info.shape == shapeFD {
		s.descriptor(c, &e)
		s.finish(c, &e)
		return
	}
	gated, place := !c.judged && s.gated(event.KindFile), ""
	w, follow, creates := s.intentOf(c, &e)
	changes := w.changes() || creates
	if !s.findFirst(c, changes, follow, w == wantCreate || w == wantRemove, &e) {
		s.finishFile(c, &e, changes)
		return
	}
	var o outcome
	if c.info.shape != shapeTwo {
		o = s.foresee(c, &s.at, w, creates)
	}
	e.Object, e.Resolved = string(s.at.asked), s.at.resolved()
	flush := s.mayRedirect(c, &s.at)
	if gated && (o.verdict == event.Denied || c.info.shape == shapeTwo || c.private) {
		place = s.at.absolutePath() // its name is overwritten by that of the second
	}
	switch c.info.shape {
	case shapeTwo:
		o = s.second(c)
	case shapeSymlink:
		o = s.linkText(c, o)
	}
	e.Verdict, e.Layer, e.Rule, e.Error = o.verdict, o.layer, o.rule, o.errno
	s.describe(c)
	if s.makesStray(c, o) {
		c.refuse(stray)
	} else if place != "" && s.askOutside(c, &e, o, place) {
		return
	}
	s.finishFile(c, &e, changes)
	if flush {
		s.resolver.flush()
	}
}

// intentOf returns what c does with its path, and whether the last name of it is followed.
func (s *Supervisor) intentOf(c *call, e *event.Event) (w want, follow, creates bool) {
	if c.opens() {
		return s.openIntent(c, e)
	}
	stay := c.info.stay || c.info.shape == shapePath && c.flag()&unix.AT_SYMLINK_NOFOLLOW != 0
	return c.info.want, !stay, false
}

// linkText reads the text of a new link; o is the outcome of making it.
func (s *Supervisor) linkText(c *call, o outcome) outcome {
	text, whole, errno := s.memory.text(c.tid, c.arg(c.info.path2), s.path2[:])
	c.add("to", string(text))
	switch {
	case errno != 0:
		c.noteUnreadable("to", errno)
	case !whole:
		return allowed("ENAMETOOLONG")
	case len(text) == 0:
		return allowed("ENOENT")
	}
	return o
}

// findFirst finds the path, or the first of two; asIs is that of the resolver. It notes
// whether the effect of a call that changes files must be compared.
func (s *Supervisor) findFirst(c *call, changes, follow, asIs bool, e *event.Event) bool {
	s.at, s.to = location{}, location{}
	if c.shared = changes && s.reachable(c); c.shared {
		c.began = time.Now().UnixNano()
	}
	s.resolver.asIs = asIs
	defer func() { s.resolver.asIs = false }()
	return s.find(c, c.info.dir, c.info.path, s.path[:], follow, &s.at, e)
}

// find reads a path and finds where it leads. False means that the event says
// all that there is to say.
func (s *Supervisor) find(c *call, dir, path int8, buf []byte, follow bool, at *location, e *event.Event) bool {
	text, whole, errno := s.memory.text(c.tid, c.arg(path), buf)
	if !whole {
		e.Object = string(text)
		s.noteUnread(c, e, "path", errno)
		return false
	}
	return s.findTarget(c, c.dirfd(dir), text, buf, follow, at, e)
}

// findTarget finds where text leads, which is in buf. False means what it does for find.
func (s *Supervisor) findTarget(c *call, dirfd int, text, buf []byte, follow bool, at *location, e *event.Event) bool {
	if !s.openRoot(c.proc) {
		e.Object, e.Verdict = string(text), event.Unknown
		c.unknown("root of the view")
		return false
	}
	if c.unnamed = len(text) == 0 && dirfd != unix.AT_FDCWD && c.info.flags >= 0 && c.arg(c.info.flags)&unix.AT_EMPTY_PATH != 0; c.unnamed {
		text = append(strconv.AppendInt(append(buf[:0], "/proc/self/fd/"...), int64(dirfd), 10), 0)
		text = text[:len(text)-1]
		follow = true
	}
	s.resolver.locate(c.proc, c.tid, dirfd, text, follow, c.now, at)
	if at.unknown != "" {
		e.Object, e.Verdict = string(text), event.Unknown
		c.unknown(at.unknown)
		c.blind = c.blind || at.blind
		return false
	}
	return true
}

// noteUnread completes an event whose path could not be read: either the kernel
// will not be able to either, or we have no right to.
func (s *Supervisor) noteUnread(c *call, e *event.Event, what string, errno syscall.Errno) {
	switch errno {
	case 0:
		e.Error = "ENAMETOOLONG"
	case unix.EFAULT:
		e.Verdict, e.Error = event.Unknown, "EFAULT"
		c.unknown(what + ": no readable memory")
	default:
		e.Verdict = event.Unknown
		c.noteUnreadable(what, errno)
	}
}

// openIntent reads the flags of an open.
func (s *Supervisor) openIntent(c *call, e *event.Event) (w want, follow, creates bool) {
	c.flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC // creat(2)
	if c.info.flags >= 0 {
		c.flags = c.arg(c.info.flags)
	}
	const path = unix.O_PATH
	switch f := c.flags; {
	case f&path != 0: // only a handle: what is asked for is ignored
		return wantRead, f&unix.O_NOFOLLOW == 0, false
	case f&unix.O_ACCMODE == unix.O_RDONLY && f&(unix.O_CREAT|unix.O_TRUNC) == 0:
		return wantRead, f&unix.O_NOFOLLOW == 0, false
	case f&unix.O_ACCMODE == unix.O_RDWR:
		w = wantBoth
	case f&unix.O_ACCMODE == unix.O_RDONLY && f&unix.O_TRUNC == 0:
		w = wantRead
	case f&unix.O_ACCMODE == unix.O_RDONLY:
		w = wantBoth // it is emptied, and read
	default:
		w = wantWrite
	}
	e.Action = event.FileWrite
	creates = c.flags&unix.O_CREAT != 0
	return w, c.flags&unix.O_NOFOLLOW == 0 && c.flags&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL, creates
}

// second finds the other path of a call on two, and predicts the outcome of both.
func (s *Supervisor) second(c *call) outcome {
	s.at.name = append(s.atName[:0], s.at.name...) // what it was in is used again
	links := c.info.action == event.FileLink
	follow := links && c.flag()&unix.AT_SYMLINK_FOLLOW != 0
	if !links && c.flag()&unix.RENAME_EXCHANGE != 0 {
		c.add("how", "exchange")
	}
	var other event.Event
	s.resolver.asIs = !links
	found := s.find(c, c.info.dir2, c.info.path2, s.path2[:], follow, &s.to, &other)
	s.resolver.asIs = false
	if !found {
		c.add("to", other.Object)
		return outcome{verdict: other.Verdict, errno: other.Error}
	}
	c.add("to", string(s.to.asked))
	if r := s.to.resolved(); r != "" {
		c.add("to_resolved", r)
	}
	c.changes(&s.at)
	if links {
		return s.linked(c)
	}
	c.changes(&s.to)
	return s.foreseeRename(c)
}

// descriptor records a call on a descriptor.
func (s *Supervisor) descriptor(c *call, e *event.Event) {
	fd := int(int32(c.args[c.info.dir]))
	c.add("fd", strconv.Itoa(fd))
	s.describe(c)
	text, errno := s.resolver.base(c.proc, c.tid, fd)
	switch {
	case errno == unix.ENOENT && len(text) > 0:
		e.Object = string(text) // it was removed, and can still be changed
	case errno == unix.ENOENT:
		e.Error = "EBADF"
	case errno != 0:
		e.Verdict = event.Unknown
		c.noteUnreadable("path", errno)
	case s.resolver.isHandle(c.proc):
		e.Object, e.Error = string(text), "EBADF"
	default:
		e.Object = string(text)
		if len(text) == 0 || text[0] != '/' || !s.openRoot(c.proc) {
			return
		}
		// A descriptor that is open for a change stays so: mode and owner decide.
		s.resolver.locate(c.proc, c.tid, unix.AT_FDCWD, append(s.path[:0], text...), false, c.now, &s.at)
		o := s.foresee(c, &s.at, c.info.want, false)
		s.mayRedirect(c, &s.at)
		if o.layer == event.LayerView {
			o = s.judgeDescriptor(c)
		}
		e.Verdict, e.Layer, e.Rule, e.Error = o.verdict, o.layer, o.rule, o.errno
	}
}

// judgeDescriptor judges a change through a descriptor of a file that is not in view: it
// came from outside, so only its owner may change it.
func (s *Supervisor) judgeDescriptor(c *call) outcome {
	var st unix.Stat_t
	if s.resolver.statDescriptor(c.proc, c.tid, int(int32(c.args[c.info.dir])), &st) && c.proc.creds.uid != st.Uid && !c.proc.creds.owner {
		return denied(event.LayerPermissions, "", "EPERM")
	}
	return allowed("")
}

// attributeName reads the name of an extended attribute.
func (s *Supervisor) attributeName(c *call) {
	text, _, errno := s.memory.text(c.tid, c.arg(c.info.arg), s.path2[:xattrNameMax+1])
	c.attribute = string(text)
	c.add("name", c.attribute)
	if errno != 0 {
		c.noteUnreadable("name", errno)
	}
}

// describe adds what a call says other than its paths.
func (s *Supervisor) describe(c *call) {
	arg := c.arg(c.info.arg)
	switch c.info.action {
	case event.FileOpen, event.FileWrite:
		s.describeOpen(c, arg)
	case event.FileMkdir, event.FileChmod:
		c.add("mode", octal(arg))
	case event.FileChown:
		c.add("owner", owner(arg)+":"+owner(c.args[c.info.arg+1]))
	case event.FileMknod:
		c.add("type", nodeType(arg))
		c.add("mode", octal(arg))
	}
}

// describeOpen says how a file is opened.
func (s *Supervisor) describeOpen(c *call, mode uint64) {
	f := c.flags
	if f&unix.O_CREAT != 0 {
		c.add("mode", octal(mode))
	}
	if f&(unix.O_CREAT|unix.O_TRUNC|unix.O_EXCL|unix.O_APPEND|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0 && f&unix.O_PATH == 0 {
		c.add("how", openWords()[how(f)])
	}
}

func octal(mode uint64) string { return "0" + strconv.FormatUint(mode&0o7777, 8) }

func owner(id uint64) string { return strconv.FormatInt(int64(int32(id)), 10) }

func nodeType(mode uint64) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFCHR:
		return "character device"
	case unix.S_IFBLK:
		return "block device"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "file"
}

// how packs the flags that openWords has words for.
func how(f uint64) int {
	n := 0
	for i, flag := range [...]uint64{unix.O_CREAT, unix.O_EXCL, unix.O_TRUNC, unix.O_APPEND, unix.O_TMPFILE &^ unix.O_DIRECTORY} {
		if f&flag != 0 {
			n |= 1 << i
		}
	}
	return n
}

// openWords is made once, so that an event needs no text of its own.
var openWords = sync.OnceValue(func() (words [32]string) {
	for n := range words {
		for i, w := range [...]string{"create", "exclusive", "truncate", "append", "unnamed"} {
			if n&(1<<i) == 0 {
				continue
			}
			if words[n] != "" {
				words[n] += ","
			}
			words[n] += w
		}
	}
	return words
})
