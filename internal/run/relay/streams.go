//go:build linux

package relay

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
)

// Streams are the caller's ends of the standard descriptors. They are not handed to the
// command: everything is relayed.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	// Whether each is a terminal. With any of them, Console must be set.
	InTerminal, OutTerminal, ErrTerminal bool
	Console                              Console
}

// AddTo says in a launch which of the command's streams are terminals.
func (s Streams) AddTo(spec *boundary.Spec) {
	spec.In, spec.Out, spec.Err = streamKind(s.InTerminal), streamKind(s.OutTerminal), streamKind(s.ErrTerminal)
	if s.Console != nil {
		spec.Size = s.Console.Size()
	}
}

func streamKind(terminal bool) boundary.Stream {
	if terminal {
		return boundary.Terminal
	}
	return boundary.Pipe
}

// Console is the user's terminal.
type Console interface {
	// Raw switches it to raw mode and returns what undoes that.
	Raw() (restore func(), err error)
	Size() boundary.WindowSize
	Resized() <-chan os.Signal
	// Flush drops input that was not read yet.
	Flush()
	// Suspend stops this process as the shell's job control wants it, and
	// returns when it was continued.
	Suspend()
}

// OutputError means that what the command wrote could not be passed on.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "passing on the command's output: " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// copyStreams copies the streams and returns a function that waits until all output has
// been passed on, or until over is closed, and reports what could not be. It does not
// wait for input: a read of it may last for ever.
func (r *relay) copyStreams(alive context.Context, over <-chan struct{}) (drained func() error) {
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
	if r.Server != nil {
		outputs.Go(func() { broken = r.passMessages(alive) })
	} else if out := r.proc.Stdout(); out != nil {
		copyOut(r.Streams.Out, out)
	}
	if e := r.proc.Stderr(); e != nil {
		copyOut(r.Streams.Err, e)
	}
	if master := r.proc.Terminal(); master != nil {
		to := r.Streams.Out
		if !r.Streams.OutTerminal {
			to = r.Streams.Err
		}
		if r.Streams.InTerminal && !r.Streams.OutTerminal && !r.Streams.ErrTerminal {
			to = io.Discard // the echo of what is typed, which has no reader
		}
		copyOut(to, master)
	}
	if r.Server == nil {
		go relayInput(r.proc, r.Streams.In) // which may outlast the run
	}
	return func() error {
		if err := waitForOutputs(&outputs, over); err != nil {
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

// waitForOutputs waits for the outputs, but not longer than until over is closed.
func waitForOutputs(outputs *sync.WaitGroup, over <-chan struct{}) error {
	passed := make(chan struct{})
	go func() { outputs.Wait(); close(passed) }()
	select {
	case <-passed:
		return nil
	case <-over: // what waits for a reader still is lost
		return &OutputError{errors.New("its reader did not read it before the run had to end")}
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

// copyKeys passes on what is typed. An end of file on a terminal is Ctrl-D that was
// typed before raw mode took hold: it is passed on as the key, and reading continues.
// Many of them at once mean that the terminal is gone.
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
