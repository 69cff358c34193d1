package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// The first bytes at the proxy door say which protocol is spoken.
const (
	socks4 = 0x04
	socks5 = 0x05
)

func malformed(reason string) *denial { return deny(http.StatusBadRequest, reason, unflagged) }

// contradiction is a head that two programs would read as two different things.
func contradiction(format string, args ...any) *denial {
	return deny(http.StatusBadRequest, fmt.Sprintf(format, args...), highSeverity)
}

// atProxy is a denial in the words of the proxy door, where nothing is smuggled past
// what was decided: nothing was yet.
func atProxy(bad *denial) *denial {
	return deny(bad.status, strings.TrimPrefix(bad.reason, smugglingPrefix), bad.opts...)
}

// serveProxy serves a program that knows of proxies: HTTP CONNECT, HTTP with
// absolute targets and SOCKS5. It decides as an intercepted connection is decided
// about.
func (e *Engine) serveProxy(ctx context.Context, c net.Conn) {
	d := Destination{Name: "proxy"}
	c.SetReadDeadline(time.Now().Add(e.limits.HeadTime))
	first := make([]byte, 1024)
	n, err := c.Read(first)
	if err != nil || n == 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			e.refuse(d, "the proxy received no request in time", unflagged)
		}
		abort(c)
		return
	}
	first = first[:n]
	switch b := first[0]; {
	case b == socks5:
		e.serveSocks(ctx, replay(c, first))
	case 'A' <= b && b <= 'Z':
		e.serveHTTPProxy(ctx, c, first)
	case b == socks4:
		e.refuse(d, "SOCKS4 is not supported; use SOCKS5", unflagged)
		abort(c)
	default:
		e.refuse(d, fmt.Sprintf("it begins with byte 0x%02x and is not a request to a proxy", b), unflagged)
		abort(c)
	}
}

// serveHTTPProxy serves a client whose first bytes look like HTTP/1.
func (e *Engine) serveHTTPProxy(ctx context.Context, c net.Conn, first []byte) {
	d := Destination{Name: "proxy", Door: Connect}
	head, rest, err := readProxyHead(c, first, e.limits.HeadBytes)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = deny(http.StatusRequestTimeout, "the head of the request took too long", unflagged)
	}
	var h proxyHead
	if err == nil {
		h, err = parseProxyHead(head)
	}
	if err == nil {
		d.Name, d.Port, d.Door = h.host, h.port, h.door
	} else if h.target != "" {
		d.Name = h.target
	}
	if err != nil {
		e.refuseHead(c, d, err)
		return
	}
	c.SetReadDeadline(time.Time{})
	request := fieldsIn(head)
	if kind := e.decoyIn(head); kind != "" {
		writeAndClose(c, plainAnswer(http.StatusForbidden, e.refuseDecoy(d, kind, "in a request to the proxy").Line(), request))
		return
	}
	reply := responder{
		deny: func(r Refusal) { writeAndClose(c, plainAnswer(http.StatusForbidden, r.Line(), request)) },
		fail: func(err error) {
			writeAndClose(c, plainAnswer(http.StatusBadGateway, "holdfast cannot reach "+d.String()+": "+printable(err.Error()), request))
		},
	}
	if a, err := netip.ParseAddr(d.Name); err == nil {
		if reason := e.resolve(&d, a); reason != "" {
			reply.deny(e.refuse(d, reason))
			return
		}
	}
	through := replay(c, rest)
	if d.Door == Forward {
		through = replay(c, append(head, rest...))
	} else {
		reply.allow = func() error {
			_, err := c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n"))
			return err
		}
	}
	e.dispatch(ctx, through, d, reply)
}

// refuseHead records a head that was not understood and answers it.
func (e *Engine) refuseHead(c net.Conn, d Destination, err error) {
	var bad *denial
	if !errors.As(err, &bad) {
		abort(c) // the client went away in the middle of its request
		return
	}
	writeAndClose(c, plainAnswer(bad.status, e.refuse(d, bad.reason, bad.opts...).Line(), noField))
}

