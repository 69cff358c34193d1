package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// serveRemote is the process of the other side. It makes sockets on request
// and keeps none: it ends when the test does, which is when fd has no peer.
func serveRemote(fd int) error {
	unix.CloseOnExec(fd)
	buf := make([]byte, 1024)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return nil // the test has ended
		}
		f, err := answer(string(buf[:n]))
		text, rights := "ok", []byte(nil)
		switch {
		case err != nil:
			text = err.Error()
		case f != nil:
			rights = unix.UnixRights(int(f.Fd()))
		}
		err = unix.Sendmsg(fd, []byte(text), rights, nil, 0)
		if f != nil {
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

func answer(request string) (*os.File, error) {
	network, addr, _ := strings.Cut(request, " ")
	// No address is assigned here: packets to all of them arrive.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var errs []error
		err := c.Control(func(fd uintptr) {
			errs = append(errs, unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1))
			_ = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1) // fails for an IPv4 socket
		})
		return errors.Join(append(errs, err)...)
	}}
	switch network {
	case "up":
		return nil, remoteSide()
	case "tcp":
		l, err := config.Listen(context.Background(), network, addr)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		return l.(*net.TCPListener).File()
	case "udp":
		c, err := config.ListenPacket(context.Background(), network, addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.(*net.UDPConn).File()
	}
	return nil, fmt.Errorf("no socket is called %q", network)
}
