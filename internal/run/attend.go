//go:build linux

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// attend stays with a running command until everything inside is dead and all
// of its output was passed on.
func (t *Task) attend(ctx context.Context, proc boundary.Process, open *ports) (boundary.Exit, error) {
	stop := context.AfterFunc(ctx, func() { proc.Kill("") })
	defer stop()
	over := make(chan struct{}) // closed some time after a limit
	expire := sync.OnceFunc(func() {
		close(over)
		if t.Late != nil {
			t.Late()
		}
	})
	end := func(why string) {
		proc.Kill(why)
		time.AfterFunc(drainTime, expire)
	}
	if limit := t.Plan.Limits.Time; limit > 0 {
		timer := time.AfterFunc(limit, func() { end(fmt.Sprintf("time limit of %v", limit)) })
		defer timer.Stop()
	}
	open.serve(proc)
	defer open.close()

	ended := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { t.passSignals(proc, end, ended) })
	alive, died := context.WithCancel(ctx)
	defer died()
	drained := t.relay(alive, proc, over)
	restore, err := t.raw(proc)
	if err != nil {
		proc.Kill("")
	}
	helpers.Go(func() { t.jobControl(proc, restore) })

	exit, werr := proc.Wait()
	died()
	lost := drained()
	close(ended)
	helpers.Wait()
	restore.undo()
	restore.forget()
	return exit, errors.Join(err, werr, lost)
}

// OutputError says that what the command wrote could not be passed on.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "passing on the command's output: " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// drainTime is how long the reader of the output has once the run must be over: after
// the limit of time, and after whoever asked the command to end waited long enough.
const drainTime = time.Second

// relay copies the streams and returns a function that waits until all output
// has been passed on, or until over is closed, and says what could not be. Input
// is not waited for: a read of it may last for ever.
func (t *Task) relay(alive context.Context, proc boundary.Process, over <-chan struct{}) (drained func() error) {
	var outputs sync.WaitGroup
	var lost atomic.Pointer[OutputError]
	copyOut := func(to io.Writer, from io.ReadCloser) {
		outputs.Go(func() {
			// A reader that went away is the command's business, as with a
			// pipe: closing our end gives it SIGPIPE.
			_, err := io.Copy(to, from)
			from.Close()
			var path *os.PathError
			if errors.As(err, &path) && path.Op == "write" && !errors.Is(err, syscall.EPIPE) {
				lost.Store(&OutputError{path.Err})
			}
		})
	}
	var broken error // read when outputs are over
	if t.Messages != nil {
		outputs.Go(func() { broken = t.Messages.pass(alive, t, proc) })
	} else if out := proc.Stdout(); out != nil {
		copyOut(t.Streams.Out, out)
	}
	if e := proc.Stderr(); e != nil {
		copyOut(t.Streams.Err, e)
	}
	if master := proc.Terminal(); master != nil {
		to := t.Streams.Out
		if !t.Streams.OutTerminal {
			to = t.Streams.Err
		}
		if t.Streams.InTerminal && !t.Streams.OutTerminal && !t.Streams.ErrTerminal {
			to = io.Discard // the echo of what is typed; nobody asked to see it
		}
		copyOut(to, master)
	}
	if t.Messages == nil {
		go relayInput(proc, t.Streams.In) // which may outlast the run
	}
	return func() error {
		if err := passedOn(&outputs, over); err != nil {
			return err
		}
		if broken != nil {
			return broken
		}
		if e := lost.Load(); e != nil {
			return e
		}
		return nil
	}
}

// passedOn waits for the outputs, but not longer than until over is closed.
func passedOn(outputs *sync.WaitGroup, over <-chan struct{}) error {
	passed := make(chan struct{})
	go func() { outputs.Wait(); close(passed) }()
	select {
	case <-passed:
		return nil
	case <-over: // what waits for a reader still is lost
		return &OutputError{errors.New("its reader did not take it before the run had to end")}
	}
}

