//go:build linux

package probe

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listener is a service outside that nothing inside may reach. It answers with a
// token and counts the callers that sent something or took the token: a mere
// connection, as in a port scan, has reached nothing.
type Listener struct {
	Addr    string // as net.Dial takes it
	network string
	token   string
	mark    string // sent only by our own last call
	close   func() error

	mu      sync.Mutex
	calls   int
	open    int           // connections being served
	settled chan struct{} // closed when our own call has arrived
	once    sync.Once
	heard   bytes.Buffer
}

// Listen opens a service of network unix, unix with an address that begins with @
// (abstract), unixgram, tcp or udp. addr is a template for unix paths; for tcp
// and udp use 127.0.0.1:0 or [::1]:0.
func (w *World) Listen(network, addr string) (*Listener, error) {
	l := &Listener{network: network, token: w.Token(network + " listener " + addr), mark: hexes(16), settled: make(chan struct{})}
	var err error
	switch network {
	case "unix", "tcp":
		err = l.stream(network, w.Path(addr))
	case "unixgram", "udp":
		err = l.packets(network, w.Path(addr))
	default:
		err = fmt.Errorf("no listener for network %q", network)
	}
	if err != nil {
		return nil, err
	}
	w.seen = append(w.seen, l)
	w.Defer(l.close)
	return l, nil
}

func (l *Listener) stream(network, addr string) error {
	ln, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	l.Addr, l.close = ln.Addr().String(), ln.Close
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.count(&l.open, 1)
			go func() {
				defer l.count(&l.open, -1)
				defer c.Close()
				l.serve(c)
			}()
		}
	}()
	return nil
}

// serve sends the token to a new connection and counts it if the caller did more
// than connect.
func (l *Listener) serve(c net.Conn) {
	_, gone := io.WriteString(c, l.token+"\n")
	b, err := io.ReadAll(io.LimitReader(c, 64<<10))
	switch {
	case l.own(b):
	case len(b) > 0:
		l.hear(b)
	case gone == nil && err == nil && peerRead(c):
		l.hear(nil)
	}
}

// peerRead reports whether the other side of a closed connection read what was sent:
// leaving data unread ends it with an error (tcp(7), unix(7)).
func peerRead(c net.Conn) bool {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	read := false
	err = raw.Control(func(fd uintptr) {
		failed, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		left, queued := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		read = err == nil && failed == 0 && queued == nil && left == 0
	})
	return err == nil && read
}

func (l *Listener) packets(network, addr string) error {
	pc, err := net.ListenPacket(network, addr)
	if err != nil {
		return err
	}
	l.Addr, l.close = pc.LocalAddr().String(), pc.Close
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if l.own(buf[:n]) {
				continue
			}
			l.hear(buf[:n])
			if from != nil && from.String() != "" {
				_, _ = pc.WriteTo([]byte(l.token), from)
			}
		}
	}()
	return nil
}

// own recognises our own call.
func (l *Listener) own(b []byte) bool {
	if string(b) != l.mark {
		return false
	}
	l.once.Do(func() { close(l.settled) })
	return true
}

func (l *Listener) hear(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.heard.Write(b)
}

func (l *Listener) count(n *int, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n += by
}

func (l *Listener) serving() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// settle waits until everything sent has been served: it calls the listener
// itself, behind all other callers, and then waits for open connections.
func (l *Listener) settle() {
	c, err := net.Dial(l.network, l.Addr)
	if err != nil {
		return // the row has removed its name
	}
	_, err = io.WriteString(c, l.mark)
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	if err == nil {
		select {
		case <-l.settled:
		case <-time.After(10 * time.Second):
		}
	}
	c.Close()
	for end := time.Now().Add(2 * time.Second); l.serving() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (l *Listener) effects() []string {
	l.settle()
	l.mu.Lock()
	defer l.mu.Unlock()
	// An open connection still has a peer.
	if l.calls+l.open == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the listener %s was reached %d times", l.Addr, l.calls+l.open)}
}

func (l *Listener) received() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.heard.Bytes())
}
