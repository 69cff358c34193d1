//go:build linux

package native

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
)

// launch is one start, from the facts to the running process.
type launch struct {
	backend *Backend
	spec    boundary.Spec
	facts   facts
	omit    map[string]bool

	builder *builder
	cleanup []func() // run by release, in reverse order
	control *os.File // our end; owned by the process after a successful start
	janitor *os.File
	portal  *os.File
	inner   [3]*os.File // ends of the standard descriptors that go in
	outer   [3]*os.File // our ends
	trees   []*os.File  // detached mounts that go in
	sockets *os.File    // reports the sockets of the inner network; nil if the kernel lacks it
	doors   boundary.Doors
	arrived int          // doors that were handed out
	started bool         // a process has taken over the control groups
	waits   bool         // the first process waits for its control groups
	joined  func() error // waits until the first process is in its control groups
}

// release frees everything that the started process did not take over.
func (l *launch) release() {
	for i := len(l.cleanup) - 1; i >= 0; i-- {
		l.cleanup[i]()
	}
}

func (l *launch) onRelease(f func()) { l.cleanup = append(l.cleanup, f) }

// start executes the program and brings it to the point where the command is
// complete and its posture is the plan's.
func (l *launch) start(ctx context.Context) (_ *process, err error) {
	l.builder = &builder{spec: l.spec, facts: l.facts, omit: l.omit}
	l.builder.build()
	if l.backend.tamper != nil {
		l.backend.tamper(l.builder.program)
	}
	if ctx.Err() != nil { // later, another goroutine signals the janitor
		return nil, fmt.Errorf("starting the command: %w", context.Cause(ctx))
	}
	files, err := l.descriptors()
	if err != nil {
		return nil, err
	}
	p, err := l.execute(files)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { p.Kill("") })
	defer stop()
	if err := l.handleMessages(p); err != nil {
		l.doors.Close()
		if l.joined != nil {
			l.joined() // while its number is that of the first process
		}
		p.abandon()
		if ctx.Err() != nil {
			err = fmt.Errorf("starting the command: %w", context.Cause(ctx))
		}
		return nil, err
	}
	return p, nil
}

// execute starts the janitor.
func (l *launch) execute(files []*os.File) (*process, error) {
	proc, err := l.builder.start(files, nil)
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	p := &process{janitor: proc, name: l.spec.Argv[0], limits: l.spec.Plan.Limits, control: l.control, goodbye: l.janitor, portal: l.portal, family: l.facts.portal,
		groups: l.facts.cgroups, changes: make(chan boundary.State, 8), done: make(chan struct{}), cleaned: make(chan struct{}), firstfd: -1}
	l.started = true
	p.in, p.out, p.err = l.outer[0], l.outer[1], l.outer[2]
	l.control, l.janitor, l.portal, l.outer = nil, nil, nil, [3]*os.File{}
	go p.attendJanitor()
	return p, nil
}

// descriptors opens the pipes and sockets, and lists what the janitor inherits
// in the order of the fd constants. The caller closes the list.
func (l *launch) descriptors() (files []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
		}
	}()
	l.onRelease(func() {
		for _, f := range append(append(l.inner[:], l.outer[:]...), l.control, l.janitor, l.portal, l.sockets) {
			if f != nil {
				f.Close()
			}
		}
	})
	if err := l.makeStandardPipes(); err != nil {
		return nil, err
	}
	files, l.inner = append(files, l.inner[:]...), [3]*os.File{}
	for _, ours := range []**os.File{&l.control, &l.janitor, &l.portal} {
		our, their, err := seqpacket()
		if err != nil {
			return files, err
		}
		*ours = our
		files = append(files, their)
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return files, fmt.Errorf("opening this executable: %w", err)
	}
	files = append(files, exe)
	alive, held, err := seqpacket()
	if err != nil {
		return files, err
	}
	return append(append(files, alive, held), l.trees...), nil
}

// makeStandardPipes makes the pipes of the standard descriptors. What will be a terminal is
// /dev/null until there is one.
func (l *launch) makeStandardPipes() error {
	streams := []boundary.Stream{l.spec.In, l.spec.Out, l.spec.Err}
	for i, s := range streams {
		if s == boundary.Terminal {
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			l.inner[i] = null
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("making a pipe: %w", err)
		}
		if i == 0 {
			l.inner[i], l.outer[i] = r, w
		} else {
			l.inner[i], l.outer[i] = w, r
		}
	}
	return nil
}

// seqpacket makes a pair of connected sockets that keep message boundaries; on
// ours the kernel adds the sender's pid in our namespace to every message
// (SO_PASSCRED, unix(7)).
func seqpacket() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("enabling credentials on a socket: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "holdfast"), os.NewFile(uintptr(fds[1]), "inside"), nil
}