// relayInput passes the input on until either side has had enough.
func relayInput(proc boundary.Process, from io.Reader) {
	if in := proc.Stdin(); in != nil {
		io.Copy(in, from)
		in.Close()
		return
	}
	copyKeys(proc.Terminal(), from)
}

// copyKeys passes on what is typed. An end of file on a terminal is Ctrl-D that
// was typed before raw mode took hold: it is passed on as the key, and reading
// goes on. Many of them at once are a terminal that is gone.
func copyKeys(to io.Writer, from io.Reader) {
	buf := make([]byte, 4096)
	for last, ends := time.Now(), 0; ; {
		n, err := from.Read(buf)
		if errors.Is(err, io.EOF) && n == 0 {
			if now := time.Now(); now.Sub(last) > time.Second {
				last, ends = now, 0
			}
			if ends++; ends > 10 {
				return
			}
			n, err = copy(buf, "\x04"), nil
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// rawMode is the user's terminal in raw mode.
type rawMode struct {
	mu      sync.Mutex
	console Console
	restore func()
}

// raw passes every key on as it is, when the command's input is a terminal.
func (t *Task) raw(proc boundary.Process) (*rawMode, error) {
	r := &rawMode{}
	if !t.Streams.InTerminal || proc.Terminal() == nil {
		return r, nil
	}
	r.console = t.Streams.Console
	return r, r.enter()
}

func (r *rawMode) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.console == nil {
		return nil
	}
	restore, err := r.console.Raw()
	if err != nil {
		return fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	r.restore = restore
	return nil
}

func (r *rawMode) undo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restore != nil {
		r.restore()
		r.restore = nil
	}
}

// forget drops what was typed for the command, or sent by the terminal in
// answer to something that it printed last: the user's shell must not read it.
func (r *rawMode) forget() {
	if r.console != nil {
		r.console.Flush()
	}
}

// jobControl stops with the command and continues it when continued.
func (t *Task) jobControl(proc boundary.Process, raw *rawMode) {
	for range proc.Changes() {
		if t.Streams.Console == nil {
			continue
		}
		raw.undo()
		t.Streams.Console.Suspend()
		raw.enter()
		t.resize(proc)
		proc.Signal(syscall.SIGCONT)
	}
}

func (t *Task) resize(proc boundary.Process) {
	if m := proc.Terminal(); m != nil && t.Streams.Console != nil {
		size := t.Streams.Console.Size()
		sys.SetTerminalSize(m, size.Rows, size.Cols) // a command that has ended needs none
	}
}

// defaultGrace is how long a command has to end after SIGTERM, when nobody says.
const defaultGrace = 10 * time.Second

// patience is how many requests to end a command may ignore.
const patience = 3

// agentPatience is how long an MCP server has to end after its agent asked for
// it: agents kill this process 2 seconds after that.
const agentPatience = 1500 * time.Millisecond

// passSignals passes the caller's signals on. A command that ignores being
// asked to end is ended by end.
func (t *Task) passSignals(proc boundary.Process, end func(why string), ended <-chan struct{}) {
	var resized <-chan os.Signal
	if t.Streams.Console != nil {
		resized = t.Streams.Console.Resized()
	}
	asked := 0
	var late *time.Timer // ends a command that was asked to
	for {
		select {
		case <-ended:
			return
		case <-resized:
			t.resize(proc)
		case s := <-t.Signals:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if sig == syscall.SIGTSTP {
				proc.Signal(syscall.SIGSTOP)
				continue
			}
			if asked++; asked >= patience {
				end("")
				continue
			}
			switch grace := cmp.Or(t.Grace, defaultGrace); {
			case t.Messages != nil && asked == 1:
				late := time.AfterFunc(agentPatience, func() { end("the agent asked the server to end, and it did not") })
				defer late.Stop()
			case t.Messages == nil && sig == syscall.SIGTERM && late == nil:
				late = time.AfterFunc(grace, func() { end(fmt.Sprintf("the command did not end within %v of SIGTERM (--grace)", grace)) })
				defer late.Stop()
			}
			proc.Signal(sig)
		}
	}
}
