package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"holdfast.dev/holdfast/internal/policy"
)

// nameWorld is a name server with a list of what it recorded.
type nameWorld struct {
	*nameServer
	recorded []nameQuery
	lost     error // what recording returns
}

func newNameWorld(t testing.TB, learn Learn, limits Limits) *nameWorld {
	r := rulesFor(t,
		allow("allowed.test", policy.TLS, 443),
		allow("*.wild.test", policy.TLS, 443),
		allow("full.wild.test", policy.TLS, 443),
		allow("192.0.2.7", policy.TCP, 22),
	)
	w := &nameWorld{}
	limits = limits.withDefaults()
	w.nameServer = newNameServer(func() *Rules { return r }, NewNameMap(), newNameGuard(limits), learn, limits, func(q nameQuery) error {
		w.recorded = append(w.recorded, q)
		return w.lost
	})
	return w
}

// ednsQuery makes a query with EDNS, as resolvers of systems do.
func ednsQuery(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.SetEdns0(4096, false)
	return m
}

func packQuery(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask gives a query to the server as if it came in a datagram; nil for no answer.
func (w *nameWorld) ask(t testing.TB, m *dns.Msg) *dns.Msg {
	t.Helper()
	return parseAnswer(t, w.answer(packQuery(t, m), plainSize, packetSize))
}

func parseAnswer(t testing.TB, b []byte) *dns.Msg {
	t.Helper()
	if b == nil {
		return nil
	}
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("the answer % x: %v", b, err)
	}
	return m
}

func edeOf(m *dns.Msg) *dns.EDNS0_EDE {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				return e
			}
		}
	}
	return nil
}

