package network

import (
	"fmt"
	"net"
	"net/netip"

	"holdfast.dev/holdfast/internal/policy"
)

// reach says which rules lead to a range of addresses.
type reach int

const (
	public   reach = iota
	internal       // reached only by rules with internal: true
	never          // not reached by any rule
)

// addressClass is a range of addresses that are not public.
type addressClass struct {
	prefix netip.Prefix
	words  string // completes "… is at 10.0.0.1, "
	reach  reach
}

func class(prefix string, reach reach, words string) addressClass {
	return addressClass{prefix: netip.MustParsePrefix(prefix), words: words, reach: reach}
}

// special are the ranges of the IANA special-purpose address registries (RFC 6890) that
// do not lead to a public host. Link-local addresses are refused to every rule, because
// the metadata services of clouds are there, including future ones. Addresses that are
// not those of a single host are refused too.
var special = []addressClass{
	class("0.0.0.0/8", never, "this host or network (RFC 1122)"),
	class("10.0.0.0/8", internal, "a private address (RFC 1918)"),
	class("100.64.0.0/10", internal, "an address shared behind a provider's NAT (RFC 6598)"),
	class("127.0.0.0/8", internal, "a loopback address (RFC 1122)"),
	class("169.254.0.0/16", never, "a link-local address (RFC 3927)"),
	class("172.16.0.0/12", internal, "a private address (RFC 1918)"),
	class("192.0.0.0/24", never, "an address for protocols (RFC 6890)"),
	class("192.0.2.0/24", internal, "an address for documentation (RFC 5737)"),
	class("192.88.99.0/24", never, "the retired relay of 6to4 (RFC 7526)"),
	class("192.168.0.0/16", internal, "a private address (RFC 1918)"),
	class("198.18.0.0/15", internal, "an address for benchmarks (RFC 2544)"),
	class("198.51.100.0/24", internal, "an address for documentation (RFC 5737)"),
	class("203.0.113.0/24", internal, "an address for documentation (RFC 5737)"),
	class("224.0.0.0/4", never, "a multicast address (RFC 5771)"),
	class("255.255.255.255/32", never, "the broadcast address (RFC 919)"),
	class("240.0.0.0/4", never, "a reserved address (RFC 1112)"),

	class("::1/128", internal, "the loopback address (RFC 4291)"),
	class("::/128", never, "the unspecified address (RFC 4291)"),
	class("100::/64", never, "an address whose packets are discarded (RFC 6666)"),
	class("fc00::/7", internal, "a unique local address (RFC 4193)"),
	class("fe80::/10", never, "a link-local address (RFC 4291)"),
	class("fec0::/10", internal, "a site-local address (RFC 3879)"),
	class("ff00::/8", never, "a multicast address (RFC 4291)"),
	class("2001:20::/28", never, "an ORCHID identifier (RFC 7343)"),
	class("2001:10::/28", never, "an ORCHID identifier (RFC 4843)"),
	class("2001:2::/48", internal, "an address for benchmarks (RFC 5180)"),
	class("2001::/23", never, "an address for protocols (RFC 2928)"),
	class("2001:db8::/32", internal, "an address for documentation (RFC 3849)"),
	class("3fff::/20", internal, "an address for documentation (RFC 9637)"),
	class("3ffe::/16", never, "an address of the retired 6bone (RFC 3701)"),
	class("5f00::/16", never, "a segment routing identifier (RFC 9602)"),
}

// globalUnicast is all that is given out of IPv6 (RFC 4291, 2.4; IANA).
var globalUnicast = netip.MustParsePrefix("2000::/3")

// embedded are ranges of IPv6 addresses that hold an IPv4 address, so that a
// translator or a tunnel makes one of the other.
var embedded = []struct {
	prefix netip.Prefix
	at     int  // where the IPv4 address begins, in bytes
	flip   byte // what its bytes are combined with
	reach  reach
	words  string
}{
	// The well-known prefix of NAT64 is how a host with IPv6 alone reaches the
	// public IPv4 network (DNS64), so that the IPv4 address alone decides.
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0, public, "NAT64 (RFC 6052)"},
	// Where the local network's own prefix keeps the address is for that network
	// to know (RFC 6052, 2.2, has six places), so that nothing there is judged.
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, 0, never, "NAT64 of the local network (RFC 8215)"},
	{netip.MustParsePrefix("2002::/16"), 2, 0, never, "6to4 (RFC 7526)"},
	{netip.MustParsePrefix("2001::/32"), 12, 0xff, never, "Teredo (RFC 4380)"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, 0, never, "an IPv4-translated address (RFC 2765)"},
	{netip.MustParsePrefix("::/96"), 12, 0, never, "an IPv4-compatible address (RFC 4291)"},
}

