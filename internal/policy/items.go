package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// parseItem reads one element of a list, from a file or from a flag.
func parseItem(k key, text string) (e Entry, hint string, err error) {
	e = Entry{Key: k.name, Value: text}
	switch k.kind {
	case paths:
		err = pathText(text)
	case patterns:
		err = patternText(text)
	case names:
		return e, "give the value in full: --env " + printable(text) + "=VALUE, or environment.set", passable(text)
	case losses:
		if !slices.Contains(Guarantees, Guarantee(text)) {
			known := make([]string, len(Guarantees))
			for i, g := range Guarantees {
				known[i] = string(g)
			}
			hint = "known: " + strings.Join(known, ", ")
			err = fmt.Errorf("unknown guarantee %q", printable(text))
			if near := nearest(text, known); near != "" {
				err = fmt.Errorf("unknown guarantee %q, did you mean %q?", printable(text), near)
			}
		}
	case hosts:
		e.Value, e.Ports, err = destination(text)
	case ports:
		e.Ports, err = published(text)
	}
	return e, hint, err
}

// pathText checks what can be said of a path before it is opened. A component
// .. is refused because what it leads to depends on the links before it.
func pathText(text string) error {
	text, _ = strings.CutSuffix(text, "?")
	switch {
	case text == "":
		return errors.New("an empty path")
	case strings.ContainsAny(text, "\x00\n\r"):
		return fmt.Errorf("the path %q contains a NUL or a line break", printable(text))
	case len(text) > 4095:
		return fmt.Errorf("a path of %d bytes; the kernel takes 4095", len(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("the path %q goes up with ..; write the absolute path that is meant", printable(text))
	case strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/"):
		return fmt.Errorf("the path %q names the home of another user; write it in full", printable(text))
	}
	return nil
}

func patternText(text string) error {
	switch {
	case text == "" || strings.ContainsAny(text, "\x00\n\r"):
		return errors.New("an empty pattern, or one with a line break")
	case strings.Trim(text, "/*.") == "" || strings.HasPrefix(text, "~"):
		return fmt.Errorf("the pattern %q; patterns are names, or paths that count from the workspace", printable(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("the pattern %q has a component .. in it", printable(text))
	}
	if _, err := path.Match(text, ""); err != nil {
		return fmt.Errorf("the pattern %q: %w", printable(text), err)
	}
	return nil
}

// destination reads HOST or HOST:PORT; an IPv6 address that has a port stands
// in brackets.
func destination(text string) (string, []int, error) {
	host, port, hasPort := text, "", false
	if inner, ok := strings.CutPrefix(text, "["); ok {
		address, rest, closed := strings.Cut(inner, "]")
		if !closed || rest != "" && rest[0] != ':' {
			return "", nil, fmt.Errorf("%q is not [ADDRESS]:PORT", printable(text))
		}
		host, port, hasPort = address, strings.TrimPrefix(rest, ":"), rest != ""
	} else if strings.Count(text, ":") == 1 {
		host, port, hasPort = strings.Cut(text, ":")
	}
	name, err := hostName(host)
	if err != nil || !hasPort {
		return name, nil, err
	}
	n, err := portNumber(port)
	return name, []int{n}, err
}

// hostName checks a DNS name (with *. in front for all below it) or an
// address, and returns it in lower case.
func hostName(text string) (string, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return a.String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	rest := strings.TrimPrefix(name, "*.")
	if len(name) > 253 || rest == "" {
		return "", fmt.Errorf("%q is not a host name", printable(text))
	}
	for label := range strings.SplitSeq(rest, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return "", fmt.Errorf("%q is not a host name; names are ASCII letters, digits and -", printable(text))
		}
	}
	return name, nil
}

// published reads PORT or HOSTPORT:PORT.
func published(text string) ([]int, error) {
	host, inside, two := strings.Cut(text, ":")
	if !two {
		inside = host
	}
	h, err := portNumber(host)
	if err != nil {
		return nil, err
	}
	i, err := portNumber(inside)
	if err != nil {
		return nil, err
	}
	return []int{h, i}, nil
}

func portNumber(text string) (int, error) {
	n, err := wholeNumber(text)
	if err != nil || n > 65535 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", printable(text))
	}
	return int(n), nil
}

// joinPorts is how ports are shown after a host.
func joinPorts(ports []int) string {
	var b strings.Builder
	for _, p := range ports {
		b.WriteString(":" + strconv.Itoa(p))
	}
	return b.String()
}
