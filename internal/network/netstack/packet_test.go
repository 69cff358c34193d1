package netstack

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
)

// ip makes a packet between two addresses of one family.
func ip(from, to string, proto byte, body ...byte) []byte {
	src, dst := netip.MustParseAddr(from), netip.MustParseAddr(to)
	n := head6
	if dst.Is4() {
		n = head4
	}
	b := append(make([]byte, n), body...)
	ipHead(b, src, dst, proto)
	return b
}

func with(b []byte, at int, value ...byte) []byte {
	b = slices.Clone(b)
	copy(b[at:], value)
	return b
}

var (
	syn  = []byte{0, 1, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0}
	ask  = []byte{0, 9, 0, 53, 0, 10, 0, 0, 'h', 'i'}
	quic = []byte{0, 9, 1, 187, 0, 10, 0, 0, 'h', 'i'}
	ping = []byte{echo4, 0, 0, 0, 0, 1, 0, 1}
)

const (
	in4, out4 = "10.77.0.2", "198.51.100.7"
	in6, out6 = "fd77::2", "2001:db8::1"
)

func TestLook(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		want verdict
	}{
		{"TCP of IPv4 is for the stack", ip(in4, out4, tcpProto, syn...), segment},
		{"TCP of IPv6 is for the stack", ip(in6, out6, tcpProto, syn...), segment},
		{"bytes after the end do not matter", append(ip(in4, out4, tcpProto, syn...), 1, 2, 3), segment},
		{"a name query of IPv4", ip(in4, out4, udpProto, ask...), query},
		{"a name query of IPv6", ip(in6, out6, udpProto, ask...), query},
		{"another datagram is refused", ip(in4, out4, udpProto, quic...), refuse},
		{"an echo request is refused", ip(in4, out4, icmp4, ping...), refuse},
		{"an echo request of IPv6 is refused", ip(in6, out6, icmp6, with(ping, 0, echo6)...), refuse},
		{"another transport is refused", ip(in4, out4, 132, syn...), refuse},
		{"nothing", nil, drop},
		{"half a header", ip(in4, out4, tcpProto, syn...)[:19], drop},
		{"half a header of IPv6", ip(in6, out6, tcpProto, syn...)[:39], drop},
		{"version 5", with(ip(in4, out4, tcpProto, syn...), 0, 0x55), drop},
		{"IPv4 options, which could hold a source route", with(ip(in4, out4, tcpProto, append(syn, syn...)...), 0, 0x46), drop},
		{"a header of no words", with(ip(in4, out4, tcpProto, syn...), 0, 0x40), drop},
		{"a length beyond the packet", with(ip(in4, out4, tcpProto, syn...), 2, 0, 41), drop},
		{"a length beyond the packet of IPv6", with(ip(in6, out6, tcpProto, syn...), 4, 0, 21), drop},
		{"a length that cuts the header", with(ip(in4, out4, tcpProto, syn...), 2, 0, 19), drop},
		{"the first fragment", with(ip(in4, out4, tcpProto, syn...), 6, 0x20, 0), drop},
		{"a later fragment", with(ip(in4, out4, udpProto, ask...), 6, 0, 1), drop},
		{"a fragment of IPv6", ip(in6, out6, 44, ask...), drop},
		{"hop-by-hop options, as the kernel's own multicast reports have", ip(in6, out6, 0, ask...), drop},
		{"a TCP header that is cut", ip(in4, out4, tcpProto, syn[:19]...), drop},
		{"a UDP header that is cut", ip(in4, out4, udpProto, ask[:7]...), drop},
		{"a UDP length beyond the packet", ip(in4, out4, udpProto, with(ask, 4, 0, 11)...), drop},
		{"a UDP length shorter than its header", ip(in4, out4, udpProto, with(ask, 4, 0, 7)...), drop},
		{"to many", ip(in4, "224.0.0.251", udpProto, ask...), drop},
		{"to many of IPv6", ip(in6, "ff02::fb", udpProto, ask...), drop},
		{"to all", ip(in4, "255.255.255.255", udpProto, ask...), drop},
		{"to nobody", ip(in4, "0.0.0.0", tcpProto, syn...), drop},
		{"from nobody", ip("0.0.0.0", out4, tcpProto, syn...), drop},
		{"from many: the answer would go to them", ip("224.0.0.1", out4, udpProto, quic...), drop},
		{"to loopback, which never is on a link", ip(in4, "127.0.0.1", tcpProto, syn...), drop},
		{"from loopback", ip("::1", out6, tcpProto, syn...), drop},
		{"to an IPv4 address in IPv6 clothing", ip(in6, "::ffff:127.0.0.1", tcpProto, syn...), drop},
		{"an error message, whose answer would be answered", ip(in4, out4, icmp4, with(ping, 0, unreachable4)...), drop},
		{"an echo answer", ip(in4, out4, icmp4, with(ping, 0, 0)...), drop},
		{"ICMP of the other version", ip(in4, out4, icmp6, with(ping, 0, echo6)...), drop},
		{"ICMP of the other version in IPv6", ip(in6, out6, icmp4, ping...), drop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := inspectPacket(tt.b); got != tt.want {
				t.Errorf("verdict %d, not %d", got, tt.want)
			}
		})
	}
}

