//go:build linux

package inside

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// proxyDoor is where a proxy is looked for.
const proxyDoor = "127.0.0.1:3128"

// netPatience is how long to wait for an answer. A refusal comes at once;
// anything slower is not one.
const netPatience = 10 * time.Second

// Every server outside that must not be reached sends a token, and every one that
// may be reached a greeting.
const (
	forbiddenMark = "tok-"
	allowedMark   = "hello from"
)

// refusedErr is a refusal in words, such as an HTTP status.
type refusedErr struct{ text string }

func (e refusedErr) Error() string { return e.text }
func (e refusedErr) Unwrap() error { return unix.ECONNREFUSED }

// denial gives an error without an errno that of a refused connection. Timeouts
// become ETIMEDOUT; other errors are returned unchanged.
func denial(err error) error {
	var timeout net.Error
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%v: %w", err, unix.ETIMEDOUT)
	case errors.As(err, &errno):
		return err
	}
	return refusedErr{err.Error()}
}

// judgeReply reports whether a server that must not be reached has answered.
func judgeReply(reply []byte, err error) ([]byte, error) {
	switch {
	case bytes.Contains(reply, []byte(forbiddenMark)):
		return reply, nil
	case bytes.Contains(reply, []byte(allowedMark)):
		return nil, refusedErr{"a server that may be reached answered"}
	case len(reply) > 0:
		line, _, _ := bytes.Cut(reply, []byte("\n"))
		return nil, refusedErr{fmt.Sprintf("%q", line[:min(len(line), 200)])}
	case err == nil:
		return nil, refusedErr{"closed"}
	}
	return nil, denial(err)
}

// judgeControl is the reverse: an allowed server must have answered.
func judgeControl(reply []byte, err error) error {
	if bytes.Contains(reply, []byte(allowedMark)) {
		return nil
	}
	if err == nil {
		err = refusedErr{fmt.Sprintf("%.500q", reply)}
	}
	return err
}

// throughTo is through for an address host:port, which it also returns split.
func throughTo(door, address string) (c net.Conn, host, port string, err error) {
	if host, port, err = net.SplitHostPort(address); err != nil {
		return nil, "", "", err
	}
	c, err = through(door, host, port)
	return c, host, port, err
}

// through opens a connection to host:port through a door: direct, connect, socks,
// or one of the last two with @address for a proxy other than the usual one.
func through(door, host, port string) (net.Conn, error) {
	door, proxy, other := strings.Cut(door, "@")
	if !other {
		proxy = proxyDoor
	}
	if door == "direct" {
		return dialDirect("tcp", host, port)
	}
	c, err := net.DialTimeout("tcp", proxy, netPatience)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(netPatience)); err != nil {
		return nil, err
	}
	switch door {
	case "connect":
		err = connectThrough(c, host+":"+port)
	case "socks":
		err = socksThrough(c, host, port)
	default:
		err = fmt.Errorf("no door is called %q", door)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func dialDirect(network, host, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), netPatience)
	defer cancel()
	d := net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
	c, err := d.DialContext(ctx, network, net.JoinHostPort(strings.Trim(host, "[]"), port))
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(netPatience))
}

func connectThrough(c net.Conn, target string) error {
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	// Byte by byte: what follows the header belongs to the tunnel.
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) && len(head) < 64<<10 {
		if _, err := io.ReadFull(c, one); err != nil {
			return err
		}
		head = append(head, one...)
	}
	line, _, _ := strings.Cut(string(head), "\r\n")
	if f := strings.Fields(line); len(f) < 2 || f[1] != "200" {
		return refusedErr{line}
	}
	return nil
}

// socksAddress encodes a destination as SOCKS5 does (RFC 1928, 5). A name may
// contain any bytes.
func socksAddress(host, port string) []byte {
	var n uint16
	_, _ = fmt.Sscan(port, &n)
	b := append([]byte{3, byte(len(host))}, host...)
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		kind := byte(4)
		if a.Is4() {
			kind = 1
		}
		b = append([]byte{kind}, a.AsSlice()...)
	}
	return binary.BigEndian.AppendUint16(b, n)
}

