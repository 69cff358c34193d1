//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// proxyAddr is the address at which most programs look for a proxy.
const proxyAddr = "127.0.0.1:3128"

// naive is a proxy without a policy, which interprets a request as the most
// credulous proxy would. It is the proxy of the target none: if a probe of a
// proxy does not get through it, the probe proves nothing.
func naive() (stop func() error, err error) {
	l, err := net.Listen("tcp", proxyAddr)
	if errors.Is(err, unix.EADDRINUSE) {
		return func() error { return nil }, nil // another run on this machine has one
	}
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patienceOfServers))
				serveNaively(c)
			}()
		}
	}()
	return l.Close, nil
}

func serveNaively(c net.Conn) {
	r := bufio.NewReaderSize(c, 64<<10)
	first, err := r.Peek(1)
	if err != nil {
		return
	}
	switch first[0] {
	case 4:
		believeSocks4(c, r)
	case 5:
		believeSocks5(c, r)
	default:
		believeHTTP(c, r)
	}
}

// believeHTTP connects to the last host that the request names.
func believeHTTP(c net.Conn, r *bufio.Reader) {
	v, headers, err := readHead(r, arrival{})
	if err != nil {
		return
	}
	if v.method == "CONNECT" {
		up, err := dialBlindly(v.target)
		if err != nil {
			fmt.Fprintf(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
			return
		}
		defer up.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		pass(c, r, up)
		return
	}
	if len(headers["host"]) == 0 && len(v.hosts) == 0 {
		return
	}
	host := v.hosts[0]
	if !strings.Contains(strings.TrimLeft(host, "["), ":") || strings.HasSuffix(host, "]") {
		host += ":80"
	}
	up, err := dialBlindly(host)
	if err != nil {
		fmt.Fprintf(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	defer up.Close()
	_, _ = io.WriteString(up, v.head)
	pass(c, r, up)
}

// dialBlindly takes the host after anything that looks like a user, and accepts
// every spelling of an address that inet_aton(3) does.
func dialBlindly(hostport string) (net.Conn, error) {
	if i := strings.LastIndexByte(hostport, '@'); i >= 0 {
		hostport = hostport[i+1:]
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	host, _, _ = strings.Cut(host, "\x00")
	host, _, _ = strings.Cut(strings.TrimSpace(host), "#")
	host = strings.NewReplacer("。", ".", "．", ".").Replace(host)
	if plain, err := url.PathUnescape(host); err == nil {
		host = plain
	}
	if a, ok := aton(strings.TrimSuffix(host, ".")); ok {
		host = a.String()
	}
	return net.DialTimeout("tcp", net.JoinHostPort(host, port), 5*time.Second)
}

// aton is inet_aton(3): up to four parts, each decimal, octal or hexadecimal; the
// last one fills the rest.
func aton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint32
	for i, p := range parts {
		var n uint64
		digits := strings.Map(func(r rune) rune {
			if r >= '０' && r <= '９' {
				return r - '０' + '0'
			}
			return r
		}, p)
		if _, err := fmt.Sscanf(digits, "%v", &n); err != nil || digits == "" || strings.Trim(digits, "0123456789abcdefxABCDEFX") != "" {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			sum |= uint32(n)
		} else {
			sum |= uint32(n) << (24 - 8*i)
		}
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], sum)
	return netip.AddrFrom4(b), true
}

func believeSocks4(c net.Conn, r *bufio.Reader) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return
	}
	if _, err := r.ReadString(0); err != nil {
		return
	}
	host := netip.AddrFrom4([4]byte(head[4:8])).String()
	if head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] != 0 { // 4a: a name follows
		name, err := r.ReadString(0)
		if err != nil {
			return
		}
		host = strings.TrimSuffix(name, "\x00")
	}
	up, err := dialBlindly(net.JoinHostPort(host, fmt.Sprint(binary.BigEndian.Uint16(head[2:]))))
	if err != nil {
		return
	}
	defer up.Close()
	_, _ = c.Write([]byte{0, 90, 0, 0, 0, 0, 0, 0})
	pass(c, r, up)
}

func believeSocks5(c net.Conn, r *bufio.Reader) {
	_ = c.SetReadDeadline(time.Now().Add(time.Second)) // an incomplete request stays incomplete
	up, err := socks5(c, r)
	if err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(patienceOfServers))
	defer up.Close()
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	pass(c, r, up)
}

func socks5(c net.Conn, r *bufio.Reader) (net.Conn, error) {
	b := make([]byte, 262)
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, b[:b[1]]); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, b[:5]); err != nil {
		return nil, err
	}
	kind, length := b[3], map[byte]int{1: 3, 3: int(b[4]), 4: 15}[b[3]]
	host := bytes.Clone(b[4:5])
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, err
	}
	host = append(host, rest[:length]...)
	name := string(host[1:])
	if kind != 3 {
		a, ok := netip.AddrFromSlice(host)
		if !ok {
			return nil, errors.New("no address")
		}
		name = a.String()
	}
	return dialBlindly(net.JoinHostPort(name, fmt.Sprint(binary.BigEndian.Uint16(rest[length:]))))
}

// pass copies bytes both ways until both directions end.
func pass(c net.Conn, r io.Reader, up net.Conn) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(up, r)
		if t, ok := up.(*net.TCPConn); ok {
			_ = t.CloseWrite()
		}
		close(done)
	}()
	_, _ = io.Copy(c, up)
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
	<-done
}