// classify says what kind of address a is, in words, and which rules may reach
// it. IPv4 inside IPv6 is taken out first.
func classify(a netip.Addr) (reach, string) {
	if a.Zone() != "" {
		return never, "an address on one interface of this host (RFC 4007)"
	}
	a = a.Unmap()
	if !a.IsValid() {
		return never, "no address"
	}
	for _, c := range policy.MetadataRanges {
		if c.Prefix.Contains(a) {
			return never, c.Words
		}
	}
	if reach, words, ok := classifyEmbedded(a); ok {
		return reach, words
	}
	for _, c := range special {
		if c.prefix.Contains(a) {
			return c.reach, c.words
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return never, "not an address that is given out to hosts (RFC 4291)"
	}
	return public, ""
}

// classifyEmbedded judges IPv6 addresses that hold an IPv4 address.
func classifyEmbedded(a netip.Addr) (reach, string, bool) {
	if a.Is4() || a.IsLoopback() || a.IsUnspecified() {
		return public, "", false
	}
	b := a.As16()
	for _, e := range embedded {
		if !e.prefix.Contains(a) {
			continue
		}
		inner := fourAt(b, e.at, e.flip)
		reach, words := classify(inner)
		if reach == public && e.reach == public {
			return public, "", true
		}
		if reach == public {
			words = "a public address"
		}
		return max(reach, e.reach), fmt.Sprintf("%s for %s, %s", e.words, inner, words), true
	}
	// ISATAP keeps the IPv4 address in the interface identifier, below any prefix.
	if b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		inner := fourAt(b, 12, 0)
		if reach, words := classify(inner); reach != public {
			return never, fmt.Sprintf("ISATAP (RFC 5214) for %s, %s", inner, words), true
		}
	}
	return public, "", false
}

// translated is the IPv4 address that a translator makes of a public IPv6
// address; the zero Addr where none does.
func translated(a netip.Addr) netip.Addr {
	for _, e := range embedded {
		if a.Is6() && e.reach == public && e.prefix.Contains(a) {
			return fourAt(a.As16(), e.at, e.flip)
		}
	}
	return netip.Addr{}
}

func fourAt(b [16]byte, at int, flip byte) netip.Addr {
	return netip.AddrFrom4([4]byte{b[at] ^ flip, b[at+1] ^ flip, b[at+2] ^ flip, b[at+3] ^ flip})
}

// AddressError says that a destination is at an address that its rule does not
// reach.
type AddressError struct {
	Name    string     // as the policy has it; the address itself where the policy names one
	Address netip.Addr // in canonical form
	Class   string     // in words, with where the range is set aside
	Never   bool       // no rule can allow it
}

func (e *AddressError) Error() string {
	if e.Name == e.Address.String() {
		return fmt.Sprintf("%s is %s", e.Name, e.Class)
	}
	return fmt.Sprintf("%s is at %s, %s", e.Name, e.Address, e.Class)
}

// Hint says how the destination can be allowed; "" when it cannot be.
func (e *AddressError) Hint() string {
	if e.Never {
		return ""
	}
	return fmt.Sprintf("if that is meant, give %s a rule with internal: true", e.Name)
}

// checkAddress reports whether name may be dialled at a. With internal it may be
// at private, shared, unique local, documentation and loopback addresses and at
// this host's own, but neither at a metadata service nor at a link-local
// address. own lists the host's addresses; without the list nothing that is
// otherwise public can be allowed.
func checkAddress(name string, a netip.Addr, allowInternal bool, own func() ([]netip.Addr, error)) error {
	canonical := a.Unmap()
	reach, words := classify(a)
	if reach == public && !allowInternal {
		mine, err := own()
		if err != nil {
			return fmt.Errorf("listing this host's own addresses: %w", err)
		}
		for _, m := range mine {
			if m == canonical || m == translated(canonical) {
				reach, words = internal, "an address of this host itself"
			}
		}
	}
	if reach == public || reach == internal && allowInternal {
		return nil
	}
	return &AddressError{Name: name, Address: canonical, Class: words, Never: reach == never}
}

// ownAddresses lists the addresses of this host's interfaces, as they are now.
func ownAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, a.Unmap())
			}
		}
	}
	return own, nil
}
