//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Supervisor receives the calls of one listener.
type Supervisor struct {
	config   Config
	listener *listener
	calls    []callInfo // by number
	memory   *memory
	resolver *resolver
	watch    *watch
	began    time.Time
	started  atomic.Bool
	served   chan struct{} // closed when Serve returned

	reading sync.WaitGroup // executables that are read
	readers chan struct{}  // bounds how many
	hashes  *hashes

	failed failure     // of the record
	hidden atomic.Bool // see Hidden

	waiting sync.WaitGroup // calls that wait for a human
	working sync.WaitGroup // of the goroutines that continue them

	running sync.Map // pid to the number of the program that it runs

	mu      sync.Mutex // guards what follows, and keeps the events of a process in order
	table   *procTable
	execs   uint64 // number of the last proc.exec
	baseEnv baseEnv

	judged  map[identity]bool // executables that the rules of consent let run
	first   identity          // executable of the first that called: the launch
	held    holding
	tracers tracers
	inlets  inlets
	lookups *flood
	quiet   expectations

	privileged bool // may look where the caller may not

	inFlight inFlight
	looked   looked
	sharing  bool // processes may have memory, working directory or descriptors in common

	alone bool      // owned by the receiver: the last call to be received was gone, or no process is left
	slice timeSlice // owned by the receiver

	// What the receiver writes one call into.
	at, to location
	atName [256]byte      // of at, while to is found
	ids    [2][][3]uint32 // of users and groups, see mapped
	path   [pathMax]byte
	path2  [pathMax]byte

	parts    [][]byte // of arguments
	batchBuf []byte
	long     []byte
}

// New takes over the listener of c, also when it fails.
func New(c Config) (_ *Supervisor, err error) {
	if c.Listener == nil {
		return nil, errors.New("supervising: no listener")
	}
	s := &Supervisor{config: c, memory: newMemory(), resolver: newResolver(newPlaces(c.View)), began: time.Now(),
		served: make(chan struct{}), readers: make(chan struct{}, maxReaders),
		hashes: newHashes(c.Hashes), quiet: newExpectations(c.Quiet), privileged: os.Geteuid() == 0, inFlight: inFlight{}, failed: failure{report: c.Failed}}
	s.lookups = newFlood(s.emit, c.Marked)
	defer func() {
		if err != nil {
			c.Listener.Close()
			err = fmt.Errorf("supervising: %w", err)
		}
	}()
	if c.Sink == nil {
		return nil, errors.New("no sink")
	}
	if s.listener, err = newListener(c.Listener); err != nil {
		return nil, err
	}
	if s.watch, err = newWatch(); err != nil {
		return nil, err
	}
	if s.table, err = newProcTable(c.Root, s.watch); err != nil {
		s.watch.close()
		return nil, err
	}
	s.table.gone = s.ended
	s.resolver.strong = os.Geteuid() == 0
	table := callTable()
	for nr, info := range table {
		for int(nr) >= len(s.calls) {
			s.calls = append(s.calls, callInfo{})
		}
		s.calls[nr] = info
	}
	return s, nil
}

// Serve receives calls until no process is left that could make one. It wants a
// goroutine of its own and may be called once.
//
// A call that was received is interrupted by nothing but the death of its caller
// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV). Just before that, a signal with a handler
// still ends it: it restarts if the handler was installed with SA_RESTART, and returns
// EINTR otherwise, as any blocking call would.
func (s *Supervisor) Serve() {
	s.started.Store(true)
	defer close(s.served)
	// Several receivers of one listener are all woken by each call. The thread ends
	// with this goroutine, because no other goroutine may have the ids that it takes.
	runtime.LockOSThread()
	s.takeIDs()
	if linux6(11) {
		s.serveDirectly()
		return
	}
	s.servePolling()
}

// assumeIDs gives this thread the ids that the command has, and leaves it all its
// capabilities: not even root may walk through a root that is served by a
// tripwire otherwise.
func assumeIDs(uid, gid int) error {
	if os.Geteuid() == uid && os.Getegid() == gid {
		return nil
	}
	return sys.TakeIDs(uid, gid)
}

// takeIDs gives this thread the ids of the task, for as long as it lasts.
func (s *Supervisor) takeIDs() {
	if err := assumeIDs(s.config.View.UID, s.config.View.GID); err != nil {
		s.fail(fmt.Errorf("recording system calls: switching to the ids of the task: %w", err))
	}
}

// now is the time since the start, in nanoseconds.
func (s *Supervisor) now() int64 { return int64(time.Since(s.began)) }

