//go:build linux

package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// Listen opens published ports on the host's loopback, of IPv4 and IPv6, before anything is started:
// if one of them is taken, nothing starts.
func Listen(publish []policy.Port) (*Ports, error) {
	p := &Ports{open: map[io.Closer]bool{}, inside: map[net.Listener]int{}}
	for _, port := range publish {
		for _, address := range []string{"127.0.0.1", "::1"} { // a client of "localhost" may try one alone
			l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port.Host)))
			if address == "::1" && withoutIPv6(err) {
				continue
			}
			if err != nil {
				p.Close()
				return nil, &PortError{Port: port, Err: err}
			}
			p.track(l)
			p.inside[l] = port.Inside
		}
	}
	return p, nil
}

// withoutIPv6 reports whether a host has no loopback of IPv6.
func withoutIPv6(err error) bool {
	return errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)
}

// PortError means that a port cannot be published.
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

// serve passes connections on to the services of proc until Close.
func (p *Ports) serve(proc boundary.Process) {
	for l, inside := range p.inside {
		p.wg.Go(func() { p.accept(l, proc, inside) })
	}
}

// Ports are the published ports of a run.
type Ports struct {
	inside map[net.Listener]int // port inside; not changed after Listen
	wg     sync.WaitGroup
	mu     sync.Mutex // guards what follows
	open   map[io.Closer]bool
	closed bool
}

func (p *Ports) track(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
	}
	p.open[c] = true
}

func (p *Ports) drop(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	c.Close()
}

// Close ends all connections, and returns when they have. It may be called more than
// once.
func (p *Ports) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Ports) accept(l net.Listener, proc boundary.Process, inside int) {
	for {
		outer, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.track(outer)
		p.wg.Go(func() { p.join(outer, proc, inside) })
	}
}

// join copies both ways until either side is done.
func (p *Ports) join(outer net.Conn, proc boundary.Process, inside int) {
	defer p.drop(outer)
	inner, err := proc.Dial(inside)
	if err != nil {
		return // nothing listens inside: the caller sees the connection end
	}
	p.track(inner)
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
