//go:build linux

package native

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Dial connects to a TCP port that is served inside on 127.0.0.1. The socket is
// made inside and handed out, so neither side enters the other's network.
func (p *process) Dial(port int) (io.ReadWriteCloser, error) {
	f, err := p.innerSocket()
	if err != nil {
		return nil, err
	}
	defer f.Close() // FileConn has a descriptor of its own
	if err := unix.Connect(int(f.Fd()), &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, fmt.Errorf("connecting to port %d inside: %w", port, err)
	}
	return net.FileConn(f)
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
