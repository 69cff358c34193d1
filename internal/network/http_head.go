package network

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/policy"
)

// head is what decides how a request is framed and where it goes.
type head struct {
	method string
	target string // as in the request line
	host   string // value of Host
	hosts  int    // how many there are: 0 with HTTP/1.0 only
	body   framing
}

// checkFirstByte refuses what cannot become a request at its first byte, so that
// another protocol is not waited for.
func checkFirstByte(b []byte) *denial {
	if len(b) > 0 && !tokenByte(b[0]) {
		if b[0] == recordHandshake {
			return deny(http.StatusBadRequest, "it is TLS where the policy says HTTP in the clear", unflagged)
		}
		return smuggling("it does not begin with a method")
	}
	return nil
}

// headEnd looks for the empty line that ends a head; size 0 means that there is more
// to come. The bytes before from were looked at already, as those before seen are now.
// Lines end in CRLF: where some take a bare LF for an end and others do not, a head has
// two ends.
func headEnd(b []byte, from int) (size, seen int, bad *denial) {
	for i := from; i < len(b); i++ {
		switch {
		case b[i] != '\n':
		case i == 0 || b[i-1] != '\r':
			return 0, i, smuggling("a line of the head ends in a bare line feed")
		case bytes.HasSuffix(b[:i+1], []byte("\r\n\r\n")):
			return i + 1, i, nil
		}
	}
	return 0, len(b), nil
}

// parseHead reads a head, which ends in an empty line, as RFC 9112 has it,
// without the repairs that section 2.2 and others allow a server. Only the
// explicit proxy takes a target in absolute form.
func parseHead(b []byte, absolute bool) (head, *denial) {
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\r\n\r\n")), []byte("\r\n"))
	h, old, bad := parseRequestLine(string(lines[0]), absolute)
	if bad != nil {
		return h, bad
	}
	var f fields
	for _, line := range lines[1:] {
		if bad := f.add(line); bad != nil {
			return h, bad
		}
	}
	h.host, h.hosts = f.host, f.hosts
	switch {
	case f.hosts > 1:
		return h, smuggling("there are two Host headers")
	case f.hosts == 0 && !old:
		return h, smuggling("there is no Host header")
	case f.lengths > 1:
		return h, smuggling("there are two Content-Length headers")
	case f.codings > 1:
		return h, smuggling("there are two Transfer-Encoding headers")
	case f.codings == 1 && f.lengths == 1:
		return h, smuggling("there are Content-Length and Transfer-Encoding")
	case f.codings == 1 && old:
		return h, smuggling("there is a Transfer-Encoding in HTTP/1.0")
	case f.codings == 1 && !strings.EqualFold(f.coding, "chunked"):
		return h, smuggling("the Transfer-Encoding is not chunked")
	case f.codings == 1:
		h.body = framing{kind: chunked}
	case f.lengths == 1:
		n, ok := parseLength(f.length)
		if !ok {
			return h, smuggling("the Content-Length is not a number")
		}
		h.body = framing{kind: sized, left: n}
	}
	return h, nil
}

func parseRequestLine(line string, absolute bool) (h head, old bool, bad *denial) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return h, false, smuggling("the request line does not have three parts")
	}
	method, target, version := parts[0], parts[1], parts[2]
	if !isToken(method) {
		return h, false, smuggling("the method is not a token")
	}
	switch version {
	case "HTTP/1.1":
	case "HTTP/1.0":
		old = true
	case "HTTP/2.0":
		return h, false, smuggling("it is HTTP/2 in the clear, which is not passed on")
	default:
		return h, false, smuggling("the version of HTTP is not 1.0 or 1.1")
	}
	h.method, h.target = method, target
	switch {
	case method == http.MethodConnect:
		return h, false, smuggling("there is a CONNECT inside the connection")
	case strings.HasPrefix(target, "/"):
	case absolute && len(target) > 7 && strings.EqualFold(target[:7], "http://"):
	default:
		return h, false, smuggling("the target of the request does not begin with /")
	}
	if i := strings.IndexFunc(target, notInTarget); i >= 0 {
		return h, false, smuggling("the target of the request contains %s", policy.DescribeByte(target[i]))
	}
	if _, err := url.ParseRequestURI(target); err != nil {
		return h, false, deny(http.StatusBadRequest, "the target of the request is malformed", unflagged)
	}
	return h, old, nil
}

// requestOf parses the first line of a head as far as possible, to describe a refused
// request.
func requestOf(b []byte) head {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	method, rest, found := strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
	if !found || !isToken(method) {
		return head{}
	}
	target := strings.TrimLeft(rest, " ")
	if i := strings.LastIndex(target, " "); i >= 0 && strings.HasPrefix(strings.ToUpper(target[i+1:]), "HTTP/") {
		target = target[:i]
	}
	return head{method: method, target: target}
}

// path is the path that h asks for, without its query, host and scheme.
func (h head) path() string {
	target := h.target
	if n := len("http://"); len(target) > n && strings.EqualFold(target[:n], "http://") {
		_, target = cutAuthority(target)
	}
	path, _, _ := strings.Cut(target, "?")
	return path
}

// fields counts the header fields that frame and route.
type fields struct {
	host, length, coding    string
	hosts, lengths, codings int
}

func (f *fields) add(line []byte) *denial {
	name, value, bad := parseField(line)
	if bad != nil {
		return bad
	}
	switch canonicalField(name) {
	case "host":
		f.host = value
		f.hosts++
	case "content-length":
		f.length = value
		f.lengths++
	case "transfer-encoding":
		f.coding = value
		f.codings++
	default:
		return nil
	}
	if strings.Contains(name, "_") {
		return smuggling("there is a second spelling of %s", canonicalField(name))
	}
	return nil
}

// canonicalField is a name as servers compare it that make no difference between
// _ and -, as CGI (RFC 3875, 4.1.18) makes none.
func canonicalField(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// parseField reads a line of a head or of trailers.
func parseField(line []byte) (name, value string, bad *denial) {
	if bytes.HasPrefix(line, []byte(" ")) || bytes.HasPrefix(line, []byte("\t")) {
		return "", "", smuggling("a header is folded over two lines")
	}
	before, after, found := bytes.Cut(line, []byte(":"))
	if !found || !isToken(string(before)) {
		return "", "", smuggling("the name of a header is not a token")
	}
	for _, c := range after {
		if c < ' ' && c != '\t' || c == 0x7f {
			return "", "", smuggling("a header contains %s", policy.DescribeByte(c))
		}
	}
	return string(before), string(bytes.Trim(after, " \t")), nil
}

// parseLength takes digits alone, in one spelling for each number.
func parseLength(s string) (int64, bool) {
	if s == "" || len(s) > 18 || len(s) > 1 && s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// tokenByte is tchar of RFC 9110, 5.6.2.
func tokenByte(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}

func isToken(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}
