//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// TripwireConfig is what a Tripwire needs to know.
type TripwireConfig struct {
	// Device is /dev/fuse as the launch opened it, in the user namespace of
	// everything inside; taken over. Nothing inside may keep it: a process that holds
	// it keeps the file system from ending with the supervisor.
	Device *os.File

	Root     int // pid of the first process inside; the pids in requests are of its namespace
	UID, GID int // owner of everything in the root of the view, in the user namespace of the mount

	Sink Sink

	// Quiet are absolute paths whose absence is no event, with all below them: what
	// programs look for unprompted, and the host does not have either. If the directory
	// of one is in the root of the view, the kernel remembers that it is not there, and
	// does not ask again.
	Quiet []string

	// Private are absolute paths of directories that are for those inside to change,
	// with all below them: they are there until the file system ends. What files hold
	// there is in the directory that Store gets.
	Private []string

	// Made is there from the beginning, directories before what they hold.
	Made []Entry

	// Honeytokens are among the files of Made.
	Honeytokens Honeytokens

	// Charge is called with how many bytes of memory the private directories may take,
	// before they take more and when they take less; an error refuses more (ENOSPC). nil
	// for no limit.
	Charge func(bytes int64) error

	// Covers is the absolute path of a directory. Each of its files is mounted over a
	// hidden file, whose path it holds, and each directory D over one whose path D.path
	// holds. An attempt to read there is refused and recorded.
	Covers string

	// Rule returns the rule of the policy that hides a path; nil for none.
	Rule func(path string) string

	// Reads means that opens for reading are reported by the recorder of calls.
	Reads bool

	// Process returns what is known of a process besides its pid; nil for nothing. It
	// is called from several goroutines.
	Process func(pid int) event.Process

	// Ordinary reports whether an event refused nothing; missing is the first name on
	// the way that is not there. A path that is missing on the host too is not
	// recorded. nil means false for all.
	Ordinary func(e event.Event, missing string) bool

	// Marked reports whether an event must not be summarised in a flood of others; nil
	// marks none. It is called from several goroutines.
	Marked func(event.Event) bool

	// Failed is called once, on a goroutine of its own, when look-ups cannot be
	// recorded or answered any more: everything inside must die.
	Failed func(error)
}

// Tripwire is the file system of the root of the view: the directories, links
// and small files that the launch makes in it, on which it mounts the trees that
// are in view, and the private directories. What is asked of it beyond that is
// outside the view, and an event. When its process dies, every look-up in it fails
// with ENOTCONN.
type Tripwire struct {
	config TripwireConfig
	device int
	stop   int // event descriptor: Serve returns
	pids   *pidSpace
	quiet  expectations
	flood  *flood
	asking chan struct{} // holds one of each server that reads from the memory of a process

	served  chan struct{} // closed when Serve returned
	failed  failure
	closing sync.Once
	hanging sync.Once

	mu      sync.Mutex // held while a request is answered; guards what follows
	started bool
	closed  bool
	fs      fileSystem
}

// NewTripwire takes over the device of c, also when it fails. The kernel's
// first request waits for Serve, and so does every look-up in the mount.
func NewTripwire(c TripwireConfig) (*Tripwire, error) {
	if c.Device == nil || c.Sink == nil {
		return nil, errors.New("serving the root of the view: no device or no sink")
	}
	defer c.Device.Close()
	tree := newTree(c.Private...)
	tree.covers = c.Covers
	for _, e := range c.Made {
		if errno := tree.make(e); errno != 0 {
			return nil, fmt.Errorf("making the root of the view: %s: %w", e.Path, errno)
		}
	}
	if err := tree.honeytoken(c.Honeytokens.Details); err != nil {
		return nil, fmt.Errorf("making the root of the view: %w", err)
	}
	device, err := unix.FcntlInt(c.Device.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("serving the root of the view: %w", err)
	}
	if err := unix.SetNonblock(device, true); err != nil {
		unix.Close(device)
		return nil, fmt.Errorf("serving the root of the view: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(device)
		return nil, fmt.Errorf("serving the root of the view: %w", err)
	}
	pids, err := newPIDSpace(c.Root)
	if err != nil {
		unix.Close(device)
		unix.Close(stop)
		return nil, fmt.Errorf("serving the root of the view: %w", err)
	}
	c.Device = nil
	t := &Tripwire{config: c, device: device, stop: stop, pids: pids, served: make(chan struct{}), asking: make(chan struct{}, servers-1),
		fs: fileSystem{tree: tree, uid: uint32(c.UID), gid: uint32(c.GID)}, quiet: newExpectations(c.Quiet), failed: failure{report: c.Failed}}
	t.flood = newFlood(t.observe, t.marked)
	return t, nil
}

// servers answer requests, each on a thread of its own. More than one, because
// one may have to wait for the memory of a process, which may be a slow disk's
// file or one of this very file system: the others serve meanwhile.
const servers = 4

// Serve answers the kernel until the file system is unmounted everywhere or
// Close is called. It wants a goroutine of its own and may be called once.
func (t *Tripwire) Serve() {
	if !t.begin() {
		return
	}
	defer close(t.served)
	var all sync.WaitGroup
	for range servers {
		all.Go(func() {
			runtime.LockOSThread()                       // the thread ends with this goroutine, because no other may have its ids
			err := assumeIDs(t.config.UID, t.config.GID) // only this user may make files in the storage
			if err != nil {
				err = fmt.Errorf("switching to the ids of the task: %w", err)
			} else {
				err = t.serve()
			}
			if err != nil {
				t.failed.set(fmt.Errorf("serving the root of the view: %w", err))
			}
			t.halt() // the others, too
		})
	}
	all.Wait()
	t.hangUp() // or what asks would wait, where a failure ended it
}

// hangUp closes the last descriptor: the kernel ends the connection, and a process that
// asks or waits gets ENOTCONN or ECONNABORTED.
func (t *Tripwire) hangUp() { t.hanging.Do(func() { unix.Close(t.device) }) }

// halt makes all servers return.
func (t *Tripwire) halt() { unix.Write(t.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// serve is one server.
func (t *Tripwire) serve() error {
	q, err := t.queue()
	if err != nil {
		return err
	}
	defer unix.Close(q)
	in, out := make([]byte, fuseBuffer), make([]byte, 0, 4096)
	for {
		n, err := t.receive(q, in)
		if n == 0 || err != nil {
			return err
		}
		if err := t.respond(in[:n], out); err != nil {
			return err
		}
	}
}

// queue makes what a server waits on. One request wakes one server.
func (t *Tripwire) queue() (int, error) {
	q, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, err
	}
	err = unix.EpollCtl(q, unix.EPOLL_CTL_ADD, t.device, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLEXCLUSIVE, Fd: int32(t.device)})
	if err == nil {
		err = unix.EpollCtl(q, unix.EPOLL_CTL_ADD, t.stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(t.stop)})
	}
	if err != nil {
		unix.Close(q)
		return -1, err
	}
	return q, nil
}

