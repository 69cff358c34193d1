package netstack

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
)

// verdict is what happens to a packet from the inside.
type verdict int

const (
	drop    verdict = iota // no answer: malformed, not unicast, or an error message itself
	segment                // TCP, for the stack
	query                  // UDP to port 53
	refuse                 // everything else is answered with "unreachable"
)

// Numbers of the protocols in an IP header, and of their messages (RFC 791,
// 792, 8200, 4443).
const (
	icmp4, tcpProto, udpProto, icmp6 = 1, 6, 17, 58

	head4, head6, headUDP, headICMP, headTCP = 20, 40, 8, 8, 20

	echo4, echo6 = 8, 128

	unreachable4, port4, prohibited4 = 3, 3, 13
	unreachable6, port6, prohibited6 = 1, 4, 1
)

// packet is an IP packet that was looked at.
type packet struct {
	bytes    []byte // all of it, without what follows its end
	head     int    // length of the IP header
	proto    byte
	src, dst netip.Addr
}

func (p *packet) body() []byte { return p.bytes[p.head:] }

// inspectPacket parses b. What it lets through to the stack has a plain header and is whole:
// fragments, IPv4 options and IPv6 extension headers do not occur between a kernel and
// its own device, so only a forger would send them.
func inspectPacket(b []byte) (packet, verdict) {
	p, ok := parse(b)
	if !ok || !unicast(p.dst) || !unicast(p.src) {
		return p, drop
	}
	body := p.body()
	switch p.proto {
	case tcpProto:
		if len(body) < headTCP {
			return p, drop
		}
		return p, segment
	case udpProto:
		if len(body) < headUDP {
			return p, drop
		}
		if n := int(binary.BigEndian.Uint16(body[4:])); n < headUDP || n > len(body) {
			return p, drop
		}
		if binary.BigEndian.Uint16(body[2:]) == 53 {
			return p, query
		}
		return p, refuse
	case icmp4, icmp6: // an error about an error message would be answered in turn, for ever
		if len(body) < headICMP || body[0] != echo4 && p.proto == icmp4 || body[0] != echo6 && p.proto == icmp6 {
			return p, drop
		}
		return p, refuse
	}
	return p, refuse
}

func parse(b []byte) (packet, bool) {
	switch {
	case len(b) >= head4 && b[0] == 0x45: // version 4, header of 5 words
		total := int(binary.BigEndian.Uint16(b[2:]))
		if total < head4 || total > len(b) || binary.BigEndian.Uint16(b[6:])&0xbfff != 0 { // of flags and offset only DF may be set
			return packet{}, false
		}
		return packet{
			bytes: b[:total], head: head4, proto: b[9],
			src: netip.AddrFrom4([4]byte(b[12:])), dst: netip.AddrFrom4([4]byte(b[16:])),
		}, b[9] != icmp6
	case len(b) >= head6 && b[0]>>4 == 6:
		total := head6 + int(binary.BigEndian.Uint16(b[4:]))
		if total > len(b) {
			return packet{}, false
		}
		next := b[6]
		return packet{
			bytes: b[:total], head: head6, proto: next,
			src: netip.AddrFrom16([16]byte(b[8:])), dst: netip.AddrFrom16([16]byte(b[24:])),
		}, next != icmp4 && !extension(next)
	}
	return packet{}, false
}

// extension reports whether an IPv6 header is followed by another (RFC 8200,
// section 4.1): hop-by-hop, routing, fragment, ESP, AH, none, destination.
func extension(next byte) bool {
	switch next {
	case 0, 43, 44, 50, 51, 59, 60:
		return true
	}
	return false
}

// unicast also rejects what must not appear on a link (loopback), and IPv4-mapped IPv6
// addresses, which would give one destination two addresses.
func unicast(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// datagram is the query of a packet that look called one.
func (p *packet) datagram() (datagram, bool) {
	b := p.body()
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n > headUDP+queryBytes {
		return datagram{}, false
	}
	return datagram{
		asked:   netip.AddrPortFrom(p.dst, binary.BigEndian.Uint16(b[2:])),
		client:  netip.AddrPortFrom(p.src, binary.BigEndian.Uint16(b[0:])),
		payload: append([]byte(nil), b[headUDP:n]...),
	}, true
}

// refusal is the answer to a packet that look refuses, from the address that it
// was sent to: port unreachable for UDP, which its client sees as ECONNREFUSED,
// administratively prohibited otherwise (RFC 1812, section 5.2.7.1; RFC 4443,
// section 3.1).
func (p *packet) refusal() []byte {
	most, kind, code := 576, byte(unreachable4), byte(prohibited4)
	proto := byte(icmp4)
	if p.head == head6 {
		most, kind, code, proto = 1280, unreachable6, prohibited6, icmp6
	}
	switch {
	case p.proto == udpProto && p.head == head6:
		code = port6
	case p.proto == udpProto:
		code = port4
	}
	quote := p.bytes[:min(len(p.bytes), most-p.head-headICMP)]
	b := make([]byte, p.head+headICMP+len(quote))
	ipHead(b, p.dst, p.src, proto)
	m := b[p.head:]
	m[0], m[1] = kind, code
	copy(m[headICMP:], quote)
	sum := uint16(0)
	if proto == icmp6 { // ICMP of IPv4 has no pseudo header
		sum = pseudo(p.dst, p.src, proto, len(m))
	}
	binary.BigEndian.PutUint16(m[2:], ^checksum.Checksum(m, sum))
	return b
}

// udpHead returns the IP and UDP headers of payload.
func udpHead(from, to netip.AddrPort, payload []byte) ([]byte, error) {
	head := head6
	if to.Addr().Is4() {
		head = head4
	}
	n := headUDP + len(payload)
	if head+n > 1<<16-1 {
		return nil, fmt.Errorf("%d bytes do not fit a datagram", len(payload))
	}
	b := make([]byte, head+headUDP, head+n)
	ipHead(b[:head+n], from.Addr(), to.Addr(), udpProto)
	u := b[head:]
	binary.BigEndian.PutUint16(u[0:], from.Port())
	binary.BigEndian.PutUint16(u[2:], to.Port())
	binary.BigEndian.PutUint16(u[4:], uint16(n))
	sum := checksum.Checksum(u, pseudo(from.Addr(), to.Addr(), udpProto, n))
	sum = ^checksum.Checksum(payload, sum)
	if sum == 0 { // which means "none" (RFC 768)
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(u[6:], sum)
	return b, nil
}

// ipHead writes the header of b, a whole packet.
func ipHead(b []byte, from, to netip.Addr, proto byte) {
	const hops = 64
	if to.Is4() {
		b[0], b[8], b[9] = 0x45, hops, proto
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint16(b[6:], 0x4000) // do not fragment, so that no identification is needed (RFC 6864)
		copy(b[12:], from.AsSlice())
		copy(b[16:], to.AsSlice())
		binary.BigEndian.PutUint16(b[10:], ^checksum.Checksum(b[:head4], 0))
		return
	}
	b[0], b[6], b[7] = 0x60, proto, hops
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-head6))
	copy(b[8:], from.AsSlice())
	copy(b[24:], to.AsSlice())
}

// pseudo is the sum of the pseudo header that TCP, UDP and ICMPv6 include.
func pseudo(from, to netip.Addr, proto byte, n int) uint16 {
	sum := checksum.Checksum(from.AsSlice(), uint16(proto))
	sum = checksum.Checksum(to.AsSlice(), sum)
	return checksum.Checksum([]byte{byte(n >> 8), byte(n)}, sum)
}
