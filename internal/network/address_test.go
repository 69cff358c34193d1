package network

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func noOwn() ([]netip.Addr, error) { return nil, nil }

// classRow says what an address is, and which source says so.
type classRow struct {
	addr   string
	reach  reach
	words  string // part of them
	source string
}

func TestClassify4(t *testing.T) {
	testClasses(t, []classRow{
		{"8.8.8.8", public, "", "an address of a public resolver"},
		{"100.63.255.255", public, "", "just below 100.64/10, RFC 6598"},
		{"100.128.0.0", public, "", "just above 100.64/10, RFC 6598"},
		{"172.15.255.255", public, "", "just below 172.16/12, RFC 1918"},
		{"172.32.0.0", public, "", "just above 172.16/12, RFC 1918"},
		{"198.17.255.255", public, "", "just below 198.18/15, RFC 2544"},
		{"198.20.0.0", public, "", "just above 198.18/15, RFC 2544"},
		{"192.0.1.1", public, "", "between 192.0.0.0/24 and 192.0.2.0/24, RFC 6890"},
		{"223.255.255.255", public, "", "just below multicast, RFC 5771"},

		{"0.0.0.0", never, "this host", "RFC 1122 3.2.1.3"},
		{"0.1.2.3", never, "this host", "RFC 1122 3.2.1.3"},
		{"10.1.2.3", internal, "private", "RFC 1918 3"},
		{"172.16.0.1", internal, "private", "RFC 1918 3"},
		{"172.31.255.255", internal, "private", "RFC 1918 3"},
		{"192.168.1.1", internal, "private", "RFC 1918 3"},
		{"100.64.0.1", internal, "provider's NAT", "RFC 6598 7"},
		{"127.0.0.1", internal, "loopback", "RFC 1122 3.2.1.3"},
		{"127.255.255.254", internal, "loopback", "RFC 1122 3.2.1.3"},
		{"169.254.1.1", never, "link-local", "RFC 3927 2.1"},
		{"192.0.0.8", never, "protocols", "RFC 7600, in RFC 6890's 192.0.0.0/24"},
		{"192.0.2.1", internal, "documentation", "RFC 5737 3"},
		{"198.51.100.1", internal, "documentation", "RFC 5737 3"},
		{"203.0.113.1", internal, "documentation", "RFC 5737 3"},
		{"192.88.99.1", never, "6to4", "RFC 7526 4"},
		{"198.18.0.1", internal, "benchmarks", "RFC 2544 C.2.2"},
		{"198.19.255.254", internal, "benchmarks", "RFC 2544 C.2.2"},
		{"224.0.0.1", never, "multicast", "RFC 5771 3"},
		{"239.255.255.250", never, "multicast", "RFC 2365 6"},
		{"240.0.0.1", never, "reserved", "RFC 1112 4"},
		{"255.255.255.255", never, "broadcast", "RFC 919 7"},

		{"169.254.169.254", never, "metadata service of most clouds", "AWS, Google Cloud, Azure, OpenStack guides"},
		{"169.254.170.2", never, "ECS", "AWS ECS task role guide"},
		{"169.254.170.23", never, "EKS", "AWS EKS pod identity guide"},
		{"169.254.0.23", never, "Tencent", "Tencent Cloud CVM guide"},
		{"100.100.100.200", never, "Alibaba", "Alibaba Cloud ECS guide"},
		{"168.63.129.16", never, "Azure", "Azure virtual network guide"},
		{"192.0.0.192", never, "Oracle", "Oracle Cloud compute classic guide"},
	})
}

