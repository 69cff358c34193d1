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
		f := onlyFile(&c)
		if f == nil {
			continue
		}
		defer f.Close() // FileConn has a descriptor of its own
		if err := unix.Connect(int(f.Fd()), &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return nil, fmt.Errorf("connecting to port %d inside: %w", port, err)
		}
		return net.FileConn(f)
	}
	return nil, io.ErrUnexpectedEOF
}
