//go:build linux

package native

import (
	"encoding/binary"
	"net/netip"
	"os"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// TestNetworkMessagesAreCurrent compares the generated messages with what the
// libraries encode. The launch sends the bytes as they are: no library runs inside.
func TestNetworkMessagesAreCurrent(t *testing.T) {
	for _, m := range []struct {
		name     string
		messages []netlink.Message
	}{
		{"routes4", []netlink.Message{
			address(t, source4, loopbackIndex, 0), localRoute(t, source4, loopbackIndex, netip.MustParsePrefix("0.0.0.0/0")),
		}},
		{"routes6", []netlink.Message{
			address(t, source6, loopbackIndex, unix.IFA_F_NODAD), localRoute(t, source6, loopbackIndex, netip.MustParsePrefix("::/0")),
		}},
		{"tun4", []netlink.Message{
			address(t, source4, tunIndex, 0), up(t, tunIndex, 65520), defaultRoute(t, unix.AF_INET, unix.RT_SCOPE_LINK),
		}},
		{"tun6", []netlink.Message{
			address(t, source6, tunIndex, unix.IFA_F_NODAD), localRoute(t, source6, tunIndex, netip.PrefixFrom(source6, 128)), defaultRoute(t, unix.AF_INET6, unix.RT_SCOPE_UNIVERSE),
		}},
		{"tproxy", ruleMessages(t, false)},
		{"redirect", ruleMessages(t, true)},
	} {
		var want []byte
		for i, one := range m.messages {
			one.Header.Sequence = uint32(i + 1)
			one.Header.PID = 0
			one.Header.Length = uint32(16 + (len(one.Data)+3)&^3)
			raw, err := one.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, raw...)
		}
		current(t, messageFile(m.name), want)
	}
}

const loopbackIndex = 1 // lo is the first device of every network namespace

// address is RTM_NEWADDR (rtnetlink(7)).
func address(t *testing.T, a netip.Addr, index byte, flags uint32) netlink.Message {
	t.Helper()
	header := []byte{family(a), byte(a.BitLen()), byte(flags), unix.RT_SCOPE_UNIVERSE, index, 0, 0, 0}
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWADDR, Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl},
		Data: append(header, attributes(t,
			netlink.Attribute{Type: unix.IFA_LOCAL, Data: a.AsSlice()},
			netlink.Attribute{Type: unix.IFA_ADDRESS, Data: a.AsSlice()})...),
	}
}

// localRoute is RTM_NEWROUTE of type local in the table local: what goes to the
// prefix is delivered here.
func localRoute(t *testing.T, source netip.Addr, index byte, to netip.Prefix) netlink.Message {
	t.Helper()
	return route(t, []byte{family(source), byte(to.Bits()), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}, index,
		netlink.Attribute{Type: unix.RTA_DST, Data: to.Addr().AsSlice()},
		netlink.Attribute{Type: unix.RTA_PREFSRC, Data: source.AsSlice()})
}

// defaultRoute sends what has no other route to the TUN device.
func defaultRoute(t *testing.T, family, scope byte) netlink.Message {
	t.Helper()
	return route(t, []byte{family, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, scope, unix.RTN_UNICAST, 0, 0, 0, 0}, tunIndex)
}

func route(t *testing.T, header []byte, index byte, more ...netlink.Attribute) netlink.Message {
	t.Helper()
	all := append([]netlink.Attribute{{Type: unix.RTA_OIF, Data: binary.LittleEndian.AppendUint32(nil, uint32(index))}}, more...)
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWROUTE, Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl},
		Data:   append(header, attributes(t, all...)...),
	}
}

// up is RTM_NEWLINK: it brings a device up and sets its MTU.
func up(t *testing.T, index byte, mtu uint32) netlink.Message {
	t.Helper()
	header := []byte{unix.AF_UNSPEC, 0, 0, 0, index, 0, 0, 0, unix.IFF_UP, 0, 0, 0, unix.IFF_UP, 0, 0, 0}
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWLINK, Flags: netlink.Request | netlink.Acknowledge},
		Data:   append(header, attributes(t, netlink.Attribute{Type: unix.IFLA_MTU, Data: binary.LittleEndian.AppendUint32(nil, mtu)})...),
	}
}

func attributes(t *testing.T, all ...netlink.Attribute) []byte {
	t.Helper()
	raw, err := netlink.MarshalAttributes(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// ruleMessages are the messages that make the table with its chain and a rule for each
// family, in one transaction.
func ruleMessages(t *testing.T, nat bool) []netlink.Message {
	t.Helper()
	var sent []netlink.Message
	conn, err := nftables.New(nftables.WithTestDial(func(req []netlink.Message) ([]netlink.Message, error) {
		sent = append(sent, req...)
		return nil, os.ErrPermission // there is no one to acknowledge
	}))
	if err != nil {
		t.Fatal(err)
	}
	table := conn.AddTable(&nftables.Table{Name: "holdfast", Family: nftables.TableFamilyINet})
	chain := &nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle}
	if nat {
		chain = &nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest}
	}
	conn.AddChain(chain)
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule(t, netip.MustParsePrefix("127.0.0.0/8"), source4, listen4, nat)})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule(t, netip.MustParsePrefix("::1/128"), source6, listen6, nat)})
	conn.Flush()
	last := -1
	for i := range sent {
		sent[i].Header.Flags &^= netlink.Acknowledge | netlink.Echo
		if sent[i].Header.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWRULE {
			last = i
		}
	}
	if last < 0 {
		t.Fatalf("the library sent %d messages and no rule", len(sent))
	}
	sent[last].Header.Flags |= netlink.Acknowledge
	return sent
}

// rule directs TCP whose destination is neither loopback nor our own address.
func rule(t *testing.T, loopback netip.Prefix, own, listener netip.Addr, nat bool) []expr.Any {
	t.Helper()
	offset, length, proto := uint32(16), uint32(4), byte(unix.NFPROTO_IPV4)
	if own.Is6() {
		offset, length, proto = 24, 16, unix.NFPROTO_IPV6
	}
	mask := make([]byte, length)
	for i := range loopback.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	load := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length}
	out := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{proto}},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		load,
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: own.AsSlice()},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length, Mask: mask, Xor: make([]byte, length)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: loopback.Addr().AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(interceptPort)},
	}
	if nat {
		return append(out, &expr.Redir{RegisterProtoMin: 2})
	}
	return append(out,
		&expr.Immediate{Register: 1, Data: listener.AsSlice()},
		&expr.TProxy{Family: proto, TableFamily: unix.NFPROTO_INET, RegAddr: 1, RegPort: 2})
}