// sum is the checksum over a packet's transport; 0xffff when it is right.
func sum(b []byte, proto byte) uint16 {
	p, _ := parse(b)
	start := uint16(0)
	if proto != icmp4 {
		start = pseudo(p.src, p.dst, proto, len(p.body()))
	}
	return checksum.Checksum(p.body(), start)
}

func TestRefusalsAreWellFormed(t *testing.T) {
	large := bytes.Repeat([]byte{'x'}, 9000)
	for _, tt := range []struct {
		name       string
		b          []byte
		proto      byte
		kind, code byte
		most       int
	}{
		{"a datagram", ip(in4, out4, udpProto, quic...), icmp4, unreachable4, port4, 576},
		{"a datagram of IPv6", ip(in6, out6, udpProto, quic...), icmp6, unreachable6, port6, 1280},
		{"a large datagram is quoted in part", ip(in4, out4, udpProto, append(slices.Clone(quic), large...)...), icmp4, unreachable4, port4, 576},
		{"a large datagram of IPv6 is quoted in part", ip(in6, out6, udpProto, append(slices.Clone(quic), large...)...), icmp6, unreachable6, port6, 1280},
		{"a ping", ip(in4, out4, icmp4, ping...), icmp4, unreachable4, prohibited4, 576},
		{"a ping of IPv6", ip(in6, out6, icmp6, with(ping, 0, echo6)...), icmp6, unreachable6, prohibited6, 1280},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, what := inspectPacket(tt.b)
			if what != refuse {
				t.Fatalf("verdict %d", what)
			}
			b := p.refusal()
			r, ok := parse(b)
			if !ok || r.src != p.dst || r.dst != p.src || r.proto != tt.proto || len(b) > tt.most {
				t.Fatalf("%+v of %d bytes", r, len(b))
			}
			m := r.body()
			if m[0] != tt.kind || m[1] != tt.code || !bytes.HasPrefix(tt.b, m[headICMP:]) || sum(b, tt.proto) != 0xffff {
				t.Errorf("message %x, sum %#x", m, sum(b, tt.proto))
			}
			if r.head == head4 && checksum.Checksum(b[:head4], 0) != 0xffff {
				t.Error("the checksum of the header is wrong")
			}
			if _, what := inspectPacket(b); what != drop {
				t.Error("a refusal would be answered")
			}
		})
	}
}

func TestDatagramHeads(t *testing.T) {
	for _, tt := range []struct{ from, to, payload string }{
		{"1.1.1.1:53", "10.77.0.2:4000", "answer"},
		{"1.1.1.1:53", "10.77.0.2:4000", "odd"},
		{"[2001:db8::53]:53", "[fd77::2]:4000", "answer"},
		{"1.1.1.1:53", "10.77.0.2:4000", ""},
	} {
		from, to := netip.MustParseAddrPort(tt.from), netip.MustParseAddrPort(tt.to)
		h, err := udpHead(from, to, []byte(tt.payload))
		if err != nil {
			t.Fatal(err)
		}
		b := append(h, tt.payload...)
		p, ok := parse(b)
		if !ok || p.src != from.Addr() || p.dst != to.Addr() || len(p.bytes) != len(b) || sum(b, udpProto) != 0xffff {
			t.Errorf("%+v: %x", tt, b)
		}
		u := p.body()
		if binary.BigEndian.Uint16(u) != from.Port() || binary.BigEndian.Uint16(u[2:]) != to.Port() || int(binary.BigEndian.Uint16(u[4:])) != len(u) {
			t.Errorf("%+v: %x", tt, u)
		}
	}
	if _, err := udpHead(netip.MustParseAddrPort("1.1.1.1:53"), netip.MustParseAddrPort("10.77.0.2:1"), make([]byte, 65508)); err == nil {
		t.Error("a payload that fits no datagram is accepted")
	}
}

// FuzzLook looks for panics, and for what must hold of everything let through.
func FuzzLook(f *testing.F) {
	for _, b := range [][]byte{ip(in4, out4, tcpProto, syn...), ip(in6, out6, udpProto, ask...), ip(in4, out4, udpProto, quic...), ip(in6, out6, icmp6, with(ping, 0, echo6)...)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, what := inspectPacket(b)
		if what == drop {
			return
		}
		if len(p.bytes) > len(b) || p.head > len(p.bytes) || !unicast(p.src) || !unicast(p.dst) {
			t.Fatalf("%+v is let through", p)
		}
		switch what {
		case query:
			if d, ok := p.datagram(); ok && (d.asked.Port() != 53 || len(d.payload) > queryBytes) {
				t.Fatalf("query %+v", d)
			}
		case refuse:
			if _, again := inspectPacket(p.refusal()); again != drop {
				t.Fatal("a refusal would be answered")
			}
		}
	})
}