// receive waits for a request; 0 means that there will be none any more.
func (t *Tripwire) receive(q int, in []byte) (int, error) {
	ready := make([]unix.EpollEvent, 2)
	for {
		k, err := unix.EpollWait(q, ready, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, r := range ready[:k] {
			if r.Fd == int32(t.stop) {
				return 0, nil
			}
		}
		n, err := unix.Read(t.device, in)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR, unix.EAGAIN, unix.ENOENT: // ENOENT: the asker died while its request was copied
			continue
		case unix.ENODEV: // unmounted
			return 0, nil
		default:
			return 0, err
		}
	}
}

// respond answers one request.
func (t *Tripwire) respond(raw, out []byte) error {
	r, ok := parseFUSE(raw)
	if !ok {
		return errors.New("the kernel sent an invalid request")
	}
	t.mu.Lock()
	touch, touched := t.touchFor(r)
	answer := t.fs.handle(r, out)
	m, missed := t.missFor(r, answer)
	t.mu.Unlock()
	if touched { // it waits, as below
		t.recordTouch(touch)
	}
	switch {
	case answer == nil:
		return nil
	case !missed:
		return t.send(answer)
	case m.quiet:
		return t.send(fuseNothing(out, r.unique, fuseForever))
	}
	// While it waits: its memory is what it was, and its events are in order.
	a := t.inspect(m.tid)
	if recorded := t.record(m, a); !recorded && !a.creates {
		return t.send(fuseNothing(out, r.unique, absentFor))
	}
	return t.send(answer)
}

// absentFor is how many seconds the kernel remembers of a name that it is not
// there where nothing was kept from the caller: programs ask again and again.
const absentFor = 1

// Store gives the private directories the storage for what their files hold, and
// takes it over. Before it is there, no file can be made in them.
func (t *Tripwire) Store(dir *os.File) error {
	s, err := newStore(dir, t.config.Charge)
	if err != nil {
		return fmt.Errorf("opening the storage of the private directories: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.fs.tree.store != nil {
		s.close()
		return errors.New("opening the storage of the private directories: it was opened before, or is no longer needed")
	}
	t.fs.tree.store = s
	return nil
}

// send writes an answer.
func (t *Tripwire) send(answer []byte) error {
	for {
		_, err := unix.Write(t.device, answer)
		switch err {
		case unix.EINTR:
			continue
		case nil, unix.ENOENT, unix.ENODEV, unix.ECONNABORTED: // the caller is gone
			return nil
		default:
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// Seal ends the time in which all of the root of the view can be changed, and begins
// the time in which a look-up of a missing path is an event. Requests before it returns
// are allowed; later ones are refused. The first process inside must wait for it.
func (t *Tripwire) Seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fs.sealed = true
}

// begin reports whether to serve: not when Close came first, as the descriptors may
// be others' by now.
func (t *Tripwire) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started = !t.closed
	return t.started
}

// Close ends the service, and returns when every event was handed over. What is
// still inside gets ENOTCONN; better is to call it when everything there is dead.
func (t *Tripwire) Close() error {
	t.closing.Do(func() {
		t.mu.Lock()
		t.closed = true
		started := t.started
		t.mu.Unlock()
		t.halt()
		if started {
			<-t.served
		}
		t.hangUp()
		t.mu.Lock()
		t.fs.tree.store.close()
		t.fs.tree.store = nil
		t.mu.Unlock()
		t.flood.close()
		unix.Close(t.stop)
		t.pids.close()
	})
	return t.failed.err()
}
