//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// socketErrno is the error of a call whose descriptor is no socket; "" for none.
func (s *Supervisor) socketErrno(c *call) string {
	text, errno := s.resolver.base(c.proc, c.tid, int(int32(c.args[0])))
	switch {
	case errno == unix.ENOENT:
		return "EBADF"
	case errno == 0 && !bytes.HasPrefix(text, []byte("socket:")):
		return "ENOTSOCK"
	}
	return ""
}

// socketType is the type of the caller's socket, 0 where it cannot be found out.
func (s *Supervisor) socketType(c *call) int {
	if s.resolver.copyDescriptor(c.proc, c.tid, int(int32(c.args[0]))) != 0 {
		return 0
	}
	defer s.resolver.closeTaken()
	kind, err := unix.GetsockoptInt(s.resolver.taken, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return 0
	}
	return kind
}

// isDropped reports whether what is sent to an address is lost although the call succeeds:
// only connections and name queries leave the boundary.
func (s *Supervisor) isDropped(c *call, action, to string) bool {
	return action == event.SockSend && s.config.View.Intercepted && isInternet(to) && port(to) != 53 && s.socketType(c) != unix.SOCK_STREAM
}

// port is that of an address with one.
func port(address string) int {
	n, _ := strconv.Atoi(address[strings.LastIndexByte(address, ':')+1:])
	return n
}

// answers predicts the result of connecting to the socket at: whether a process has it
// open, and with the requested type. It finds out by connecting a datagram socket to
// it, which its owner does not notice.
func (s *Supervisor) answers(c *call, at *location) string {
	if at.stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return "ECONNREFUSED"
	}
	if at.dir == nil {
		return ""
	}
	file, err := unix.Openat(at.dir.fd, string(at.name), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(file)
	probe, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(probe)
	err = unix.Connect(probe, &unix.SockaddrUnix{Name: fdPath(file)})
	kind := s.socketType(c)
	switch {
	case err == unix.ECONNREFUSED:
		return "ECONNREFUSED"
	case kind == 0:
	case err == unix.EPROTOTYPE && kind == unix.SOCK_DGRAM, err == nil && kind != unix.SOCK_DGRAM:
		return "EPROTOTYPE"
	}
	return ""
}

// abstract is the outcome of a call with an address of the abstract kind (unix(7)): to
// connect there must be one, and to bind there must not.
func (s *Supervisor) abstract(c *call, action, name string) string {
	text, whole := readUpTo(c.proc.base(), string(c.proc.entry(nil, c.tid))+"net/unix", 256<<10)
	if !whole {
		return "" // among others, there are too many to look at
	}
	// As the kernel writes it: @ replaces each zero.
	shown := append([]byte(" @"), bytes.ReplaceAll([]byte(name), []byte{0}, []byte("@"))...)
	there := bytes.Contains(text, append(shown, '\n'))
	switch {
	case there && action == event.SockBind:
		return "EADDRINUSE"
	case !there && action != event.SockBind:
		return "ECONNREFUSED"
	}
	return ""
}

// socketSize reports whether the kernel takes an address of this size for one of a local
// socket; a bare family makes bind(2) choose a name.
func socketSize(action string, size int) bool {
	const family, most = 2, 110 // struct sockaddr_un
	return size <= most && (size > family || action == event.SockBind && size == family)
}
