package network

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

const (
	streamMost  = 32               // connections over TCP that are served at once
	streamIdle  = 10 * time.Second // for a whole query, and for its answer to be taken
	streamAsks  = 128              // queries of one connection
	streamQuery = 4096             // bytes of one query
	readFaults  = 64               // reads that fail in a row before the door is given up
)

// serveUDP answers queries until c is closed, which is not an error. Each answer comes
// from the address that was asked.
func (s *nameServer) serveUDP(c *net.UDPConn) error {
	source, err := askedAddress(c)
	if err != nil {
		return fmt.Errorf("serving names over UDP: %w", err)
	}
	buf, oob := make([]byte, 1<<16), make([]byte, 256)
	for faults := 0; ; {
		n, oobn, _, from, err := c.ReadMsgUDPAddrPort(buf, oob)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			if faults++; faults > readFaults {
				return fmt.Errorf("serving names over UDP: %w", err)
			}
			continue
		}
		faults = 0
		answer := s.answer(buf[:n], plainSize, packetSize)
		if answer == nil {
			continue
		}
		// An answer that cannot be sent is lost, as datagrams are: the client asks
		// again.
		c.WriteMsgUDPAddrPort(answer, source(oob[:oobn]), from)
	}
}

// askedAddress has the kernel say with each datagram which address it was sent
// to. What it returns turns that into the words that send an answer from there
// (ip(7), IP_PKTINFO; ipv6(7), IPV6_PKTINFO); nil leaves the choice to the kernel.
func askedAddress(c *net.UDPConn) (func(oob []byte) []byte, error) {
	local, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return nil, fmt.Errorf("%v is not the address of a datagram socket", c.LocalAddr())
	}
	if local.IP.To4() != nil {
		if err := ipv4.NewPacketConn(c).SetControlMessage(ipv4.FlagDst, true); err != nil {
			return nil, err
		}
		return func(oob []byte) []byte {
			var got ipv4.ControlMessage
			if got.Parse(oob) != nil || got.Dst == nil {
				return nil
			}
			return (&ipv4.ControlMessage{Src: got.Dst}).Marshal()
		}, nil
	}
	if err := ipv6.NewPacketConn(c).SetControlMessage(ipv6.FlagDst, true); err != nil {
		return nil, err
	}
	return sourceOf6, answerFromAny(c)
}

// answerFromAny lets a socket send from addresses that no interface has. With
// IPv4 the route that makes every address a local one is enough; IPv6 wants the
// address on an interface (RFC 3542, 6.1), or IPV6_FREEBIND, which needs no
// privilege.
func answerFromAny(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	})
	if err != nil {
		return err
	}
	return failed
}

// sourceOf6 is for sockets of both families. For a datagram of IPv4 the kernel reports
// addresses such as ::ffff:192.0.2.1, and takes them back in the same message
// (ip_cmsg_send in Linux), but package ipv6 writes no such address: it replaces another
// one.
func sourceOf6(oob []byte) []byte {
	var got ipv6.ControlMessage
	if got.Parse(oob) != nil || len(got.Dst) != net.IPv6len {
		return nil
	}
	if got.Dst.To4() == nil {
		words := &ipv6.ControlMessage{Src: got.Dst}
		if got.Dst.IsLinkLocalUnicast() {
			words.IfIndex = got.IfIndex
		}
		return words.Marshal()
	}
	place := netip.MustParseAddr("2001:db8:cafe:f00d:cafe:f00d:cafe:f00d").AsSlice()
	words := (&ipv6.ControlMessage{Src: place}).Marshal()
	at := bytes.Index(words, place)
	if at < 0 {
		return nil
	}
	copy(words[at:], got.Dst)
	return words
}

// serveTCP answers the queries of one connection (RFC 7766), and closes it. Those
// that are idle or too many are closed without an answer.
func (s *nameServer) serveTCP(c net.Conn) {
	defer c.Close()
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return
	}
	buf := make([]byte, 2+streamQuery)
	for range streamAsks {
		c.SetDeadline(time.Now().Add(streamIdle))
		if _, err := io.ReadFull(c, buf[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(buf))
		if n > streamQuery {
			return
		}
		if _, err := io.ReadFull(c, buf[2:2+n]); err != nil {
			return
		}
		answer := s.answer(buf[2:2+n], streamSize, streamSize)
		if answer == nil {
			return
		}
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(answer)), uint16(len(answer)))
		if _, err := c.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

// Packets are name queries that come as datagrams and through no socket, as a
// network stack in user space hands them out.
type Packets interface {
	// Read waits for a query. Asked is the address that it was sent to, client
	// where the answer goes. An error is the end.
	Read(b []byte) (n int, asked, client netip.AddrPort, err error)
	Write(b []byte, asked, client netip.AddrPort) error
}

// servePackets answers queries until there are no more.
func (s *nameServer) servePackets(p Packets) {
	buf := make([]byte, streamQuery)
	for {
		n, asked, client, err := p.Read(buf)
		if err != nil {
			return
		}
		if answer := s.answer(buf[:n], plainSize, packetSize); answer != nil {
			p.Write(answer, asked, client) // one that is lost is asked for again
		}
	}
}