func TestNamesAreAnswered(t *testing.T) {
	for _, tt := range []struct {
		name, ask string
		qtype     uint16
		code      int
		records   int    // answers
		says      string // part of the extended error; "" for none
		recorded  string // reason; "answered"; "" for nothing
	}{
		{"a name of a rule has an address", "allowed.test.", dns.TypeA, dns.RcodeSuccess, 1, "", "answered"},
		{"case does not matter", "ALLowed.TEST.", dns.TypeA, dns.RcodeSuccess, 1, "", "answered"},
		{"a name below a wildcard has an address", "a.b.wild.test.", dns.TypeA, dns.RcodeSuccess, 1, "", "answered"},
		{"no IPv6 address", "allowed.test.", dns.TypeAAAA, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"no HTTPS record, so that no key for ECH and no hint to HTTP/3", "allowed.test.", dns.TypeHTTPS, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"no SVCB record", "allowed.test.", dns.TypeSVCB, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"no TXT record", "allowed.test.", dns.TypeTXT, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"no MX record", "allowed.test.", dns.TypeMX, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"nothing for ANY", "allowed.test.", dns.TypeANY, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"nothing for a type that nobody knows", "allowed.test.", 65280, dns.RcodeSuccess, 0, "IPv4", "answered"},
		{"no zone transfer", "allowed.test.", dns.TypeAXFR, dns.RcodeRefused, 0, "type", ""},

		{"an unknown name does not exist", "denied.test.", dns.TypeA, dns.RcodeNameError, 0, "--allow denied.test", "no rule allows it"},
		{"no flag for a metadata service", "metadata.google.internal.", dns.TypeA, dns.RcodeNameError, 0, policy.NoMetadata, policy.NoMetadata},
		{"neither for other types", "denied.test.", dns.TypeTXT, dns.RcodeNameError, 0, "--allow denied.test", "no rule allows it"},
		{"a service of an allowed name does not exist, which is no refusal", "_https._tcp.allowed.test.", dns.TypeSRV, dns.RcodeNameError, 0, "", "answered"},
		{"a service of another name is one", "_https._tcp.denied.test.", dns.TypeSRV, dns.RcodeNameError, 0, "no rule", "no rule allows it"},
		{"the wildcard's own name", "wild.test.", dns.TypeA, dns.RcodeNameError, 0, "what is below it", "*.wild.test allows what is below it, not the name itself"},
		{"a name that ends like an allowed one", "evil-allowed.test.", dns.TypeA, dns.RcodeNameError, 0, "no rule", "no rule allows it"},
		{"a search domain behind an allowed name", "allowed.test.corp.example.", dns.TypeA, dns.RcodeNameError, 0, "no rule", "no rule allows it"},
		{"a NUL in a name", "denied.test\\000.wild.test.", dns.TypeA, dns.RcodeNameError, 0, "not taken", "it is not taken as a host name"},
		{"a dot inside a label", "a\\.b.wild.test.", dns.TypeA, dns.RcodeNameError, 0, "not taken", "it is not taken as a host name"},
		{"a space in a name", "a\\ b.wild.test.", dns.TypeA, dns.RcodeNameError, 0, "not taken", "it is not taken as a host name"},
		{"raw bytes", "\\195\\169.wild.test.", dns.TypeA, dns.RcodeNameError, 0, "not taken", "it is not taken as a host name"},
		{"an address as a name", "192.0.2.7.", dns.TypeA, dns.RcodeNameError, 0, "not taken", "it is not taken as a host name"},
		{"the root", ".", dns.TypeNS, dns.RcodeNameError, 0, "not taken", "it is not taken as a host name"},

		{"localhost is loopback", "localhost.", dns.TypeA, dns.RcodeSuccess, 1, "", ""},
		{"localhost is loopback in IPv6", "localhost.", dns.TypeAAAA, dns.RcodeSuccess, 1, "", ""},
		{"a name below localhost", "a.localhost.", dns.TypeA, dns.RcodeSuccess, 1, "", ""},
		{"no other record of localhost", "localhost.", dns.TypeTXT, dns.RcodeSuccess, 0, "", ""},
		{"an address of nobody has no name", "1.2.0.192.in-addr.arpa.", dns.TypePTR, dns.RcodeNameError, 0, "no name", ""},
		{"nor in IPv6", strings.Repeat("0.", 32) + "ip6.arpa.", dns.TypePTR, dns.RcodeNameError, 0, "no name", ""},
		{"what is no reverse name is a name like others", "secret.in-addr.arpa.", dns.TypePTR, dns.RcodeNameError, 0, "no rule", "no rule allows it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newNameWorld(t, Off, Limits{})
			m := w.ask(t, ednsQuery(tt.ask, tt.qtype))
			if m.Rcode != tt.code || len(m.Answer) != tt.records || !m.Response || !m.RecursionAvailable || m.Truncated {
				t.Errorf("got %v", m)
			}
			if len(m.Question) != 1 || m.Question[0].Name != tt.ask {
				t.Errorf("the question came back as %v", m.Question)
			}
			for _, rr := range m.Answer {
				if rr.Header().Name != tt.ask || rr.Header().Ttl != nameTTL {
					t.Errorf("the answer is %v", rr)
				}
			}
			if empty := tt.records == 0 && tt.code != dns.RcodeRefused; empty != (len(m.Ns) == 1) {
				t.Errorf("the authority section is %v", m.Ns)
			}
			ede := edeOf(m)
			if (ede == nil) != (tt.says == "") || ede != nil && (ede.InfoCode != 15 || (!strings.Contains(ede.ExtraText, tt.says) || tt.says == policy.NoMetadata && strings.Contains(ede.ExtraText, "allow it:"))) {
				t.Errorf("the extended error is %v, want %q", ede, tt.says)
			}
			got := ""
			if len(w.recorded) == 1 {
				if got = w.recorded[0].Reason; w.recorded[0].Answered {
					got = "answered"
				}
			}
			if got != tt.recorded || len(w.recorded) > 1 {
				t.Errorf("recorded %+v, want %q", w.recorded, tt.recorded)
			}
		})
	}
}

