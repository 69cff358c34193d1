package netlab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// asking keeps requests and their answers together.
var asking sync.Mutex

// requestDescriptor sends a request to the other side and returns the descriptor of the answer,
// or -1.
func requestDescriptor(remote *os.File, request string) (int, error) {
	asking.Lock()
	defer asking.Unlock()
	fd := int(remote.Fd())
	if err := unix.Sendmsg(fd, []byte(request), nil, nil, 0); err != nil {
		return -1, fmt.Errorf("asking the other side: %w", err)
	}
	text, oob := make([]byte, 1024), make([]byte, unix.CmsgSpace(4))
	l, o, _, _, err := unix.Recvmsg(fd, text, oob, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		l, o, _, _, err = unix.Recvmsg(fd, text, oob, unix.MSG_CMSG_CLOEXEC)
	}
	switch {
	case err != nil:
		return -1, fmt.Errorf("asking the other side: %w", err)
	case l == 0:
		return -1, errors.New("the other side has ended")
	case string(text[:l]) != "ok":
		return -1, errors.New(string(text[:l]))
	case o == 0:
		return -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob[:o])
	if err != nil {
		return -1, fmt.Errorf("reading the answer of the other side: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, fmt.Errorf("reading the answer of the other side: %w", err)
	}
	return fds[0], nil
}

// Listen listens on the other side, on any address of either family.
func (n *Network) Listen(addr string) (net.Listener, error) {
	f, err := n.socket("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// ListenPacket receives datagrams on the other side, on any address of either
// family.
func (n *Network) ListenPacket(addr string) (net.PacketConn, error) {
	f, err := n.socket("udp", addr)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FilePacketConn(f)
}

func (n *Network) socket(network, addr string) (*os.File, error) {
	fd, err := requestDescriptor(n.remote, network+" "+addr)
	switch {
	case err != nil:
		return nil, err
	case fd < 0:
		return nil, errors.New("the other side answered without a socket")
	}
	return os.NewFile(uintptr(fd), addr), nil
}
