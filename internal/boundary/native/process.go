//go:build linux

package native

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// process is a running command with its janitor.
type process struct {
	janitor  *os.Process
	control  *os.File // status reports
	goodbye  *os.File // closed, or written to, to end everything
	portal   *os.File
	family   int // of the sockets of the portal
	in       *os.File
	out, err *os.File
	terminal *os.File
	first    int // pid of the first process inside
	pid      int // pid of the command
	name     string
	groups   []group
	limits   policy.Limits

	changes chan boundary.State
	done    chan struct{} // closed when the command has ended

	cleaned chan struct{}    // closed when the janitor has ended
	state   *os.ProcessState // of it, once it has
	waited  error

	watching sync.WaitGroup // what looks after the limits, until done

	mu      sync.Mutex // guards what follows
	exit    boundary.Exit
	fail    error
	dead    bool // the command has ended: its pid may be another process's
	firstfd int  // descriptor of the first process inside; -1 for none
	lost    bool // the janitor ended although nothing asked it to
	reason  string

	ended    atomic.Bool // we ended it
	endOnce  sync.Once
	dialLock sync.Mutex // one request at a time on the portal
}

func (p *process) PID() int           { return p.pid }
func (p *process) Terminal() *os.File { return p.terminal }

func (p *process) Changes() <-chan boundary.State { return p.changes }

func (p *process) Stdin() io.WriteCloser {
	if p.in == nil {
		return nil
	}
	return p.in
}

func (p *process) Stdout() io.ReadCloser {
	if p.out == nil {
		return nil
	}
	return p.out
}

func (p *process) Stderr() io.ReadCloser {
	if p.err == nil {
		return nil
	}
	return p.err
}

// follow reads the reports until the command has ended.
func (p *process) follow() {
	defer close(p.done)
	defer close(p.changes)
	var noExec *message
	for {
		m, err := receive(p.control)
		if err != nil {
			if p.ended.Load() {
				p.finish(boundary.Exit{Signal: syscall.SIGKILL}, nil)
				return
			}
			p.finish(boundary.Exit{Signal: syscall.SIGKILL}, p.lossReason(err))
			return
		}
		switch m.kind {
		case msgNoExec:
			noExec = &m
		case msgStatus:
			ws := syscall.WaitStatus(m.fields[0])
			if ws.Stopped() {
				p.changes <- boundary.Stopped
				continue
			}
			exit := boundary.Exit{Code: ws.ExitStatus()}
			if ws.Signaled() {
				exit = boundary.Exit{Signal: ws.Signal()}
			}
			var failure error
			if noExec != nil {
				failure = &boundary.CommandError{Name: p.name, Err: boundary.ErrNotFound}
				if noExec.fields[0] != 0 {
					failure = &boundary.CommandError{Name: p.name, Err: boundary.ErrNotExecutable}
				}
			}
			p.finish(exit, failure)
			return
		}
	}
}

func (p *process) finish(exit boundary.Exit, err error) {
	p.mu.Lock()
	p.exit, p.fail, p.dead = exit, err, true
	p.exit.Reason = p.reason
	p.mu.Unlock()
}

// Signal sends sig to the command's process group.
func (p *process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return os.ErrProcessDone
	}
	err := unix.Kill(-p.pid, sig)
	if errors.Is(err, unix.ESRCH) {
		err = unix.Kill(p.pid, sig)
	}
	return err
}

// Kill ends everything inside at once.
func (p *process) Kill(reason string) {
	p.mu.Lock()
	if !p.dead && p.reason == "" {
		p.reason = reason
	}
	p.mu.Unlock()
	p.end()
}

// end asks the janitor to end the run: it kills the first process inside, and
// with it everything in its pid namespace.
func (p *process) end() {
	p.endOnce.Do(func() {
		p.ended.Store(true)
		p.goodbye.Write(make([]byte, 8))
	})
}

// abandon ends a launch that did not get to the command.
func (p *process) abandon() {
	p.end()
	p.reap()
	for _, f := range []*os.File{p.in, p.out, p.err, p.terminal} {
		if f != nil {
			f.Close()
		}
	}
}

// Wait returns how the command ended, when everything inside is dead.
func (p *process) Wait() (boundary.Exit, error) {
	<-p.done
	hits := p.limitsHit()
	p.end()
	err := p.reap()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit.Hits = hits
	if p.reason != "" { // killed by a limit: whatever the reports made of it
		p.exit = boundary.Exit{Signal: syscall.SIGKILL, Reason: p.reason, Hits: hits}
		return p.exit, nil
	}
	if p.fail != nil {
		return p.exit, p.fail
	}
	return p.exit, err
}

// reap waits for the janitor and removes what it could not.
func (p *process) reap() error {
	<-p.cleaned
	state, err := p.state, p.waited
	p.goodbye.Close()
	p.dialLock.Lock() // callers waiting for a socket inside hear of its end first
	p.portal.Close()
	p.portal = nil
	p.dialLock.Unlock()
	p.control.Close() // a first process that nobody told us of may wait for a word
	// Where the janitor was killed, the first process inside dies with it, but not at
	// once, and it is no child of ours that we could wait for.
	deadline := time.Now().Add(5 * time.Second)
	if err == nil && !state.Success() && p.first != 0 {
		_ = unix.PidfdSendSignal(p.firstfd, unix.SIGKILL, nil, 0)
		for unix.Kill(p.first, 0) == nil && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
	p.dropFirst()
	p.watching.Wait()
	for _, g := range p.groups {
		rerr := g.remove()
		for errors.Is(rerr, unix.EBUSY) && time.Now().Before(deadline) { // it died before it was reported
			time.Sleep(time.Millisecond)
			rerr = g.remove()
		}
		err = cmp.Or(err, rerr)
	}
	return err
}