func TestAddressesLeadBack(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	a, ok := netip.AddrFromSlice(w.ask(t, ednsQuery("Allowed.test.", dns.TypeA)).Answer[0].(*dns.A).A.To4())
	if name, known := w.names.Name(a); !ok || !known || name != "allowed.test" {
		t.Fatalf("%v leads to %q", a, name)
	}
	again := w.ask(t, ednsQuery("allowed.test.", dns.TypeA))
	if again.Answer[0].(*dns.A).A.String() != a.String() {
		t.Errorf("asked again it is %v", again.Answer[0])
	}
	reverse, err := dns.ReverseAddr(a.String())
	if err != nil {
		t.Fatal(err)
	}
	ptr := w.ask(t, ednsQuery(reverse, dns.TypePTR))
	if len(ptr.Answer) != 1 || ptr.Answer[0].(*dns.PTR).Ptr != "allowed.test." {
		t.Errorf("its name is %v", ptr.Answer)
	}
}

func TestMessagesThatAreNoPlainQuery(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	plain := packQuery(t, ednsQuery("allowed.test.", dns.TypeA))
	edit := func(f func(m *dns.Msg)) []byte {
		m := ednsQuery("allowed.test.", dns.TypeA)
		f(m)
		return packQuery(t, m)
	}
	for _, tt := range []struct {
		name string
		in   []byte
		code int // -1 for no answer
	}{
		{"a query is answered", plain, dns.RcodeSuccess},
		{"nothing is dropped", nil, -1},
		{"less than a header is dropped", plain[:11], -1},
		{"an answer is dropped", edit(func(m *dns.Msg) { m.Response = true }), -1},
		{"a header alone is malformed", plain[:12], dns.RcodeFormatError},
		{"a cut question is malformed", plain[:20], dns.RcodeFormatError},
		{"no question is malformed", edit(func(m *dns.Msg) { m.Question = nil }), dns.RcodeFormatError},
		{"two questions are malformed", edit(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), dns.RcodeFormatError},
		{"two OPT records are malformed", edit(func(m *dns.Msg) { m.Extra = append(m.Extra, m.Extra[0]) }), dns.RcodeFormatError},
		{"a name that points at itself is malformed", append(append([]byte{}, plain[:12]...), 0xc0, 12, 0, 1, 0, 1), dns.RcodeFormatError},
		{"another version of EDNS", edit(func(m *dns.Msg) { m.IsEdns0().SetVersion(1) }), dns.RcodeBadVers},
		{"an update is not implemented", edit(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
		{"a notify is not implemented", edit(func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }), dns.RcodeNotImplemented},
		{"class CHAOS is refused", edit(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), dns.RcodeRefused},
		{"class ANY is refused", edit(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY }), dns.RcodeRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := parseAnswer(t, w.answer(tt.in, plainSize, packetSize))
			if tt.code < 0 {
				if m != nil {
					t.Errorf("got %v", m)
				}
				return
			}
			if m == nil || m.Rcode != tt.code || !m.Response || m.Id != uint16(tt.in[0])<<8|uint16(tt.in[1]) {
				t.Errorf("got %v, want code %d", m, tt.code)
			}
		})
	}
}

