package network

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	nameTTL    = 30          // seconds that a client keeps an address
	refusalTTL = 5           // seconds that "there is none" is kept: a reload is noticed soon
	plainSize  = 512         // bytes of an answer to a client that named no size (RFC 1035, 4.2.1)
	packetSize = 1232        // bytes of an answer in one datagram, at most (DNS flag day 2020)
	streamSize = 65535       // bytes of an answer over TCP (RFC 1035, 4.2.2)
	recordGap  = time.Minute // before the same is recorded again
	recordMost = 1024        // different things that are remembered for that
)

// nameServer answers name queries out of the rules. It has no upstream: a name is
// looked up outside only when it is dialled, so that a query alone leaks nothing.
type nameServer struct {
	rules        func() *Rules
	names        *NameMap
	guard        *nameGuard
	learn        Learn
	record       func(nameQuery) error   // an error refuses the query
	carriesDecoy func(query []byte) bool // reports whether a query must be refused; nil for none
	mayAsk       func() bool             // whether a human can be asked about a host that no rule names; nil for never
	turnsAway    bool                    // whether connections to refused names arrive, and are answered

	perSecond int
	now       func() time.Time
	streams   chan struct{} // a place for each connection over TCP

	mu       sync.Mutex
	queries  bucket
	recorded map[recordKey]time.Time
}

// nameQuery is a query as it is recorded. The same query is recorded once in a
// while, not each time.
type nameQuery struct {
	Name     string // in normal form where it has one, else as it was asked for; "" for queries as such
	Type     string // such as "AAAA"
	Answered bool   // else it was refused
	Reason   string // why it was refused, or answered although no rule names it
	Rule     string // that allowed it, or that came closest; "" for none
	Flagged  bool   // a flag would allow it
}

type recordKey struct{ name, reason string }

// newNameServer makes a server; no limit is zero.
func newNameServer(rules func() *Rules, names *NameMap, guard *nameGuard, learn Learn, limits Limits, record func(nameQuery) error) *nameServer {
	return &nameServer{
		rules: rules, names: names, guard: guard, learn: learn, record: record,
		perSecond: limits.Queries, now: time.Now,
		streams:  make(chan struct{}, streamMost),
		queries:  newBucket(limits.Queries, time.Second, time.Now()),
		recorded: map[recordKey]time.Time{},
	}
}

// dnsAnswer is the answer to one question.
type dnsAnswer struct {
	code    int // RCODE
	address netip.Addr
	target  string // of PTR
	ede     uint16 // info code of the extended error; with text
	text    string
	seen    *nameQuery // what is recorded; nil for nothing
}

// answer returns the answer to a query, or nil for none: a message that is not a query
// gets no answer, so that two servers cannot be made to answer each other. limit is the
// size of the answer if the query does not set one, most the largest.
func (s *nameServer) answer(query []byte, limit, most int) []byte {
	var q dns.Msg
	refused := s.carriesDecoy != nil && s.carriesDecoy(query)
	if len(query) < 12 || query[2]&0x80 != 0 {
		return nil
	}
	if refused {
		return bareAnswer(query, dns.RcodeRefused)
	}
	if query[2]>>3&0xf != dns.OpcodeQuery {
		return bareAnswer(query, dns.RcodeNotImplemented)
	}
	if !plausible(query) || q.Unpack(query) != nil {
		return bareAnswer(query, dns.RcodeFormatError)
	}
	opt, ok := onlyOPT(&q)
	if len(q.Question) != 1 || !ok {
		return bareAnswer(query, dns.RcodeFormatError)
	}
	if opt != nil {
		limit = max(limit, min(int(opt.UDPSize()), most))
	}
	var f dnsAnswer
	switch {
	case opt != nil && opt.Version() != 0:
		f.code = dns.RcodeBadVers
	case !s.admitted():
		f = blockedAnswer(dns.RcodeRefused, fmt.Sprintf("more than %d name queries a second", s.perSecond))
		f.seen = &nameQuery{Reason: f.text}
	default:
		f = s.find(q.Question[0])
	}
	if f.seen != nil && !s.note(*f.seen) {
		f = dnsAnswer{code: dns.RcodeServerFailure}
	}
	return f.write(&q, opt, limit)
}