// readProxyHead reads until the empty line that ends a head.
func readProxyHead(c net.Conn, got []byte, max int) (head, rest []byte, err error) {
	seen := 0
	for {
		size, at, bad := headEnd(got, seen)
		switch {
		case bad != nil:
			return nil, nil, atProxy(bad)
		case size > 0:
			return got[:size:size], got[size:], nil
		case len(got) >= max:
			return nil, nil, deny(http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the head of the request is longer than %d bytes", max), unflagged)
		}
		seen = at
		if len(got) == cap(got) {
			got = append(make([]byte, 0, min(2*cap(got)+512, max+512)), got...)
		}
		n, err := c.Read(got[len(got):cap(got)])
		got = got[:len(got)+n]
		if err != nil && n == 0 {
			return nil, nil, err
		}
	}
}

// proxyHead is what the proxy door takes from a head. The rest of a request that is
// forwarded is read again, by the code that forwards it.
type proxyHead struct {
	target string // as it was sent
	host   string // in normal form
	port   int
	door   Door
}

// parseProxyHead takes the destination from a head, which ends in an empty line.
// Where the head names it twice both must be the same.
func parseProxyHead(head []byte) (proxyHead, error) {
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	method, target, version, err := requestLine(lines[0])
	if err != nil {
		return proxyHead{}, err
	}
	h := proxyHead{target: target, door: Connect}
	if method == "CONNECT" {
		h.host, h.port, err = splitAuthority(target, 0)
	} else {
		h.door = Forward
		h.host, h.port, err = absoluteTarget(target)
	}
	if err != nil {
		return h, err
	}
	hosts := 0
	for _, line := range lines[1:] {
		name, value, bad := parseField([]byte(line))
		if bad != nil {
			return h, atProxy(bad)
		}
		switch {
		case strings.EqualFold(name, "Host"):
			if hosts++; hosts > 1 {
				return h, contradiction("the request has two Host headers")
			}
			if err := h.confirm(value); err != nil {
				return h, err
			}
		case h.door == Connect && strings.EqualFold(name, "Transfer-Encoding"),
			h.door == Connect && strings.EqualFold(name, "Content-Length") && value != "0":
			return h, contradiction("a CONNECT request has a body")
		}
	}
	if hosts == 0 && h.door == Forward && version != "HTTP/1.0" {
		return h, malformed("the request has no Host header")
	}
	return h, nil
}

func requestLine(line string) (method, target, version string, err error) {
	part := strings.Split(line, " ")
	if len(part) != 3 || part[1] == "" {
		return "", "", "", malformed("the request line is not a method, a target and a version")
	}
	method, target, version = part[0], part[1], part[2]
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		return "", "", "", malformed("the version is neither HTTP/1.1 nor HTTP/1.0")
	}
	if strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return "", "", "", malformed("the method is not in capital letters")
	}
	if i := strings.IndexFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f }); i >= 0 {
		return "", "", "", contradiction("the target contains a character that is not allowed in one")
	}
	return method, target, version, nil
}

// absoluteTarget takes host and port from http://host[:port]/….
func absoluteTarget(target string) (host string, port int, err error) {
	const scheme = "http://"
	if len(target) < len(scheme) || !strings.EqualFold(target[:len(scheme)], scheme) {
		if strings.HasPrefix(target, "/") || target == "*" {
			return "", 0, malformed("this is a proxy: it accepts CONNECT, and targets that begin with http://")
		}
		return "", 0, malformed("the method is not CONNECT and the target does not begin with http://")
	}
	authority := target[len(scheme):]
	if strings.Contains(authority, "#") {
		return "", 0, contradiction("the target has a fragment")
	}
	if i := strings.IndexAny(authority, "/?"); i >= 0 {
		authority = authority[:i]
	}
	return splitAuthority(authority, 80)
}

// splitAuthority splits host:port and normalises the host. standard is the port if none
// is given; 0 means that there must be one.
func splitAuthority(s string, standard int) (host string, port int, err error) {
	if strings.ContainsAny(s, "@/\\?# ") {
		return "", 0, contradiction("the host holds a character by which programs come to different hosts")
	}
	host, port = s, standard
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		digits := s[i+1:]
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 || digits[0] == '+' {
			return "", 0, malformed("the port is not a number from 1 to 65535")
		}
		host, port = s[:i], int(n)
	}
	if port == 0 {
		return "", 0, malformed("the target has no port")
	}
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "", 0, malformed("an IPv6 address must be in brackets")
	}
	normal, err := normalizeHost(host)
	if err != nil {
		return "", 0, contradiction("%v", err)
	}
	return normal, port, nil
}

// confirm compares the Host header to the destination. Without a port it means
// the one of the target.
func (h proxyHead) confirm(value string) error {
	host, port, err := splitAuthority(value, h.port)
	if err != nil {
		return contradiction("the Host header cannot be compared to the target: %v", err)
	}
	if host != h.host || port != h.port {
		return contradiction("the target names one host, the Host header another: %s", printable(value))
	}
	return nil
}
