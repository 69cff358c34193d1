package policy

import (
	"fmt"
	"strings"
)

// methodName reads the method of a request and returns it in upper case. It is
// narrower than RFC 9110 section 5.6.2, whose tokens may be a mere "*".
func methodName(text string) (string, error) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	m := strings.ToUpper(text)
	switch {
	case m == "" || len(m) > 32 || strings.Trim(m, letters+"0123456789-_") != "" || !strings.Contains(letters, m[:1]):
		return "", fmt.Errorf("%q is not a method such as GET; leave methods out for all", printable(text))
	case m == "CONNECT":
		return "", fmt.Errorf("CONNECT asks for a tunnel through the host, which no rule can inspect")
	}
	return m, nil
}

// requestPath checks a pattern of paths. It refuses what two servers could read as
// different paths, so that a pattern says what it covers.
func requestPath(text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		return "", fmt.Errorf("the path %q does not begin with /", printable(text))
	}
	if len(text) > 2048 {
		return "", fmt.Errorf("a path of %d bytes; at most 2048 are allowed", len(text))
	}
	for _, r := range text {
		if r <= ' ' || r > '~' || strings.ContainsRune(`%;?#\`, r) {
			return "", fmt.Errorf("the path %q contains %q; a * stands for any part of a segment", printable(text), string(r))
		}
	}
	body := text
	if below, ok := strings.CutSuffix(text, "/**"); ok {
		body = below
	}
	if strings.Contains(body, "**") {
		return "", fmt.Errorf("the path %q has ** other than as /** at its end", printable(text))
	}
	for i, segment := range strings.Split(body, "/") {
		switch {
		case segment == "." || segment == "..":
			return "", fmt.Errorf("the path %q has a segment %s", printable(text), segment)
		case segment == "" && i > 0 && i < strings.Count(body, "/"), body != text && strings.HasSuffix(body, "/"):
			return "", fmt.Errorf("the path %q has an empty segment", printable(text))
		}
	}
	return text, nil
}

func pathShape() map[string]any {
	return map[string]any{"type": "string", "pattern": "^/[^%;?#\\\\ ]*$"}
}
