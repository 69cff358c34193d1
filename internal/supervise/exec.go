//go:build linux

package supervise

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const (
	maxReaders     = 8   // executables that are read at a time; one more blocks the receiver
	maxInterpreter = 4   // as the kernel's, of scripts that are interpreted by scripts
	headSize       = 256 // BINPRM_BUF_SIZE: how far the kernel looks for the interpreter
)

// image is one file that an execution needs: a script, or a program.
type image struct {
	path string
	is   identity
	fd   int // open for reading; -1 when it is known already or could not be opened
	sum  digest
	have bool   // sum is set
	why  string // it is not
	line string // what follows #!, "" for a program
	shut bool   // it, or its loader, may not be read

	loader string // of a program that is linked dynamically
}

// execCall is an execve(2) or execveat(2) on its way through.
type execCall struct {
	call   call
	event  event.Event
	images []image
	doomed bool

	name   string // of the file as the kernel calls it, which an interpreter gets as its argument
	cut    bool   // the event has not all arguments
	unread bool   // not even what is there of them is sure
	env    *texts // its variables, where a rule of consent could be about it; nil where they were not read

	// Where rules of consent are about executions.
	was    *execCall     // as it was when a human was asked about it; nil when none was
	ruling event.Ruling  // the answer
	trace  bool          // the program that runs then is compared with this
	errno  syscall.Errno // that it is foreseen to get, and gets from us
}

// exec records an execution before it continues.
func (s *Supervisor) exec(c *call) {
	l := &execCall{call: *c, event: event.Event{Action: event.ProcExec, Verdict: event.Allowed}}
	n := *c.notification // its buffer is used again while the executable is read
	l.call.notification = &n
	s.prepare(l)
}

// prepare finds out what will be executed: arguments, files and their hashes.
func (s *Supervisor) prepare(l *execCall) {
	c := &l.call
	s.begin(l)
	s.arguments(l)
	s.workingDirectory(c, &l.event.Process)
	if s.find(c, c.info.dir, c.info.path, s.path[:], !c.info.stay && s.execFollows(c), &s.at, &l.event) {
		o := s.foresee(c, &s.at, wantExec, false)
		if o.errno == "" && s.at.stat.Mode&unix.S_IFMT != unix.S_IFREG {
			o.errno = "EACCES"
		}
		l.event.Object, l.event.Resolved = string(s.at.asked), s.at.resolved()
		l.name = c.fileName(l.event.Object)
		l.event.Verdict, l.event.Layer, l.event.Rule, l.event.Error = o.verdict, o.layer, o.rule, o.errno
		if o.errno == "" {
			s.chain(l)
		}
	}
	l.doomed = l.event.Error != "" || l.event.Verdict == event.Denied
	for i := range l.images {
		if l.images[i].fd >= 0 {
			s.later(l)
			return
		}
	}
	s.letContinue(l)
}

func (s *Supervisor) execFollows(c *call) bool {
	return c.info.flags < 0 || c.arg(c.info.flags)&unix.AT_SYMLINK_NOFOLLOW == 0
}

// later reads what is not known yet on another goroutine, and then launches.
func (s *Supervisor) later(l *execCall) {
	s.readers <- struct{}{}
	s.reading.Add(1)
	go func() {
		defer s.reading.Done()
		for i := range l.images {
			if im := &l.images[i]; im.fd >= 0 {
				im.read(s.hashes, s.isUnwritable(im.path))
			}
		}
		<-s.readers
		s.mu.Lock()
		defer s.mu.Unlock()
		s.letContinue(l)
	}()
}

// read determines the content of an image, and closes it. The content of a file that
// changes meanwhile is unknown, and the rules of consent take it for anything; so a
// file that only got another name or mode, which changes no content, is read once more.
func (im *image) read(h *hashes, lasting bool) {
	sum, err := h.sum(im.fd, im.is, lasting)
	for range 2 {
		var st unix.Stat_t
		if err != errChanged || fstatat(im.fd, empty, &st, unix.AT_EMPTY_PATH) != 0 {
			break
		}
		now := identityOf(&st)
		if now.size != im.is.size || now.mtime != im.is.mtime {
			break
		}
		im.is = now
		sum, err = h.sum(im.fd, im.is, lasting)
	}
	unix.Close(im.fd)
	im.fd, im.sum, im.have = -1, sum, err == nil
	if err != nil {
		im.why = err.Error()
	}
}

// isUnwritable reports whether nothing inside can write a file.
func (s *Supervisor) isUnwritable(path string) bool {
	t := s.resolver.places.treeFor(path)
	return t != nil && t.Access == policy.Read
}

// letContinue records an execution once all that can be known of it is known, and lets it
// continue.
func (s *Supervisor) letContinue(l *execCall) {
	l.describe()
	l.refuseUnseen()
	if !s.gated(event.KindExec) || !s.consent(l) {
		s.conclude(l)
	}
}

