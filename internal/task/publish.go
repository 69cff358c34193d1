package task

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"holdfast.dev/holdfast/internal/sandbox"
)

// publish shows services inside on the host's loopback. The returned function
// closes the listeners and every connection, and returns when all is quiet.
func (t *Task) publish(proc sandbox.Process) (func(), error) {
	p := &ports{open: map[io.Closer]bool{}}
	for _, port := range t.Plan.Publish {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Host)))
		if err != nil {
			p.close()
			return nil, fmt.Errorf("publishing port %d (%s): %w", port.Host, port.Origin, err)
		}
		p.add(l)
		p.wg.Go(func() { p.serve(l, proc, port.Inside) })
	}
	return p.close, nil
}

// ports are the published ports of a run.
type ports struct {
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

func (p *ports) serve(l net.Listener, proc sandbox.Process, inside int) {
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
func (p *ports) join(outer net.Conn, proc sandbox.Process, inside int) {
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