func socksThrough(c net.Conn, host, port string) error {
	if _, err := c.Write([]byte{5, 1, 0}); err != nil {
		return err
	}
	b := make([]byte, 300)
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		return err
	}
	if b[0] != 5 || b[1] != 0 {
		return refusedErr{fmt.Sprintf("SOCKS method %x", b[:2])}
	}
	if _, err := c.Write(append([]byte{5, 1, 0}, socksAddress(host, port)...)); err != nil {
		return err
	}
	return socksReply(c)
}

func socksReply(c net.Conn) error {
	b := make([]byte, 300)
	if _, err := io.ReadFull(c, b[:4]); err != nil {
		return err
	}
	if b[1] != 0 {
		return refusedErr{fmt.Sprintf("SOCKS reply %d", b[1])}
	}
	rest := 4
	switch b[3] {
	case 3:
		if _, err := io.ReadFull(c, b[:1]); err != nil {
			return err
		}
		rest = int(b[0])
	case 4:
		rest = 16
	}
	_, err := io.ReadFull(c, b[:rest+2])
	return err
}

// fetch gets a URL through a door. The door forward is a proxy request in
// absolute form.
func fetch(door, raw string) ([]byte, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	authority, path, _ := strings.Cut(rest, "/")
	path = "/" + path
	if door == "forward" {
		return forward(raw, authority)
	}
	host, port := splitAuthority(authority, scheme)
	c, err := through(door, host, port)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if scheme == "https" {
		t := tls.Client(c, &tls.Config{ServerName: host, InsecureSkipVerify: true}) // the server is a probe's own
		if err := t.Handshake(); err != nil {
			return nil, err
		}
		c = t
	}
	if scheme != "tcp" {
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, authority); err != nil {
			return nil, err
		}
	}
	return listen(c)
}

func forward(raw, authority string) ([]byte, error) {
	c, err := net.DialTimeout("tcp", proxyDoor, netPatience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", raw, authority)
	return listen(c)
}

// splitAuthority removes the port, whatever else is there.
func splitAuthority(authority, scheme string) (host, port string) {
	port = map[string]string{"http": "80", "https": "443"}[scheme]
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") && strings.Count(authority[:i], ":") != 1 {
		host, port = authority[:i], authority[i+1:]
		return host, port
	}
	return authority, port
}

// listen reads until the other side closes, has sent what is expected, or has
// been quiet for a moment.
func listen(c net.Conn) ([]byte, error) {
	end := time.Now().Add(netPatience)
	var all []byte
	b := make([]byte, 16<<10)
	for {
		until := end
		if len(all) > 0 {
			until = time.Now().Add(150 * time.Millisecond)
		}
		if err := c.SetReadDeadline(until); err != nil {
			return all, err
		}
		n, err := c.Read(b)
		all = append(all, b[:n]...)
		switch {
		case bytes.Contains(all, []byte(forbiddenMark)):
			return all, nil
		case err == nil && time.Now().Before(end) && len(all) < 1<<20:
		case err == nil, errors.Is(err, io.EOF), len(all) > 0:
			return all, nil
		default:
			return all, err
		}
	}
}

// doorLines parses lines "DOOR URL"; a URL with characters that a line cannot
// contain is quoted.
func doorLines(text string) [][2]string {
	var out [][2]string
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		door, raw, ok := strings.Cut(sc.Text(), " ")
		if !ok {
			continue
		}
		if plain, err := unquote(raw); err == nil {
			raw = plain
		}
		out = append(out, [2]string{door, raw})
	}
	return out
}

// netGet tries each line of try, and as a control each line of ok; by default
// that is the allowed server through the same doors.
func netGet(p *Probe) {
	tries := doorLines(p.Arg("try"))
	netControls(p, tries)
	netAttempts(p, gets(tries))
}