func TestClassify6(t *testing.T) {
	testClasses(t, []classRow{
		{"2606:4700::1111", public, "", "global unicast, RFC 4291 2.4"},
		{"2001:4860:4860::8888", public, "", "global unicast above 2001::/23, RFC 2928"},

		{"fd00:ec2::254", never, "AWS", "AWS instance metadata guide, IPv6"},
		{"fd00:ec2::23", never, "AWS", "AWS EKS pod identity guide, IPv6"},
		{"fd20:ce::254", never, "Google", "Google Cloud metadata guide, IPv6"},
		{"fd00:42::42", never, "Scaleway", "Scaleway metadata guide, IPv6"},

		{"::", never, "unspecified", "RFC 4291 2.5.2"},
		{"::1", internal, "loopback", "RFC 4291 2.5.3"},
		{"fc00::1", internal, "unique local", "RFC 4193 3.1"},
		{"fd12:3456::1", internal, "unique local", "RFC 4193 3.1"},
		{"fe80::1", never, "link-local", "RFC 4291 2.5.6"},
		{"fe80::1%1", never, "interface", "RFC 4007 11"},
		{"fec0::1", internal, "site-local", "RFC 3879"},
		{"ff02::1", never, "multicast", "RFC 4291 2.7"},
		{"100::1", never, "discarded", "RFC 6666"},
		{"100:0:0:1::1", never, "not an address that is given out", "RFC 9780"},
		{"2001:db8::1", internal, "documentation", "RFC 3849"},
		{"3fff::1", internal, "documentation", "RFC 9637"},
		{"2001:2::1", internal, "benchmarks", "RFC 5180"},
		{"2001:20::1", never, "ORCHID", "RFC 7343"},
		{"2001:10::1", never, "ORCHID", "RFC 4843"},
		{"2001:1::1", never, "protocols", "RFC 7723"},
		{"5f00::1", never, "segment routing", "RFC 9602"},
		{"4000::1", never, "not an address that is given out", "RFC 4291 2.4"},

		{"::ffff:127.0.0.1", internal, "loopback", "IPv4-mapped, RFC 4291 2.5.5.2"},
		{"::ffff:a9fe:a9fe", never, "metadata", "IPv4-mapped, RFC 4291 2.5.5.2"},
		{"::ffff:8.8.8.8", public, "", "IPv4-mapped, RFC 4291 2.5.5.2"},
		{"::127.0.0.1", never, "IPv4-compatible", "RFC 4291 2.5.5.1"},
		{"::8.8.8.8", never, "IPv4-compatible", "RFC 4291 2.5.5.1"},
		{"::ffff:0:7f00:1", never, "IPv4-translated", "RFC 2765 2.1"},
		{"64:ff9b::808:808", public, "", "NAT64 of a public address, RFC 6052 2.1"},
		{"64:ff9b::7f00:1", internal, "NAT64 (RFC 6052) for 127.0.0.1", "RFC 6052 3.1"},
		{"64:ff9b::a9fe:a9fe", never, "169.254.169.254", "RFC 6052 3.1"},
		{"64:ff9b::a00:1", internal, "10.0.0.1", "RFC 6052 3.1"},
		{"64:ff9b:1::a00:1", never, "local network", "RFC 8215"},
		{"64:ff9b:1::808:808", never, "local network", "RFC 8215"},
		{"64:ff9b:1::a9fe:a9fe", never, "169.254.169.254", "RFC 8215"},
		{"64:ff9b:1:a9fe:a9:fe00::", never, "local network", "RFC 8215 with the /48 layout of RFC 6052 2.2"},
		{"2002:a9fe:a9fe::1", never, "169.254.169.254", "6to4, RFC 3056 2"},
		{"2002:808:808::1", never, "6to4", "RFC 7526"},
		{"2001:0:4136:e378:8000:63bf:8080:fefe", never, "Teredo (RFC 4380) for 127.127.1.1", "RFC 4380 4"},
		{"2a00:1450::5efe:7f00:1", never, "ISATAP (RFC 5214) for 127.0.0.1", "RFC 5214 6.1"},
		{"2a00:1450::200:5efe:a00:1", never, "ISATAP", "RFC 5214 6.1"},
		{"2a00:1450::5efe:808:808", public, "", "RFC 5214 6.1, of a public address"},
	})
}

func testClasses(t *testing.T, rows []classRow) {
	for _, tt := range rows {
		t.Run(tt.addr, func(t *testing.T) {
			reach, words := classify(netip.MustParseAddr(tt.addr))
			if reach != tt.reach || !strings.Contains(words, tt.words) || (words == "") != (reach == public) {
				t.Errorf("got %d %q, want %d %q (%s)", reach, words, tt.reach, tt.words, tt.source)
			}
		})
	}
}

func TestCheckAddress(t *testing.T) {
	own := func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("8.8.4.4")}, nil }
	broken := func() ([]netip.Addr, error) { return nil, errors.New("no netlink") }
	for _, tt := range []struct {
		name     string
		addr     string
		internal bool
		own      func() ([]netip.Addr, error)
		refused  string // part of the error; "" for none
		hint     bool
	}{
		{name: "a public address is dialled", addr: "8.8.8.8", own: own},
		{name: "this host's own address is refused", addr: "8.8.4.4", own: own, refused: "api.test is at 8.8.4.4, an address of this host itself", hint: true},
		{name: "its own address inside IPv6 as well", addr: "::ffff:8.8.4.4", own: own, refused: "at 8.8.4.4, an address of this host", hint: true},
		{name: "its own address behind NAT64 as well", addr: "64:ff9b::808:404", own: own, refused: "at 64:ff9b::808:404, an address of this host", hint: true},
		{name: "another one behind NAT64 is dialled", addr: "64:ff9b::808:808", own: own},
		{name: "its own address is reached with internal", addr: "8.8.4.4", internal: true, own: own},
		{name: "without the list nothing is public", addr: "8.8.8.8", own: broken, refused: "listing this host's own addresses: no netlink"},
		{name: "a private address is refused", addr: "10.0.0.1", own: noOwn, refused: "RFC 1918", hint: true},
		{name: "a private address is reached with internal", addr: "10.0.0.1", internal: true, own: noOwn},
		{name: "loopback is reached with internal", addr: "127.0.0.1", internal: true, own: noOwn},
		{name: "link-local is not reached with internal", addr: "169.254.7.7", internal: true, own: noOwn, refused: "RFC 3927"},
		{name: "metadata is not reached with internal", addr: "100.100.100.200", internal: true, own: noOwn, refused: "Alibaba"},
		{name: "metadata behind NAT64 is not reached with internal", addr: "64:ff9b::6464:64c8", internal: true, own: noOwn, refused: "100.100.100.200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkAddress("api.test", netip.MustParseAddr(tt.addr), tt.internal, tt.own)
			if tt.refused == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Fatalf("got %v, want %q", err, tt.refused)
			}
			var ae *AddressError
			if got := errors.As(err, &ae) && ae.Hint() != ""; got != tt.hint {
				t.Errorf("a hint: %v, want %v", got, tt.hint)
			}
		})
	}
}

func TestOwnAddresses(t *testing.T) {
	own, err := ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	want, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if len(own) != len(want) || len(own) == 0 {
		t.Errorf("got %v, the interfaces have %v", own, want)
	}
}

func BenchmarkOwnAddresses(b *testing.B) {
	for b.Loop() {
		if _, err := ownAddresses(); err != nil {
			b.Fatal(err)
		}
	}
}