// message is what arrives on the control socket.
type message struct {
	kind   uint64
	fields [2]uint64
	pid    int      // of the sender
	file   *os.File // that came along
}

// receive waits for one message. io.EOF means that no process inside is left.
func receive(control *os.File) (message, error) {
	buf, oob := make([]byte, 64), make([]byte, 128)
	for {
		n, oobn, _, _, err := unix.Recvmsg(int(control.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR || err == unix.ECONNRESET:
			// A process that ends without having read what we sent resets the
			// connection. A socket of packets reports that once, and before
			// the last message, which has the reason.
			continue
		case err != nil:
			return message{}, fmt.Errorf("reading from the launch: %w", err)
		case n == 0:
			return message{}, io.EOF
		case n != 24:
			return message{}, fmt.Errorf("reading from the launch: %d bytes are not a message", n)
		}
		m := message{kind: binary.LittleEndian.Uint64(buf), fields: [2]uint64{
			binary.LittleEndian.Uint64(buf[8:]), binary.LittleEndian.Uint64(buf[16:])}}
		cmsgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return message{}, fmt.Errorf("reading from the launch: %w", err)
		}
		for _, c := range cmsgs {
			if cred, err := unix.ParseUnixCredentials(&c); err == nil {
				m.pid = int(cred.Pid)
			} else if f := onlyFile(&c); f != nil {
				m.file = f
			}
		}
		return m, nil
	}
}

// onlyFile returns the one descriptor that a message carries. A message with more is
// not ours: all its descriptors are closed.
func onlyFile(c *unix.SocketControlMessage) *os.File {
	fds, err := unix.ParseUnixRights(c)
	if err != nil {
		return nil
	}
	if len(fds) == 1 {
		return os.NewFile(uintptr(fds[0]), "from inside")
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return nil
}

// send lets a waiting process go on.
func send(control *os.File) error {
	_, err := control.Write(make([]byte, 8))
	return err
}

// handleMessages follows the launch up to the attestation.
func (l *launch) handleMessages(p *process) error {
	for {
		m, err := receive(p.control)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return errors.New("the launch ended without a message: it was killed, or this machine is out of memory or processes")
			}
			return err
		}
		switch m.kind {
		case msgFailed:
			return l.stepError(m)
		case msgSpawned:
			if err := l.spawned(p, int(m.fields[0])); err != nil {
				return err
			}
		case msgLimited:
			l.waits = true
			if err := l.limit(p); err != nil {
				return err
			}
		case msgMaster:
			p.terminal = m.file
			if m.file != nil && l.spec.In != boundary.Terminal {
				plainOutput(m.file)
			}
		case msgDoor:
			if err := l.takeDoor(m); err != nil {
				return err
			}
		case msgSockets:
			l.sockets = m.file
		case msgRoot, msgStore, msgWatch:
			if err := l.observe(m, p); err != nil {
				return err
			}
		case msgReady:
			p.pid = m.pid
			if err := l.openDoors(); err != nil {
				return err
			}
			if l.facts.tripwire {
				l.spec.Observe.Sealed()
			}
			return l.attest(p)
		default:
			return fmt.Errorf("the launch sent a message of kind %d before it was ready", m.kind)
		}
	}
}

// spawned does what the supervisor has to do to the first process inside.
func (l *launch) spawned(p *process, first int) error {
	if err := p.holdFirst(first); err != nil {
		return err // it may be there and wait for us: it will send nothing
	}
	if err := l.admit(p); err != nil {
		return l.failureBehind(err, p.control)
	}
	l.join(p)
	return l.limit(p)
}

// attest compares the posture with the plan's and lets the command be executed.
func (l *launch) attest(p *process) error {
	if len(l.spec.Plan.Publish) > 0 {
		if err := p.awaitPortal(); err != nil {
			return err
		}
	}
	got, err := Collect(p.pid)
	if err != nil {
		return fmt.Errorf("verifying the boundary: %w", err)
	}
	if diff := l.expectation().Diff(got); len(diff) > 0 {
		return &boundary.PostureError{Diff: diff}
	}
	if l.spec.Attested != nil {
		if err := l.spec.Attested(got); err != nil {
			return err
		}
	}
	watches, err := l.newWatches(p)
	if err != nil {
		return fmt.Errorf("watching the limits: %w", err)
	}
	if err := send(p.control); err != nil {
		watches.close()
		return fmt.Errorf("releasing the command: %w", err)
	}
	go p.follow()
	watches.start(p, l.spec.Plan.Limits)
	return nil
}