// plausible reports whether the counts of a message are those of a query: one question,
// and no records except additional ones, of which EDNS and a signature make two.
// Parsing a message with thousands costs more than a hundred queries, because each may
// be a pointer to a long name.
func plausible(query []byte) bool {
	count := func(at int) int { return int(query[at])<<8 | int(query[at+1]) }
	return count(4) == 1 && count(6) == 0 && count(8) == 0 && count(10) <= 2
}

// onlyOPT finds the EDNS record; false when there are two (RFC 6891, 6.1.1).
func onlyOPT(q *dns.Msg) (opt *dns.OPT, ok bool) {
	for _, rr := range q.Extra {
		if o, is := rr.(*dns.OPT); is {
			if opt != nil {
				return nil, false
			}
			opt = o
		}
	}
	return opt, true
}

func (s *nameServer) admitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queries.has(1, s.now()) {
		return false
	}
	s.queries.consume(1)
	return true
}

// note records a query unless the same was recorded a moment ago; false when it
// could not be recorded and must not be answered.
func (s *nameServer) note(q nameQuery) bool {
	key, now := recordKey{q.Name, q.Reason}, s.now()
	s.mu.Lock()
	last, ok := s.recorded[key]
	again := ok && now.Sub(last) < recordGap
	if !again {
		if len(s.recorded) >= recordMost {
			clear(s.recorded)
		}
		s.recorded[key] = now
	}
	s.mu.Unlock()
	if again {
		return true
	}
	if err := s.record(q); err != nil {
		s.mu.Lock()
		delete(s.recorded, key)
		s.mu.Unlock()
		return false
	}
	return true
}

// blockedAnswer is an answer with the extended error 15 (RFC 8914, 4.16).
func blockedAnswer(code int, text string) dnsAnswer {
	return dnsAnswer{code: code, ede: dns.ExtendedErrorCodeBlocked, text: text}
}

// find decides about one question.
func (s *nameServer) find(q dns.Question) dnsAnswer {
	kind := dns.TypeToString[q.Qtype]
	switch {
	case q.Qclass != dns.ClassINET:
		return blockedAnswer(dns.RcodeRefused, "only names of class IN are answered")
	case kind == "" && q.Qtype >= 128 && q.Qtype < 255, q.Qtype == dns.TypeAXFR, q.Qtype == dns.TypeIXFR, q.Qtype == dns.TypeOPT:
		return blockedAnswer(dns.RcodeRefused, "queries of this type are not answered") // RFC 6895, 3.1: about queries, not data
	}
	if kind == "" {
		kind = fmt.Sprintf("TYPE%d", q.Qtype)
	}
	name, err := Normalize(q.Name) // miekg/dns escapes odd bytes with a backslash, which no name has
	if err != nil {
		f := blockedAnswer(dns.RcodeNameError, "it is not taken as a host name")
		f.seen = &nameQuery{Name: strings.TrimSuffix(q.Name, "."), Type: kind, Reason: f.text}
		return f
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761, 6.3
		return s.localhost(q.Qtype)
	}
	if a, ok := reverseName(name); ok {
		return s.reverse(a, q.Qtype)
	}
	return s.findName(name, kind, q.Qtype)
}

// findName decides about a host name.
func (s *nameServer) findName(name, kind string, qtype uint16) dnsAnswer {
	rules := s.rules()
	seen := &nameQuery{Name: name, Type: kind, Answered: true}
	rule, known := rules.naming(name)
	service, ofHost := rules.naming(serviceOf(name))
	switch {
	case known && rule.wildcard == "":
		seen.Rule = rule.Origin.String()
		return s.give(seen, fullName, qtype)
	case known:
		seen.Rule = rule.Origin.String()
		if err := s.guard.admit(name, rule.wildcard); err != nil {
			return s.withhold(seen, err)
		}
		return s.give(seen, wildName, qtype)
	case ofHost:
		// A look-up of what may be served there (RFC 2782), as apt makes for each
		// host: there is no such name, and nothing was refused.
		seen.Rule = service.Origin.String()
		return dnsAnswer{code: dns.RcodeNameError, seen: seen}
	case s.learn != Off:
		seen.Rule = learned
		return s.give(seen, wildName, qtype)
	}
	reason, nearest := rules.nearest(name, 0)
	f := dnsAnswer{code: dns.RcodeNameError}
	if s.mayAsk != nil && askable(name) && s.mayAsk() {
		err := s.guard.admitAsked(name)
		if err == nil {
			seen.Reason = "no rule names it, and a human is asked when it is connected to"
			return s.give(seen, askedName, qtype)
		}
		reason += "; nobody is asked: " + err.Error()
	} else {
		f = s.turnAway(name, qtype)
	}
	f.ede, f.text = dns.ExtendedErrorCodeBlocked, "holdfast: "+reason
	if flag := flagFor(name, 0); flag != "" {
		f.text += "; to allow it: " + flag
	}
	f.seen = &nameQuery{Name: name, Type: kind, Reason: reason, Rule: nearest, Flagged: true}
	return f
}

