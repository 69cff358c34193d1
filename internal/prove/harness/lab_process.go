//go:build linux

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/netlab"
	"holdfast.dev/holdfast/internal/prove/probe"
)

// startLimit is how long a worker may take to make its network; a variable for tests.
var startLimit = 20 * time.Second

// workerProcess is a worker that its pool started.
type workerProcess struct {
	dir   string // where it creates its worlds
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	room  *io.LimitedReader // limits the length of one answer
	lines *json.Decoder
	words *tail
	ended chan error // receives what Wait returned
}

// startWorker starts a worker that creates its worlds in dir, and waits until it is
// ready.
func startWorker(ctx context.Context, program []string, dir string) (*workerProcess, error) {
	cmd, err := netlab.Command(context.WithoutCancel(ctx), nil, program...)
	if err != nil {
		return nil, err
	}
	c := &workerProcess{dir: dir, cmd: cmd, words: &tail{}}
	cmd.Stderr, cmd.WaitDelay = c.words, time.Second
	cmd.SysProcAttr.Setpgid = true // an interrupt from the terminal is for us
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.out, cmd.Stdout, c.room = out, theirs, &io.LimitedReader{R: out}
	c.lines = json.NewDecoder(c.room)
	c.ended, err = startHere(cmd)
	theirs.Close()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	var first greeting
	err = c.read(ctx, &first, startLimit)
	if err == nil && !first.Ready {
		err = errors.New(first.Error)
	}
	if err != nil {
		return nil, errors.Join(err, c.quit(true))
	}
	return c, nil
}

// playRow sends a row to play and returns its outcome.
func (c *workerProcess) playRow(ctx context.Context, r request, limit time.Duration) (outcome, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return outcome{}, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return outcome{}, fmt.Errorf("sending a row to the worker: %w", err)
	}
	var a reply
	switch err := c.read(ctx, &a, limit); {
	case err != nil:
		return outcome{}, err
	case a.Error != "":
		return outcome{}, errors.New(a.Error)
	case a.Row != r.Row:
		return outcome{}, fmt.Errorf("the worker answered for row %q", a.Row)
	}
	return a.Result, nil
}

// longestAnswer is more than the answer for a row takes, in bytes: the output of
// its commands is bounded, and so is their number.
const longestAnswer = 64 << 20

// read reads a line of the worker.
func (c *workerProcess) read(ctx context.Context, into any, limit time.Duration) error {
	if err := c.out.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	c.room.N = longestAnswer
	stop := context.AfterFunc(ctx, func() { _ = c.out.SetReadDeadline(time.Now()) })
	defer stop()
	err := c.lines.Decode(into)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the worker sent nothing for %v", limit)
	case c.room.N <= 0:
		return errors.New("the worker's answer is too long")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the worker has ended")
	}
	return fmt.Errorf("reading the worker's answer: %w", err)
}

// end ends the worker and removes its files: at once, or with time to interrupt
// its row.
func (c *workerProcess) end(atOnce bool) error {
	return errors.Join(c.quit(atOnce), probe.RemoveAll(c.dir))
}

// lastBreath is how long quit waits, for a worker that is ended at once, to learn
// how it died if it died on its own.
const lastBreath = 200 * time.Millisecond

// quit ends the process. The error tells how it died and what it printed, unless
// it ended well, or was killed without having printed anything.
func (c *workerProcess) quit(atOnce bool) error {
	_ = c.in.Close()
	patience := lastWords + time.Second
	if atOnce {
		patience = lastBreath
	}
	var err error
	select {
	case err = <-c.ended:
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		<-c.ended
		err = errKilled
	}
	_ = c.out.Close()
	output := c.words.String()
	switch {
	case err == nil, atOnce && err == errKilled && output == "":
		return nil
	case output == "":
		return err
	}
	return fmt.Errorf("%w: %s", err, output)
}

// errKilled is the error for a worker that had to be killed.
var errKilled = errors.New("it was killed")

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// tailSize is how much of the end of a worker's output is kept, in bytes.
const tailSize = 2 << 10

// Write implements io.Writer. The content is read only after the last Write.
func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if extra := len(t.b) - tailSize; extra > 0 {
		t.b = bytes.Clone(t.b[extra:])
	}
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }
