//go:build linux

package supervise

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// sock records a call with a socket address. Where a connection to the network
// goes is decided elsewhere; what is foreseen here is whether a socket of the
// file system can be reached.
func (s *Supervisor) sock(c *call) {
	e := event.Event{Action: c.sockAction(), Verdict: event.Allowed}
	s.sockAddress(c, &e, c.arg(c.info.path), int(int32(c.arg(c.info.arg))))
	if e.Layer == event.LayerView && s.isExpected() { // as a look-up of it
		s.answer(c)
		return
	}
	s.finish(c, &e)
}

// sockAction is what a call does: with MSG_FASTOPEN, sending connects.
func (c *call) sockAction() string {
	if c.info.action == event.SockSend && c.arg(c.info.flags)&unix.MSG_FASTOPEN != 0 {
		return event.SockConnect
	}
	return c.info.action
}

// sockAddress reads the address of size bytes at pointer, and writes it and the
// predicted outcome into e.
func (s *Supervisor) sockAddress(c *call, e *event.Event, pointer uint64, size int) {
	if size < 0 || size > 128 { // struct sockaddr_storage
		e.Error = "EINVAL"
		size = 0
	}
	buf := s.path2[:size]
	if errno := s.memory.fill(c.tid, pointer, buf); errno != 0 {
		s.noteUnread(c, e, "address", errno)
		return
	}
	family, text, path := address(buf)
	e.Object = text
	c.add("family", family)
	c.add("fd", strconv.Itoa(int(int32(c.args[0]))))
	switch errno := s.socketErrno(c); {
	case e.Error != "":
	case errno != "":
		e.Error = errno
	case family == "unix" && !socketSize(e.Action, size):
		e.Error = "EINVAL"
	case s.config.View.Closed && e.Action != event.SockBind && isInternet(text):
		e.Verdict, e.Layer, e.Error = event.Denied, event.LayerEgress, "ENETUNREACH"
	case s.isDropped(c, e.Action, text):
		e.Verdict, e.Layer = event.Denied, event.LayerEgress // the call itself succeeds
		c.add("reason", "only connections and name queries leave the boundary")
	case family == "unix" && len(path) == 0 && size > 2:
		e.Error = s.abstract(c, e.Action, text[len("unix:@"):])
	case len(path) > 0 && s.openRoot(c.proc):
		s.sockPath(c, e, path)
	case e.Action == event.SockConnect && isLoopback(text) && s.socketType(c) != unix.SOCK_STREAM:
		c.add("type", "datagram") // nothing need answer
	}
}

// sockPath writes into e the outcome of a call with the path of a local socket.
func (s *Supervisor) sockPath(c *call, e *event.Event, path []byte) {
	s.resolver.asIs = c.info.want == wantCreate
	s.resolver.locate(c.proc, c.tid, unix.AT_FDCWD, path, c.info.want != wantCreate, c.now, &s.at)
	s.resolver.asIs = false
	if s.at.unknown != "" {
		c.unknown(s.at.unknown)
		c.blind = c.blind || s.at.blind
		e.Verdict = event.Unknown
		return
	}
	o := s.foresee(c, &s.at, c.info.want, c.info.want == wantCreate)
	switch {
	case o.errno == "EEXIST":
		o.errno = "EADDRINUSE"
	case o.errno == "" && o.verdict == event.Allowed && c.info.want == wantReach:
		o.errno = s.answers(c, &s.at)
	}
	e.Verdict, e.Layer, e.Rule, e.Error = o.verdict, o.layer, o.rule, o.errno
	if r := s.at.resolved(); r != "" {
		e.Resolved = "unix:" + r
	}
}

// isInternet reports whether an address is one of the internet protocols and none of
// the loopback.
func isInternet(text string) bool {
	at, err := netip.ParseAddrPort(text)
	return err == nil && !ofLoopback(at.Addr())
}

func isLoopback(text string) bool {
	at, err := netip.ParseAddrPort(text)
	return err == nil && ofLoopback(at.Addr())
}

// ofLoopback reports whether an address is the loopback's, as the unspecified one is
// (ip(7)).
func ofLoopback(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsUnspecified()
}

var families = map[uint16]string{
	unix.AF_UNSPEC: "unspec", unix.AF_UNIX: "unix", unix.AF_INET: "inet", unix.AF_INET6: "inet6",
	unix.AF_NETLINK: "netlink", unix.AF_PACKET: "packet", unix.AF_VSOCK: "vsock", unix.AF_ALG: "alg", unix.AF_BLUETOOTH: "bluetooth",
}

// address reads a socket address: its family, itself as text, and the path that
// it is, if it is one.
func address(b []byte) (family, text string, path []byte) {
	if len(b) < 2 {
		return "none", "", nil
	}
	number := binary.NativeEndian.Uint16(b)
	family = families[number]
	switch {
	case number == unix.AF_INET && len(b) >= 8:
		ip := netip.AddrFrom4([4]byte(b[4:8]))
		return family, netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])).String(), nil
	case number == unix.AF_INET6 && len(b) >= 24:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		if len(b) >= 28 {
			if zone := binary.NativeEndian.Uint32(b[24:]); zone != 0 && !ip.Is4In6() {
				ip = ip.WithZone(strconv.FormatUint(uint64(zone), 10))
			}
		}
		return family, netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])).String(), nil
	case number == unix.AF_UNIX:
		return unixAddress(b[2:])
	case number == unix.AF_NETLINK && len(b) >= 12:
		return family, "netlink:" + strconv.FormatUint(uint64(binary.NativeEndian.Uint32(b[4:])), 10), nil
	}
	if family == "" {
		family = strconv.Itoa(int(number))
	}
	return family, family + ":", nil
}

// unixAddress reads what follows the family of a local socket.
func unixAddress(b []byte) (family, text string, path []byte) {
	if len(b) == 0 {
		return "unix", "unix:", nil
	}
	if b[0] == 0 {
		return "unix", "unix:@" + string(b[1:]), nil // every byte counts, also zeros
	}
	for i, c := range b {
		if c == 0 {
			b = b[:i]
			break
		}
	}
	return "unix", "unix:" + string(b), b
}