// conclude records and answers.
func (s *Supervisor) conclude(l *execCall) {
	c := &l.call
	s.forgetHeld(c)
	e, p := &l.event, c.proc
	l.remember(s.now())
	number := s.complete(l)
	e.Detail = c.detail
	e.Sensor = event.Syscall
	p.known = true
	err := s.failed.err()
	if err == nil {
		record := s.config.Sink.Emit
		if e.Error == "ENOENT" { // one step of a search: nothing will be executed
			record = s.config.Sink.Observe
		}
		if err = record(*e); err != nil {
			s.fail(fmt.Errorf("recording an execution: %w", err))
		}
	}
	if err != nil {
		s.listener.answer(c.id, unix.EPERM)
		return
	}
	x := &execution{doomed: l.doomed, before: p.now, tid: c.tid, at: s.now(), program: program{exec: number, path: e.Process.Executable}}
	if n := len(l.images); n > 0 {
		x.is = l.images[n-1].is
	}
	if !l.doomed {
		s.allow(x.is)
		p.runs(x.program)
		s.running.Store(p.pid, number)
	}
	p.pending = x
	if l.errno == 0 {
		l.errno = c.refusal
	}
	if l.trace && l.errno == 0 {
		x.judged, x.argv, x.cut, x.env = !l.doomed && l.isJudgeable(), l.commandLine(), l.cut, l.env
		s.trace(&traced{call: c, was: x})
		return
	}
	s.handleAnswered(s.listener.answer(c.id, l.errno))
	if c.blind {
		s.killHidden(c, p)
	}
}

// complete writes the event of an execution and gives it its number.
func (s *Supervisor) complete(l *execCall) uint64 {
	c, p, e := &l.call, l.call.proc, &l.event
	s.execs++
	e.Process.PID, e.Process.Exec, e.Process.Parent, e.Process.ParentExec = p.pid, s.execs, p.parent, p.parents.exec
	if p.now.exec != 0 && p.known {
		c.add("replaces", strconv.FormatUint(p.now.exec, 10))
	}
	if c.refused {
		c.refusedBy(e)
		l.doomed = true
	}
	if !s.listener.valid(c.id) {
		e.Verdict, e.Layer, e.Rule, e.Error = event.Unknown, "", "", ""
		c.unknown(diedFirst)
		l.doomed = true
	}
	return s.execs
}

// describe writes what the images are into the event. A script is run by its
// interpreter, which is the executable.
func (l *execCall) describe() {
	if len(l.images) == 0 {
		return
	}
	c, last := &l.call, &l.images[len(l.images)-1]
	l.event.Process.Executable = last.path
	if last.have {
		l.event.Process.SHA256 = last.sum.hex()
	} else {
		c.unknown("sha256: " + last.why)
	}
	if len(l.images) == 1 {
		return
	}
	first := &l.images[0]
	c.add("script", first.path)
	if first.have {
		c.add("script_sha256", first.sum.hex())
	} else {
		c.unknown("script_sha256: " + first.why)
	}
	var lines []string
	for _, im := range l.images[:len(l.images)-1] {
		lines = append(lines, im.line)
	}
	c.add("interpreter", strings.Join(lines, " <- "))
}

// chain opens the file that s.at is, and its interpreters.
func (s *Supervisor) chain(l *execCall) {
	c := &l.call
	for range maxInterpreter + 1 {
		im := s.image(c, &s.at)
		l.images = append(l.images, im)
		if im.line == "" {
			s.loaded(l, &l.images[len(l.images)-1])
			return
		}
		path, _, _ := strings.Cut(im.line, " ")
		path, _, _ = strings.Cut(path, "\t")
		s.resolver.locate(c.proc, c.tid, unix.AT_FDCWD, append(s.path2[:0], path...), true, c.now, &s.at)
		if o := s.foresee(c, &s.at, wantExec, false); o.errno != "" || o.verdict != event.Allowed || s.at.unknown != "" {
			l.event.Error = o.errno
			if o.verdict == event.Denied {
				l.event.Verdict, l.event.Layer, l.event.Rule = o.verdict, o.layer, o.rule
			}
			return
		}
	}
	l.event.Error = "ELOOP"
}

// image opens one file, if it is not known what it holds.
func (s *Supervisor) image(c *call, at *location) image {
	im := image{is: identityOf(&at.stat), fd: -1}
	if im.path = at.resolved(); im.path == "" {
		im.path = string(at.asked)
	}
	if known, ok := s.hashes.lookupContent(im.is); ok {
		im.sum, im.line, im.loader, im.have = known.sum, known.line, known.loader, true
		return im
	}
	fd, err := s.openLocation(c, at)
	if err != nil {
		im.why, im.shut = unix.ErrnoName(asErrno(err)), forbids(asErrno(err))
		return im
	}
	var st unix.Stat_t
	if errno := fstatat(fd, empty, &st, unix.AT_EMPTY_PATH); errno != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		im.why = "it was replaced"
		return im
	}
	im.is, im.fd = identityOf(&st), fd
	var head [headSize]byte
	n, _ := unix.Pread(fd, head[:], 0)
	im.line, im.loader = interpreter(head[:max(n, 0)]), loader(fd)
	return im
}

// openLocation opens a regular file for reading.
func (s *Supervisor) openLocation(c *call, at *location) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	switch {
	case at.magic:
		r := s.resolver // r.name is the descriptor still
		return unix.Openat(c.proc.base(), unix.ByteSliceToString(r.name), flags, 0)
	case at.dir != nil && len(at.name) > 0:
		return unix.Openat(at.dir.fd, string(at.name), flags|unix.O_NOFOLLOW, 0)
	}
	return -1, unix.EACCES
}

// interpreter reads the first line of a script as the kernel does: without surrounding
// blanks, and "" if it is not a script.
func interpreter(head []byte) string {
	rest, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	if i := bytes.IndexByte(rest, 0); i >= 0 {
		rest = rest[:i]
	}
	return string(bytes.Trim(rest, " \t"))
}
