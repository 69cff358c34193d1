//go:build linux

package supervise

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// change is a change outside of what the view lets be written, on its way to a
// human and to the host's file system. Its goroutine has it alone.
type change struct {
	call  call
	event event.Event
	op    string // as event.Attempt has it
	path  string // inside, absolute, as far as links in view lead
	to    string // of a rename
	at    hostPlace
	dest  hostPlace
	who   event.Process
	above string // program run by the parent of who
	umask uint32
}

// carries are the operations that are carried out when a human allows them. Any other
// fails as it would without rules of consent.
var carries = map[string]string{
	event.FileWrite: "write", event.FileMkdir: "mkdir", event.FileUnlink: "unlink",
	event.FileRename: "rename", event.FileChmod: "chmod", event.FileTruncate: "truncate",
}

// askOutside asks about a call that the boundary will refuse, and reports whether it did:
// then the call is answered later. first is what was foreseen, and place where the
// first path leads.
func (s *Supervisor) askOutside(c *call, e *event.Event, first outcome, place string) bool {
	op := carries[e.Action]
	if op == "" || c.refused || c.blind || !s.isCarriable(c, first) {
		return false
	}
	n := *c.notification
	ch := &change{call: *c, event: *e, op: op, path: place, who: c.proc.full(), above: c.proc.parents.path}
	ch.call.notification = &n
	if c.info.shape == shapeTwo {
		ch.to = s.to.absolutePath()
	}
	if sum, ok := s.hashes.lastDigest(c.proc.now.is); ok {
		ch.who.SHA256 = sum.hex()
	}
	s.workingDirectory(c, &ch.who)
	ch.umask = s.umask(c)
	if s.wait(&n, func(ctx context.Context) { s.change(ctx, ch) }) {
		return true
	}
	c.refuse(event.Ruling{Reason: tooMany})
	c.refusedBy(e)
	return false
}

// isCarriable reports whether a call is of the kind that a human may allow: where it
// leads is outside of the view, or in view for reading alone.
func (s *Supervisor) isCarriable(c *call, first outcome) bool {
	switch c.info.shape {
	case shapeTwo:
		// Between the view and the outside there is no renaming, as between mounts.
		return isBeyondWritable(&s.at) && isBeyondWritable(&s.to) && s.at.endsInName() && s.to.endsInName() && c.flag()&^unix.RENAME_NOREPLACE == 0
	case shapeOpen:
		if c.flags&^openCarried != 0 || c.flags&unix.O_ACCMODE == unix.O_ACCMODE {
			return false
		}
	case shapePath:
	default:
		return false
	}
	if !s.at.endsInName() && c.info.action != event.FileMkdir {
		return false
	}
	if c.private {
		return s.unmade(first)
	}
	return first.verdict == event.Denied && (first.layer == event.LayerView || first.layer == event.LayerReadonly) && isBeyondWritable(&s.at)
}

// unmade reports whether a change of a private tree is presented as one of the host:
// what the private tree has itself is changed there, without a question.
func (s *Supervisor) unmade(first outcome) bool {
	at := &s.at
	missing := first.errno == "ENOENT" && (first.verdict == event.Allowed || first.layer == event.LayerView)
	return !at.exists && !at.magic && at.unknown == "" && (first.errno == "" && first.verdict == event.Allowed || missing) && s.isAskedAbout(at.absolutePath())
}

// stray is the refusal of a directory for a worktree that would go with the private home.
var stray = event.Ruling{Rule: event.KeptWorktrees, Reason: "the worktree would be lost at the end: make it in the workspace, or begin with: holdfast run --worktrees DIR"}

// makesStray reports whether a call makes such a directory (git-worktree(1)), or would make
// it where nothing is in view; o is what was foreseen. The command line is what the process
// says of itself: this spares git's users a loss, and holds nobody.
func (s *Supervisor) makesStray(c *call, o outcome) bool {
	lost := c.private && o.verdict == event.Allowed && o.errno == "" || o.layer == event.LayerView
	if !lost || c.info.action != event.FileMkdir || filepath.Base(c.proc.now.path) != "git" {
		return false
	}
	argv := s.commandLine(c.proc)
	return slices.Contains(argv, "worktree") && slices.Contains(argv, "add")
}

// isAskedAbout reports whether a change of path, which is in a private tree, is asked about.
func (s *Supervisor) isAskedAbout(path string) bool {
	return s.config.Asked != nil && s.config.Asked(path)
}

// isMissingOnHost reports whether ch leads to what the host has not either: then it fails
// inside as it would there, and no human is asked.
func (ch *change) isMissingOnHost() bool {
	makes := ch.op == "mkdir" || ch.op == "write" && ch.call.flags&unix.O_CREAT != 0
	return ch.call.private && (ch.at.name == "" || !ch.at.exists && !makes)
}

// flag is the last argument of a call on two paths, where it has one.
func (c *call) flag() uint64 { return c.arg(c.info.flags) }

// isBeyondWritable reports whether a path leads to where the view allows no writing, without
// being what it hides or protects.
func isBeyondWritable(at *location) bool {
	if at.magic || at.above || at.unknown != "" || !strings.HasPrefix(at.absolutePath(), "/") {
		return false
	}
	return at.tree == nil || at.tree.Access == policy.Read
}

