package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

const (
	maxName  = 253  // bytes of a name in its text form, RFC 1035 section 2.3.4
	maxLabel = 63   // bytes of a label, the same
	maxURL   = 2048 // bytes
)

// hostName brings a DNS name (with *. in front for all below it) or an address
// into the form that everything else compares: lower case, without the final
// dot, an address as netip writes it. What some resolver or library would read
// as an address although it is not written as one (127.1, 0x7f000001, 1.2.3.4.)
// is refused, for the rule would be about something else than the name.
func hostName(text string) (string, error) {
	if strings.ContainsAny(text, ":%") {
		return addressName(text)
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	rest, wild := strings.CutPrefix(name, "*.")
	if len(name) > maxName || rest == "" {
		return "", fmt.Errorf("%q is not a host name", printable(text))
	}
	labels := strings.Split(rest, ".")
	for _, label := range labels {
		if err := labelText(label); err != nil {
			return "", fmt.Errorf("%q is not a host name: %w", printable(text), err)
		}
	}
	if isNumber(labels[len(labels)-1]) {
		return "", fmt.Errorf("%q looks like an address in a spelling that programs read differently; write it as in 192.0.2.1", printable(text))
	}
	if wild && len(labels) < 2 {
		return "", fmt.Errorf("%q stands for everything below %s; a wildcard needs two labels behind it, such as *.example.org", printable(text), rest)
	}
	return name, nil
}

// addressName reads an IPv6 address. One that holds an IPv4 address (RFC 4291
// section 2.5.5.2) is that address.
func addressName(text string) (string, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is not a host name or an address", printable(text))
	case a.Zone() != "":
		return "", fmt.Errorf("%q has a zone, which means an interface of this machine; write the address without it", printable(text))
	}
	return a.Unmap().String(), nil
}

// labelText checks one label in lower case. Names in other letters are written
// as DNS has them (xn--…, RFC 5890): which of them look alike is not for a
// policy to find out.
func labelText(label string) error {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	switch {
	case label == "":
		return fmt.Errorf("it has an empty label")
	case len(label) > maxLabel:
		return fmt.Errorf("a label of %d bytes; DNS takes %d", len(label), maxLabel)
	case label == "*" || strings.Contains(label, "*"):
		return fmt.Errorf("* stands only at the beginning, as in *.example.org")
	case strings.Trim(label, letters) != "":
		for _, r := range label {
			if r > 0x7e {
				return fmt.Errorf("%q is not ASCII; write the xn-- form", printable(label))
			}
		}
		return fmt.Errorf("names are ASCII letters, digits, - and _")
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("a label begins or ends with -")
	}
	return nil
}

// isNumber reports whether inet_aton(3) or the URL standard could take label
// for the last part of an IPv4 address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
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
		return errors.New("insecure stands with http:// only")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("its address is not a URL with https")
	case insecure || localHost(u.Hostname()):
		return nil
	}
	return errors.New("its address is http to a host that is not loopback: anybody on the way could read and change what is sent")
}

// hostURL reads a URL that has a host, and neither a user nor a fragment.
func hostURL(text string) (*url.URL, error) {
	if len(text) > maxURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("its address is longer than %d bytes, or has more than printable ASCII in it", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, errors.New("its address is not a URL such as https://hooks.example.org/holdfast")
	case u.User != nil:
		return nil, errors.New("its address has a user or a password in it; keep that in a file of headers")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return nil, errors.New("its address has a fragment (#), which is never sent")
	}
	name, err := hostName(u.Hostname())
	if err != nil || strings.HasPrefix(name, "*") {
		return nil, errors.New("its address has no host that can be named")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if _, err := portNumber(port); err != nil {
			return nil, errors.New("its address has a port that is not from 1 to 65535")
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