// handle answers one call and records it.
func (s *Supervisor) handle(n *notification, now int64) {
	s.inlets.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed.err() != nil {
		s.listener.answer(n.id, unix.EPERM)
		return
	}
	c := call{notification: n, now: now, tid: int(n.pid), again: s.inFlight.end(n)}
	if abi := foreignABI(n); abi != "" {
		s.foreign(&c, abi)
		return
	}
	if nr := int(n.nr); nr >= 0 && nr < len(s.calls) {
		c.info = &s.calls[nr]
	} else {
		c.info = &unknownCall
	}
	if c.info.action == event.FileLink {
		s.hidden.Store(true)
	}
	if s.config.Refuse != nil {
		c.refusal, c.refused = s.config.Refuse(uint32(n.nr), n.args)
	}
	c.looks = s.looks(&c)
	if c.proc = s.caller(&c); c.killed {
		s.listener.answer(n.id, unix.EPERM)
		return
	}
	shape := c.info.shape
	if shape == shapeExec && c.refused {
		shape = shapeNone // the filter's refusal: nothing is executed (AT_EXECVE_CHECK)
	}
	if c.looks {
		s.handleLookup(&c)
		return
	}
	switch shape {
	case shapeExec:
		s.exec(&c)
	case shapeNone:
		s.recordPlain(&c)
	case shapeSock:
		s.sock(&c)
	case shapeMessage, shapeMessages:
		s.messages(&c)
	default:
		s.file(&c)
	}
}

// caller finds the process of a call and brings what is known of it up to date.
func (s *Supervisor) caller(c *call) *proc {
	p := s.table.find(c.tid, c.now)
	if p == nil {
		// It is dying, or /proc cannot be read. The record continues without it.
		return &proc{pid: c.tid, dir: -1, pidfd: -1, proc: s.table.dir, known: true}
	}
	if p.pending != nil {
		s.confirmExec(c, p)
	}
	if s.config.Gate != nil && p.now.exec == 0 && !p.looked {
		s.judgeUnseen(c, p)
	}
	if !p.known && c.info.shape != shapeExec && !c.looks {
		s.recordProcess(p, nil)
	}
	return p
}

// answer lets the call continue, or refuses it, and reports whether the caller lived to
// see it. A caller that did was there all the time, so that what was read from it was
// its own.
func (s *Supervisor) answer(c *call) (alive bool) {
	refusal := syscall.Errno(0)
	if c.refused {
		refusal = c.refusal
	}
	return s.handleAnswered(s.listener.answer(c.id, refusal))
}

// handleAnswered handles the result of an answer, and reports whether the caller got it.
func (s *Supervisor) handleAnswered(errno syscall.Errno) bool {
	if errno != 0 && errno != unix.ENOENT { // ENOENT: the caller is gone
		s.fail(fmt.Errorf("answering a system call: %w", errno))
	}
	return errno == 0
}

// finish answers c, and records e, which is about it.
func (s *Supervisor) finish(c *call, e *event.Event) {
	s.reply(c, e)
	s.observe(e)
	if c.blind {
		s.killHidden(c, c.proc)
	}
}

// reply answers c, and puts into e what is known of it then.
func (s *Supervisor) reply(c *call, e *event.Event) {
	if c.blind {
		c.refused, c.refusal, c.layer = true, unix.EPERM, event.LayerPermissions
	}
	if c.refused {
		c.refusedBy(e)
	}
	if !s.answer(c) {
		e.Verdict, e.Layer, e.Rule, e.Error = event.Unknown, "", "", ""
		c.unknown(diedFirst)
	}
	c.notePrivate(e)
	e.Detail = c.detail
	e.Process = c.proc.eventProcess()
}

// diedFirst is why the outcome of a call is unknown if its caller is gone.
const diedFirst = "the process ended before its call was answered"

// recordPlain is a call of which only the name and arguments are recorded.
func (s *Supervisor) recordPlain(c *call) {
	e := event.Event{Action: event.SysCall, Object: s.name(uint32(c.nr)), Verdict: event.Allowed}
	c.add("args", hexes(c.args[:]))
	s.noteSharing(c)
	s.finish(c, &e)
}

// name of a system call.
func (s *Supervisor) name(nr uint32) string {
	if s.config.Name != nil {
		if n := s.config.Name(nr); n != "" {
			return n
		}
	}
	return "syscall " + strconv.FormatUint(uint64(nr), 10)
}

// observe hands an event to the sink.
func (s *Supervisor) observe(e *event.Event) {
	e.Sensor = event.Syscall
	s.emit(*e)
}

// emit gives an event to the sink.
func (s *Supervisor) emit(e event.Event) {
	if s.failed.err() != nil {
		return
	}
	if err := s.config.Sink.Observe(e); err != nil {
		s.fail(fmt.Errorf("recording what a process did: %w", err))
	}
}

func (s *Supervisor) failIf(err error) {
	if err != nil {
		s.fail(err)
	}
}

// fail makes every further call return EPERM.
func (s *Supervisor) fail(err error) { s.failed.set(err) }

// openRoot opens the root of the view, once the first call shows that the view is
// complete. It is the caller's root: no process inside can change its root (chroot(2)
// is refused), and the supervisor may have no right to look at the first process.
func (s *Supervisor) openRoot(p *proc) bool {
	if s.resolver.root >= 0 {
		return true
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat(p.base(), string(p.entry(nil, p.pid))+"root", flags, 0)
	if err != nil && s.config.Root != 0 {
		fd, err = unix.Open("/proc/"+strconv.Itoa(s.config.Root)+"/root", flags, 0)
	}
	if err != nil {
		return false
	}
	s.resolver.root = fd
	return true
}
