//go:build linux

package inside

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// recordTypes are the types that netDNS queries by name (IANA, DNS parameters).
var recordTypes = map[string]uint16{
	"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
	"NAPTR": 35, "OPT": 41, "DS": 43, "DNSKEY": 48, "SVCB": 64, "HTTPS": 65, "AXFR": 252, "ANY": 255, "PRIVATE": 65280,
}

// netDNS queries every server of at, one line "NETWORK ADDR" each, for every name
// of names and every type of types. "resolver" is the configured one. opt=HEX
// adds an EDNS option with these bytes.
func netDNS(p *Probe) {
	if ok := p.Arg("ok"); ok != "" {
		netControls(p, nil)
	}
	var all []attempt
	for server := range strings.SplitSeq(p.Arg("at"), "\n") {
		network, addr, _ := strings.Cut(server, " ")
		if addr == "resolver" {
			addr = configuredResolver()
		}
		for name := range strings.SplitSeq(p.Arg("names"), "\n") {
			if plain, err := unquote(name); err == nil {
				name = plain
			}
			for _, kind := range strings.Fields(p.Arg("types")) {
				all = append(all, attempt{fmt.Sprintf("%s %s %.60q by %s", network, addr, name, kind), func() ([]byte, error) {
					return ask(network, addr, question(name, recordTypes[kind], p.Arg("opt")), netPatience)
				}})
			}
		}
	}
	outcome := runAttempts(all)
	for i, a := range all {
		p.Read(a.name, func() ([]byte, error) { return outcome(i) })
	}
}

// configuredResolver returns the first one in resolv.conf(5).
func configuredResolver() string {
	b, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			return net.JoinHostPort(f[1], "53")
		}
	}
	return "127.0.0.1:53"
}

// question encodes a query (RFC 1035, 4.1), with an EDNS record for opt.
func question(name string, kind uint16, opt string) []byte {
	b := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		b = append(b, byte(len(label)))
		b = append(b, label...)
	}
	b = append(b, 0)
	b = binary.BigEndian.AppendUint16(b, kind)
	b = append(b, 0, 1)
	if opt != "" {
		b[11] = 1
		b = append(b, 0, 0, 41, 4, 208, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(len(opt)+4))
		b = append(b, 0xfd, 0xe9) // 65001, for local use
		b = binary.BigEndian.AppendUint16(b, uint16(len(opt)))
		b = append(b, opt...)
	}
	return b
}

// ask sends a query. An answer without a record is a refusal.
func ask(network, addr string, q []byte, patience time.Duration) ([]byte, error) {
	c, err := net.DialTimeout(network, addr, netPatience)
	if err != nil {
		return nil, denial(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if network == "tcp" {
		q = append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	}
	if _, err := c.Write(q); err != nil {
		return nil, denial(err)
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if network == "tcp" && n == 2 {
		n, err = c.Read(b)
	} else if network == "tcp" && n > 2 {
		b, n = b[2:], n-2
	}
	switch {
	case err != nil && err != io.EOF:
		return nil, denial(err)
	case strings.Contains(string(b[:n]), forbiddenMark):
		return b[:n], nil
	case n < 12 || b[3]&15 != 0 || binary.BigEndian.Uint16(b[6:]) == 0:
		return nil, refusedErr{fmt.Sprintf("answer %x", b[:min(n, 12)])}
	}
	return b[:n], nil
}

// netGarbage sends the resolver invalid queries, and one with two questions, and
// then a normal one.
func netGarbage(p *Probe) {
	q := question("allowed.test", 1, "")
	two := append(append([]byte{}, q...), q[12:]...)
	two[5] = 2
	loop := append(append([]byte{}, q[:12]...), 0xc0, 12, 0, 1, 0, 1)
	var all []attempt
	for name, b := range map[string][]byte{
		"nothing": {}, "a byte": {0}, "a head": q[:12], "two questions": two, "a loop": loop, "an answer": append([]byte{0x12, 0x34, 0x81, 0x80}, q[4:]...),
		"an update": append([]byte{0x12, 0x34, 0x28, 0}, q[4:]...), "64 KiB": append(append([]byte{}, q...), make([]byte, 60<<10)...), "a label of 63": question(strings.Repeat("x", 63)+".test", 1, ""),
	} {
		for _, network := range []string{"udp", "tcp"} {
			all = append(all, attempt{network + " " + name, func() ([]byte, error) {
				b, err := ask(network, configuredResolver(), b, 300*time.Millisecond)
				if err != nil && ErrnoName(err) == "ETIMEDOUT" {
					err = refusedErr{"no answer"}
				}
				return b, err
			}})
		}
	}
	netAttempts(p, all)
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
}
