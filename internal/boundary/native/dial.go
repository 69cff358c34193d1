//go:build linux

package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Dial connects to a TCP port that is served inside on the loopback, of IPv4 or of
// IPv6: what listens on "localhost" listens on either. The sockets are made inside and
// handed out, so neither side enters the other's network.
func (p *process) Dial(port int) (io.ReadWriteCloser, error) {
	loopback4 := &unix.SockaddrInet6{Port: port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}} // ::ffff:127.0.0.1
	loopback6 := &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}
	if p.family == unix.AF_INET {
		return p.connect(&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, port)
	}
	c, err := p.connect(loopback4, port)
	if errors.Is(err, unix.ECONNREFUSED) {
		return p.connect(loopback6, port)
	}
	return c, err
}

// connect makes a socket inside and connects it.
func (p *process) connect(to unix.Sockaddr, port int) (io.ReadWriteCloser, error) {
	f, err := p.innerSocket()
	if err != nil {
		return nil, err
	}
	defer f.Close() // FileConn has a descriptor of its own
	if err := unix.Connect(int(f.Fd()), to); err != nil {
		return nil, fmt.Errorf("connecting to port %d inside: %w", port, err)
	}
	return net.FileConn(f)
}

// portalFamily is the family of the portal's sockets: AF_INET6, which connects to
// addresses of both (ipv6(7)), unless this kernel is without. Whether the host has
// addresses of IPv6 does not matter: the inner network has its own loopback.
func portalFamily() int {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.AF_INET
	}
	unix.Close(fd)
	return unix.AF_INET6
}

// innerSocket asks the portal for a TCP socket of the inner network.
func (p *process) innerSocket() (*os.File, error) {
	p.dialLock.Lock()
	defer p.dialLock.Unlock()
	if p.portal == nil {
		return nil, os.ErrProcessDone
	}
	if err := send(p.portal); err != nil {
		return nil, fmt.Errorf("asking for a socket inside: %w", err)
	}
	buf, oob := make([]byte, 8), make([]byte, 128)
	_, oobn, _, _, err := unix.Recvmsg(int(p.portal.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("waiting for a socket inside: %w", err)
	}
	cmsgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, fmt.Errorf("waiting for a socket inside: %w", err)
	}
	for _, c := range cmsgs {
		if f := onlyFile(&c); f != nil {
			return f, nil
		}
	}
	return nil, io.ErrUnexpectedEOF
}

// awaitPortal returns once the portal has answered. What watches the run knows
// the portal by its number inside, portalPID, so it must have that number before
// the command can make processes. Nothing gets the number later: the kernel
// starts again above RESERVED_PIDS (kernel/pid.c), and a process that asks for a
// number (clone3, ns_last_pid) needs a capability that nothing inside has.
func (p *process) awaitPortal() error {
	f, err := p.innerSocket()
	if err != nil {
		return err
	}
	return f.Close()
}
