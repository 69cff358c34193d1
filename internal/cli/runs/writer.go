package runs

import (
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// readerTime is how long messages wait for a reader once the run must be over.
const readerTime = time.Second

// lineWriter passes on to a terminal what the command writes, and knows whether a line of
// it is still open.
type lineWriter struct {
	io.Writer
	open atomic.Bool
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if n > 0 {
		w.open.Store(p[n-1] != '\n' && p[n-1] != '\r')
	}
	return n, err
}

// deadlineWriter writes messages, and waits for their reader as long as the run may last.
// Once late is closed it waits readerTime more, and loses what was not taken by then.
// A message has a line of its own.
type deadlineWriter struct {
	to      io.Writer
	late    chan struct{} // closed when the run must be over
	command *lineWriter   // what else goes to the same terminal; nil where there is none

	mu   sync.Mutex
	lost bool
}

// Unwrap returns where the messages go, for callers that check whether it is a
// terminal.
func (p *deadlineWriter) Unwrap() io.Writer { return p.to }

// Write returns os.ErrDeadlineExceeded if no reader took the message. The write itself
// then continues until its reader or this process ends.
func (p *deadlineWriter) Write(message []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return 0, os.ErrDeadlineExceeded
	}
	written := make(chan error, 1)
	own := bytes.Clone(message)
	if p.command != nil && p.command.open.Swap(false) {
		own = append([]byte("\r\n"), own...)
	}
	go func() {
		_, err := p.to.Write(own)
		written <- err
	}()
	select {
	case err := <-written:
		return len(message), err
	case <-p.late:
	}
	select {
	case err := <-written:
		return len(message), err
	case <-time.After(readerTime):
		p.lost = true
		return 0, os.ErrDeadlineExceeded
	}
}