func TestAnswersFit(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	label := strings.Repeat("a", 63) + "."
	long := strings.Repeat(label, 3) + strings.Repeat("b", 61) + "."
	for _, tt := range []struct {
		name string
		size uint16 // 0 for none named
		want int
		ede  bool
	}{
		{"who names no size gets 512 bytes and no OPT record", 0, 512, false},
		{"less than 512 means 512, without words", 100, 512, false},
		{"512 bytes, without words", 512, 512, false},
		{"1232 bytes", 1232, 1232, true},
		{"no more than 1232 bytes in a datagram", 65535, 1232, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := new(dns.Msg)
			m.SetQuestion(long, dns.TypeA)
			if tt.size > 0 {
				m.SetEdns0(tt.size, false)
			}
			b := w.answer(packQuery(t, m), plainSize, packetSize)
			if len(b) > tt.want {
				t.Errorf("%d bytes, want at most %d", len(b), tt.want)
			}
			got := parseAnswer(t, b)
			if got.Rcode != dns.RcodeNameError || (edeOf(got) != nil) != tt.ede || (got.IsEdns0() != nil) != (tt.size > 0) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestLearningAnswersEveryName(t *testing.T) {
	for _, learn := range []Learn{Observe, Through} {
		w := newNameWorld(t, learn, Limits{})
		if m := w.ask(t, ednsQuery("unknown.example.", dns.TypeA)); len(m.Answer) != 1 {
			t.Errorf("got %v", m)
		}
		if m := w.ask(t, ednsQuery("un\\000known.example.", dns.TypeA)); m.Rcode != dns.RcodeNameError {
			t.Errorf("a NUL: got %v", m)
		}
		if len(w.recorded) != 2 || !w.recorded[0].Answered || w.recorded[0].Rule != learned {
			t.Errorf("recorded %+v", w.recorded)
		}
	}
}

func TestQueriesAreRecordedOnce(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	now := time.Now()
	w.now = func() time.Time { return now }
	for range 5 {
		w.ask(t, ednsQuery("denied.test.", dns.TypeA))
		w.ask(t, ednsQuery("DENIED.test.", dns.TypeAAAA))
	}
	if len(w.recorded) != 1 {
		t.Errorf("recorded %+v", w.recorded)
	}
	now = now.Add(recordGap)
	w.ask(t, ednsQuery("denied.test.", dns.TypeA))
	if len(w.recorded) != 2 {
		t.Errorf("a while later: recorded %+v", w.recorded)
	}
}

func TestWhatCannotBeRecordedIsNotAnswered(t *testing.T) {
	w := newNameWorld(t, Off, Limits{})
	w.lost = errors.New("disk full")
	for range 2 {
		if m := w.ask(t, ednsQuery("allowed.test.", dns.TypeA)); m.Rcode != dns.RcodeServerFailure || len(m.Answer) != 0 {
			t.Errorf("got %v", m)
		}
	}
	w.lost = nil
	if m := w.ask(t, ednsQuery("allowed.test.", dns.TypeA)); len(m.Answer) != 1 {
		t.Errorf("once it can be: %v", m)
	}
}

func FuzzDNS(f *testing.F) {
	for _, q := range []*dns.Msg{ednsQuery("allowed.test.", dns.TypeA), ednsQuery("denied\\000.test.", dns.TypeTXT), ednsQuery(".", dns.TypeANY), ednsQuery("1.0.18.198.in-addr.arpa.", dns.TypePTR)} {
		b := packQuery(f, q)
		f.Add(b)
		f.Add(b[:len(b)-3])
	}
	f.Add([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1})
	w := newNameWorld(f, Off, Limits{Queries: 1 << 30, NamesMinute: 1 << 30, BytesHour: 1 << 30})
	f.Fuzz(func(t *testing.T, b []byte) {
		out := w.answer(b, plainSize, packetSize)
		if len(out) > packetSize {
			t.Fatalf("%d bytes", len(out))
		}
		if out == nil {
			return
		}
		m := parseAnswer(t, out)
		if !m.Response || m.Id != uint16(b[0])<<8|uint16(b[1]) {
			t.Fatalf("got %v", m)
		}
		for _, rr := range m.Answer {
			name, err := Normalize(rr.Header().Name)
			if err != nil {
				t.Fatalf("an answer for %q", rr.Header().Name)
			}
			if _, known := w.rules().naming(name); !known && !strings.HasSuffix(name, "localhost") && !strings.HasSuffix(name, ".arpa") {
				t.Fatalf("an answer for %q", name)
			}
		}
		w.recorded = nil
	})
}
