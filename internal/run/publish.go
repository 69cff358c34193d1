//go:build linux

package run

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// listen opens the published ports on the host's loopback, before anything is
// started: a port that is taken starts nothing.
func (t *Task) listen() (*ports, error) {
	p := &ports{open: map[io.Closer]bool{}, inside: map[net.Listener]int{}}
	for _, port := range t.Plan.Publish {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Host)))
		if err != nil {
			p.close()
			return nil, &PortError{Port: port, Err: err}
		}
		p.add(l)
		p.inside[l] = port.Inside
	}
	return p, nil
}

// PortError says that a port cannot be published.
type PortError struct {
	Port policy.Port
	Err  error
}

func (e *PortError) Error() string {
	return fmt.Sprintf("publishing port %d (%s): %v", e.Port.Host, e.Port.Origin, e.Err)
}
func (e *PortError) Unwrap() error { return e.Err }

// Hint is the next command to type.
func (e *PortError) Hint() string {
	return fmt.Sprintf("choose another port of the host: --publish OTHER:%d", e.Port.Inside)
}

// serve shows the services of proc until close.
func (p *ports) serve(proc boundary.Process) {
	for l, inside := range p.inside {
		p.wg.Go(func() { p.accept(l, proc, inside) })
	}
}

// ports are the published ports of a run.
type ports struct {
	inside map[net.Listener]int // port inside; not changed after listen
	wg     sync.WaitGroup
	mu     sync.Mutex // guards what follows
	open   map[io.Closer]bool
	closed bool
}

func (p *ports) add(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
	}
	p.open[c] = true
}

func (p *ports) drop(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	c.Close()
}

func (p *ports) close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *ports) accept(l net.Listener, proc boundary.Process, inside int) {
	for {
		outer, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.add(outer)
		p.wg.Go(func() { p.join(outer, proc, inside) })
	}
}

// join copies both ways until either side is done.
func (p *ports) join(outer net.Conn, proc boundary.Process, inside int) {
	defer p.drop(outer)
	inner, err := proc.Dial(inside)
	if err != nil {
		return // nothing listens inside: the caller sees the connection end
	}
	p.add(inner)
	defer p.drop(inner)
	done := make(chan struct{})
	go func() {
		io.Copy(inner, outer)
		if c, ok := inner.(interface{ CloseWrite() error }); ok {
			c.CloseWrite()
		}
		close(done)
	}()
	io.Copy(outer, inner)
	if c, ok := outer.(*net.TCPConn); ok {
		c.CloseWrite()
	}
	<-done
}
