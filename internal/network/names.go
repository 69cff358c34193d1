package network

import (
	"fmt"
	"net/netip"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Limits of a name as it is written, without the final dot (RFC 1035, 2.3.4).
const (
	nameBytes  = 253
	labelBytes = 63
)

// NameError says why something is not taken as a host name.
type NameError struct {
	Name   string // as it was given
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%q is not taken as a host name: %s", text.Cut(e.Name, nameBytes), e.Reason)
}

// Normalize gives the one form of a host name that is both compared and dialled:
// lower case, without the final dot, labels of letters, digits, hyphens and
// underscores (RFC 1123, 2.1; underscores because service names have them). It
// refuses whatever two parsers could read in two ways: other characters, a NUL
// among them; names outside ASCII, which must come as xn--; and everything that
// inet_aton takes for an address, whose spellings are many ("127.1", "0x7f.1",
// "2852039166"). Normalize of what it returned is the same again.
func Normalize(name string) (string, error) {
	refused := func(format string, args ...any) (string, error) {
		return "", &NameError{Name: name, Reason: fmt.Sprintf(format, args...)}
	}
	s := strings.TrimSuffix(name, ".")
	switch {
	case s == "":
		return refused("it is empty")
	case len(s) > nameBytes:
		return refused("it has %d bytes, %d are the most", len(s), nameBytes)
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if !nameByte(s[i]) {
				return refused("it contains %s", describeByte(s[i]))
			}
			continue
		}
		if why := labelFault(s[start:i]); why != "" {
			return refused("%s", why)
		}
		start = i + 1
	}
	if endsInNumber(s) {
		return refused("its last label is a number, so that some programs read it as an address")
	}
	return strings.ToLower(s), nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func describeByte(c byte) string {
	switch {
	case c >= 0x80:
		return "a character outside ASCII; names of other scripts are written as xn--"
	case c < 0x20 || c == 0x7f:
		return fmt.Sprintf("the control character 0x%02x", c)
	}
	return fmt.Sprintf("%q", c)
}

// labelFault says what is wrong with a label of allowed characters, or "".
func labelFault(label string) string {
	switch {
	case label == "":
		return "a label is empty"
	case len(label) > labelBytes:
		return fmt.Sprintf("a label has %d bytes, %d are the most", len(label), labelBytes)
	case label[0] == '-' || label[len(label)-1] == '-':
		return "a label begins or ends with a hyphen"
	}
	return ""
}

// endsInNumber reports whether the last label is decimal or begins with 0x and
// has only hexadecimal digits after it. That holds for every spelling inet_aton
// knows, and for no name of the public tree (RFC 3696, 2; the URL standard draws
// the same line).
func endsInNumber(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	digits := "0123456789"
	if len(last) > 1 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X') {
		last, digits = last[2:], "0123456789abcdefABCDEF"
	}
	return strings.Trim(last, digits) == ""
}

// normalizeHost gives the normal form of a host as a client names it: a name as
// Normalize has it, or an address literal as parseLiteral has it.
func normalizeHost(host string) (string, error) {
	if a, err := parseLiteral(host); err == nil {
		return a.String(), nil
	}
	if strings.ContainsAny(host, "[]:%") {
		return "", &NameError{Name: host, Reason: "it is neither a name nor an address"}
	}
	return Normalize(host)
}

// parseLiteral reads an address in its usual spelling: four decimal numbers, or
// IPv6 with or without brackets. IPv4 inside IPv6 (::ffff:1.2.3.4) becomes IPv4.
// A zone is refused, for it names an interface of this host.
func parseLiteral(s string) (netip.Addr, error) {
	inner := s
	if bare, ok := strings.CutPrefix(s, "["); ok {
		if bare, ok = strings.CutSuffix(bare, "]"); !ok || !strings.Contains(bare, ":") {
			return netip.Addr{}, &NameError{Name: s, Reason: "brackets enclose an IPv6 address"}
		}
		inner = bare
	}
	a, err := netip.ParseAddr(inner)
	if err != nil {
		return netip.Addr{}, &NameError{Name: s, Reason: "it is not an address"}
	}
	if a.Zone() != "" {
		return netip.Addr{}, &NameError{Name: s, Reason: "an address with a zone names an interface of the host"}
	}
	return a.Unmap(), nil
}