// endsInName reports whether a path ends in a name: what has dots or a slash at its end
// is a directory, or an error that is the kernel's to give.
func (s *location) endsInName() bool {
	name := s.asked[bytes.LastIndexByte(s.asked, '/')+1:]
	return len(name) > 0 && string(name) != "." && string(name) != ".."
}

// absolutePath returns the path that s leads to.
func (s *location) absolutePath() string {
	switch {
	case s.dir == nil:
		return s.place
	case len(s.name) == 0:
		return s.dir.real
	}
	return join(s.dir.real, s.name)
}

// umask of the caller; 077 where it cannot be read.
func (s *Supervisor) umask(c *call) uint32 {
	field := sys.StatusField(c.proc.readEntry(c.tid, "status", make([]byte, 512)), "Umask")
	if len(field) == 1 {
		if mask, err := strconv.ParseUint(field[0], 8, 32); err == nil {
			return uint32(mask)
		}
	}
	return 0o077
}

// change asks about ch, and carries it out when a human allowed it.
func (s *Supervisor) change(ctx context.Context, ch *change) {
	c := &ch.call
	ch.locate()
	asked := event.Ruling{Verdict: event.Allowed}
	if !ch.isMissingOnHost() {
		asked = s.config.Gate.Judge(ch.attempt())
	}
	r := await(ctx, asked)
	if r.Rule == "" {
		r.Rule = asked.Rule
	}
	granted := r.Granted || asked.Verdict == event.Unknown
	switch {
	case r.Verdict != event.Allowed:
		c.refuse(r)
	case granted:
		d := s.carryOut(ctx, ch)
		s.deliver(ch, d, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetHeld(c)
	if c.refused {
		c.refusedBy(&ch.event)
		s.finish(c, &ch.event)
		return
	}
	s.asWithout(c)
}

// asWithout lets c go on as without rules of consent: its path is found once more,
// and what it did is compared. The thread has the ids of the task then, as that of
// the receiver, and ends with its goroutine.
func (s *Supervisor) asWithout(c *call) {
	runtime.LockOSThread()
	s.takeIDs()
	c.judged, c.now = true, s.now()
	s.file(c)
}

// attempt is ch as the rules of consent see it.
func (ch *change) attempt() event.Attempt {
	op := ch.op
	if op == "write" && !ch.at.exists && ch.call.flags&unix.O_CREAT != 0 {
		op = "create"
	}
	return event.Attempt{Kind: event.KindFile, Process: ch.who, ParentExecutable: ch.above, Path: ch.at.path, Operation: op, To: ch.dest.path}
}

// done is what became of a change.
type done struct {
	fd    int // to hand in; -1 for none
	errno unix.Errno
	why   string // it was not carried out
}

// deliver records what became of ch, and answers.
func (s *Supervisor) deliver(ch *change, d done, r event.Ruling) {
	c := &ch.call
	if d.fd >= 0 {
		d = s.inlet(ch, d, r)
	}
	if d.fd >= 0 {
		defer unix.Close(d.fd)
	}
	if !s.settleChange(ch, d, r) {
		return
	}
	// Without the lock: a descriptor is taken by the caller itself, when it runs.
	var errno unix.Errno
	switch {
	case s.failed.err() != nil:
		errno = s.listener.result(c.id, unix.EPERM)
	case d.fd >= 0 && d.errno == 0:
		errno = s.listener.handIn(c.id, d.fd, c.flags&unix.O_CLOEXEC != 0)
		if errno != 0 && errno != unix.ENOENT { // no room for it, among others
			errno = s.listener.result(c.id, errno)
		}
	default:
		errno = s.listener.result(c.id, d.errno)
	}
	s.handleAnswered(errno)
}

// inlet exchanges the descriptor of a file outside for one to write to it through.
func (s *Supervisor) inlet(ch *change, d done, r event.Ruling) done {
	fd, err := s.inlets.open(d.fd, fileLimit(ch.call.tid), ch.call.flags&unix.O_NONBLOCK != 0, r.Over)
	if err != nil {
		return done{fd: -1, errno: asErrno(err)}
	}
	return done{fd: fd}
}

// settleChange records what became of ch. False means that it was not carried
// out, and is answered already.
func (s *Supervisor) settleChange(ch *change, d done, r event.Ruling) bool {
	c, e := &ch.call, &ch.event
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.why != "" {
		c.refuse(event.Ruling{Rule: r.Rule, Reason: d.why})
		s.forgetHeld(c)
		c.refusedBy(e)
		s.finish(c, e)
		return false
	}
	s.forgetHeld(c)
	e.Verdict, e.Layer, e.Rule, e.Error = event.Allowed, "", r.Rule, ""
	if d.errno != 0 {
		e.Error = unix.ErrnoName(d.errno)
	}
	if ch.at.path != e.Object {
		e.Resolved = ch.at.path
	}
	c.add("by", "holdfast") // on the host, instead of the process
	e.Detail, e.Process = c.detail, c.proc.eventProcess()
	s.observe(e)
	s.resolver.flush()
	return true
}
