package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Limits of a name as it is written, without the final dot (RFC 1035, 2.3.4), and of
// a URL.
const (
	MaxName  = 253
	maxLabel = 63
	maxURL   = 2048 // bytes
)

// hostName brings a DNS name (with *. in front for all below it) or an address
// into the form that everything else compares: a name as NormalName has it, an
// address as netip writes it.
func hostName(text string) (string, error) {
	if strings.ContainsAny(text, ":%") {
		return addressName(text)
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String(), nil
	}
	rest, wild := strings.CutPrefix(text, "*.")
	if strings.Contains(rest, "*") {
		return "", fmt.Errorf("%q is not a host name: * is allowed only at the beginning, as in *.example.org", printable(text))
	}
	name, why := NormalName(rest)
	if why != "" {
		return "", fmt.Errorf("%q is not a host name: %s", printable(text), why)
	}
	if !wild {
		return name, nil
	}
	if !strings.Contains(name, ".") {
		return "", fmt.Errorf("%q covers everything below %s; a wildcard needs two labels after it, such as *.example.org", printable(text), name)
	}
	return "*." + name, nil
}

// NormalName gives the one form of a host name that is both compared and dialled:
// lower case, without the final dot, labels of letters, digits, hyphens and
// underscores (RFC 1123, 2.1; underscores because service names have them). It
// refuses, by its second result, whatever two parsers could read in two ways: other
// characters, a NUL among them; names outside ASCII, which must come as xn--; and
// everything that inet_aton takes for an address, whose spellings are many ("127.1",
// "0x7f.1", "2852039166"). NormalName of what it returned is the same again.
func NormalName(name string) (normal, fault string) {
	s := strings.TrimSuffix(name, ".")
	switch {
	case s == "":
		return "", "it is empty"
	case len(s) > MaxName:
		return "", fmt.Sprintf("it has %d bytes; at most %d are allowed", len(s), MaxName)
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if !nameByte(s[i]) {
				return "", "it contains " + DescribeByte(s[i])
			}
			continue
		}
		if fault := labelFault(s[start:i]); fault != "" {
			return "", fault
		}
		start = i + 1
	}
	if endsInNumber(s) {
		return "", "its last label is a number, and programs read such an address differently; write an address as in 192.0.2.1"
	}
	return strings.ToLower(s), ""
}

func nameByte(c byte) bool { return strings.IndexByte(alphanumeric+"-_", c) >= 0 }

// DescribeByte names a byte that has no place in a name or a path.
func DescribeByte(c byte) string {
	switch {
	case c >= 0x80:
		return "a character outside ASCII; write an internationalized name in its xn-- form"
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
	case len(label) > maxLabel:
		return fmt.Sprintf("a label has %d bytes; at most %d are allowed", len(label), maxLabel)
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

// addressName reads an IPv6 address. One that holds an IPv4 address (RFC 4291
// section 2.5.5.2) is that address.
func addressName(text string) (string, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is not a host name or an address", printable(text))
	case a.Zone() != "":
		return "", fmt.Errorf("%q has a zone, which names an interface of this machine; write the address without it", printable(text))
	}
	return a.Unmap().String(), nil
}

// loopbackName reports whether host, in normal form, is the loopback inside.
func loopbackName(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback() || a.IsUnspecified()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") // RFC 6761 section 6.3
}

// covers reports whether a rule for pattern is a rule for name, both in normal
// form.
func covers(pattern, name string) bool {
	if suffix, wild := strings.CutPrefix(pattern, "*"); wild {
		return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
	}
	return pattern == name
}

// splitPort takes the port from behind a host.
func splitPort(text string) (host, port string, hasPort bool, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		address, rest, closed := strings.Cut(inner, "]")
		if !closed || rest != "" && rest[0] != ':' || !strings.Contains(address, ":") {
			return "", "", false, fmt.Errorf("%q is not [ADDRESS]:PORT", printable(text))
		}
		return address, strings.TrimPrefix(rest, ":"), rest != "", nil
	}
	if strings.Count(text, ":") == 1 {
		host, port, _ = strings.Cut(text, ":")
		return host, port, true, nil
	}
	return text, "", false, nil
}

func portNumber(text string) (int, error) {
	n, err := wholeNumber(text)
	if err != nil || n > 65535 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", printable(text))
	}
	return int(n), nil
}

func portShape() map[string]any {
	return map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}
}

// endpoint checks a URL that something is sent to: https, or http to loopback,
// or with insecure to any host. No message repeats the URL, which can hold what
// should stay secret.
func endpoint(text string, insecure bool) error {
	u, err := hostURL(text)
	if err != nil {
		return err
	}
	switch {
	case u.Scheme == "https" && insecure:
		return errors.New("insecure applies to http:// only")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("its address is not an https URL")
	case insecure || localHost(u.Hostname()):
		return nil
	}
	return errors.New("its address uses http to a host that is not loopback: anyone on the network path could read and change what is sent")
}

// hostURL reads a URL that has a host, and neither a user nor a fragment.
func hostURL(text string) (*url.URL, error) {
	if len(text) > maxURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("its address is longer than %d bytes, or has characters other than printable ASCII", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, errors.New("its address is not a URL such as https://hooks.example.org/holdfast")
	case u.User != nil:
		return nil, errors.New("its address contains a user or a password; put them in a file of headers")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return nil, errors.New("its address has a fragment (#), which is never sent")
	}
	name, err := hostName(u.Hostname())
	if err != nil || strings.HasPrefix(name, "*") {
		return nil, errors.New("its address has no valid host")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if _, err := portNumber(port); err != nil {
			return nil, errors.New("the port of its address is not from 1 to 65535")
		}
	}
	return u, nil
}

// localHost reports whether host is this machine's loopback by its address or
// its reserved name.
func localHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || host == "localhost"
}

// shownURL is address without what follows the host, where it is a URL of http
// or https.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return address
	}
	shown := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		shown += "/…"
	}
	return shown
}
