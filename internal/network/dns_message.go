package network

import (
	"encoding/binary"
	"net"

	"github.com/miekg/dns"
)

// bareAnswer is an answer of a header alone (RFC 1035, 4.1.1): to what could not
// be read further.
func bareAnswer(query []byte, code int) []byte {
	b := make([]byte, 12)
	copy(b, query[:2])
	const response, opcodeAndRecursionDesired, recursionAvailable = 0x8000, 0x7900, 0x0080
	flags := response | binary.BigEndian.Uint16(query[2:])&opcodeAndRecursionDesired | recursionAvailable | uint16(code)
	binary.BigEndian.PutUint16(b[2:], flags)
	return b
}

// write makes the message. An answer that is too long loses the words of the error
// first, then the record with its lifetime, then everything: the client asks again over
// TCP.
func (f dnsAnswer) write(q *dns.Msg, opt *dns.OPT, limit int) []byte {
	m := &dns.Msg{Compress: true, Question: q.Question}
	m.Id, m.Response, m.Opcode, m.Rcode = q.Id, true, q.Opcode, f.code
	m.RecursionDesired, m.RecursionAvailable, m.CheckingDisabled = q.RecursionDesired, true, q.CheckingDisabled
	f.fill(m)
	if opt != nil {
		mine := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
		mine.SetUDPSize(packetSize)
		if f.text != "" {
			mine.Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: f.ede, ExtraText: f.text}}
		}
		m.Extra = []dns.RR{mine}
	}
	shorter := []func(){
		func() {
			if opt != nil {
				m.Extra[0].(*dns.OPT).Option = nil
			}
		},
		func() { m.Ns = nil },
		func() { m.Answer, m.Truncated = nil, true },
		func() { m.Extra = nil },
	}
	for {
		b, err := m.Pack()
		if err == nil && len(b) <= limit {
			return b
		}
		if err != nil || len(shorter) == 0 {
			return nil
		}
		shorter[0]()
		shorter = shorter[1:]
	}
}

// fill puts in the records. The owner is spelled as it was asked for, for
// clients that know their own answers by it.
func (f dnsAnswer) fill(m *dns.Msg) {
	q := m.Question[0]
	head := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: nameTTL}
	switch {
	case f.target != "":
		m.Answer = []dns.RR{&dns.PTR{Hdr: head, Ptr: f.target}}
	case f.address.Is4():
		m.Answer = []dns.RR{&dns.A{Hdr: head, A: net.IP(f.address.AsSlice())}}
	case f.address.Is6():
		m.Answer = []dns.RR{&dns.AAAA{Hdr: head, AAAA: net.IP(f.address.AsSlice())}}
	case f.code == dns.RcodeSuccess || f.code == dns.RcodeNameError:
		m.Ns = []dns.RR{negativeSOA()}
	}
}

// negativeSOA is the record with the lifetime of a negative answer (RFC 2308, 5). Its owner
// is the root: this server answers for all names.
func negativeSOA() *dns.SOA {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: refusalTTL},
		Ns:  "holdfast.invalid.", Mbox: "nobody.invalid.",
		Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: refusalTTL,
	}
}