// turnAway answers for a name that is refused. Clients take a name that does not exist
// for a network that is broken: npm tries again for 70 seconds, and none shows why. So it
// has an address, like one that is allowed, and the connection is refused in words.
// Names that exist nowhere (RFC 6761, RFC 7686), that have no dot, or are one too many,
// do not exist.
func (s *nameServer) turnAway(name string, qtype uint16) dnsAnswer {
	if !s.turnsAway || !askable(name) || nowhere[name[strings.LastIndexByte(name, '.')+1:]] {
		return dnsAnswer{code: dns.RcodeNameError}
	}
	a, err := s.names.Address(name, refusedName)
	switch {
	case err != nil:
		return dnsAnswer{code: dns.RcodeNameError}
	case qtype != dns.TypeA:
		return dnsAnswer{}
	}
	return dnsAnswer{address: a}
}

// nowhere are the top-level domains below which the public network has no name, and
// which tests of programs rely on for that.
var nowhere = map[string]bool{"example": true, "invalid": true, "onion": true}

// give answers with the address of a name that is admitted.
func (s *nameServer) give(seen *nameQuery, as nameClass, qtype uint16) dnsAnswer {
	if qtype != dns.TypeA {
		f := blockedAnswer(dns.RcodeSuccess, "holdfast answers with IPv4 addresses only")
		f.seen = seen
		return f
	}
	a, err := s.names.Address(seen.Name, as)
	if err != nil {
		return s.withhold(seen, err)
	}
	return dnsAnswer{address: a, seen: seen}
}

// withhold refuses a name that is one too many.
func (s *nameServer) withhold(seen *nameQuery, err error) dnsAnswer {
	f := blockedAnswer(dns.RcodeRefused, "holdfast: "+strings.TrimPrefix(err.Error(), seen.Name+": "))
	f.seen = &nameQuery{Name: seen.Name, Type: seen.Type, Reason: err.Error(), Rule: seen.Rule}
	return f
}

// serviceOf is the host of a name such as _https._tcp.example.org; "" if the name is
// not that of a service.
func serviceOf(name string) string {
	host := name
	for strings.HasPrefix(host, "_") {
		_, host, _ = strings.Cut(host, ".")
	}
	if host == name {
		return ""
	}
	return host
}

// localhost answers as every resolver must: locally.
func (s *nameServer) localhost(qtype uint16) dnsAnswer {
	switch qtype {
	case dns.TypeA:
		return dnsAnswer{address: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	case dns.TypeAAAA:
		return dnsAnswer{address: netip.IPv6Loopback()}
	}
	return dnsAnswer{}
}

// reverse answers for the addresses of this run. Programs ask for others without the
// user's intent, so that these queries are not recorded.
func (s *nameServer) reverse(a netip.Addr, qtype uint16) dnsAnswer {
	name, ok := s.names.Name(a)
	switch {
	case !ok:
		return blockedAnswer(dns.RcodeNameError, "no name of this run has that address")
	case qtype != dns.TypePTR:
		return dnsAnswer{}
	}
	return dnsAnswer{target: name + "."}
}

// reverseName reads a name such as 4.3.2.1.in-addr.arpa, or the like of IPv6
// (RFC 3596, 2.5), which is for no address that this server gives out.
func reverseName(name string) (netip.Addr, bool) {
	if digits, ok := strings.CutSuffix(name, ".ip6.arpa"); ok && len(digits) == 63 {
		return netip.Addr{}, true
	}
	digits, ok := strings.CutSuffix(name, ".in-addr.arpa")
	if !ok {
		return netip.Addr{}, false
	}
	p := strings.Split(digits, ".")
	if len(p) != 4 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(p[3] + "." + p[2] + "." + p[1] + "." + p[0])
	return a, err == nil
}
