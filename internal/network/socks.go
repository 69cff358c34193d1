package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// Numbers of SOCKS5 (RFC 1928).
const (
	socksConnect, socksBind, socksAssociate      = 1, 2, 3
	socksIPv4, socksName, socksIPv6              = 1, 3, 4
	socksDone, socksFailed, socksNotAllowed      = 0, 1, 2
	socksUnreachable, socksNoCommand             = 4, 7
	socksNoAddress                          byte = 8
	socksNoMethod                                = 0xff
)

// socksError is why a SOCKS5 request is refused. Without a reason it is not
// recorded: the client went away.
type socksError struct {
	reply  byte
	name   string // as it was asked for, where it was
	reason string
	high   bool

	noMethod bool // the reply is that of the greeting
}

func (e *socksError) words() []byte {
	if e.noMethod {
		return []byte{socks5, socksNoMethod}
	}
	return socksReply(e.reply)
}

func (e *socksError) Error() string { return e.reason }

// serveSocks serves SOCKS5: CONNECT without authentication, because the network of this
// door has no other user.
func (e *Engine) serveSocks(ctx context.Context, c net.Conn) {
	d := Destination{Name: "proxy", Door: Socks}
	host, port, err := readSocks(c)
	if err != nil {
		var bad *socksError
		if !errors.As(err, &bad) {
			abort(c)
			return
		}
		if bad.name != "" {
			d.Name, d.Port = bad.name, port
		}
		opts := []refusalOption{unflagged}
		if bad.high {
			opts = append(opts, highSeverity)
		}
		e.refuse(d, bad.reason, opts...)
		writeAndClose(c, bad.words())
		return
	}
	c.SetReadDeadline(time.Time{})
	d.Name, d.Port = host, port
	reply := responder{
		allow: func() error { _, err := c.Write(socksReply(socksDone)); return err },
		deny:  func(Refusal) { writeAndClose(c, socksReply(socksNotAllowed)) },
		fail:  func(error) { writeAndClose(c, socksReply(socksUnreachable)) },
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if reason := e.resolve(&d, a); reason != "" {
			reply.deny(e.refuse(d, reason))
			return
		}
	}
	e.dispatch(ctx, c, d, reply)
}

// readSocks reads greeting and request and returns the destination in normal
// form. A *socksError wants a reply; any other error means that the client is gone.
func readSocks(c io.ReadWriter) (host string, port int, err error) {
	var b [2 + 255]byte
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		return "", 0, err
	}
	methods := b[2 : 2+int(b[1])]
	if _, err := io.ReadFull(c, methods); err != nil {
		return "", 0, err
	}
	if bytes.IndexByte(methods, 0) < 0 {
		return "", 0, &socksError{noMethod: true, reason: "the client requires authentication, which the proxy does not offer"}
	}
	if _, err := c.Write([]byte{socks5, 0}); err != nil {
		return "", 0, err
	}
	if _, err := io.ReadFull(c, b[:4]); err != nil {
		return "", 0, err
	}
	if b[0] != socks5 || b[2] != 0 {
		return "", 0, &socksError{reply: socksFailed, reason: "the SOCKS5 request is malformed"}
	}
	command := b[1]
	raw, port, err := readSocksAddress(c, b[3])
	if err != nil {
		return "", 0, err
	}
	if command != socksConnect {
		return "", port, &socksError{reply: socksNoCommand, name: raw, reason: fmt.Sprintf("%s of SOCKS5 is not supported; use CONNECT", socksCommand(command))}
	}
	host, err = normalizeHost(raw)
	if err != nil {
		return "", port, &socksError{reply: socksFailed, name: raw, reason: err.Error(), high: true}
	}
	if port == 0 {
		return "", 0, &socksError{reply: socksFailed, name: raw, reason: "port 0 is not a valid port"}
	}
	return host, port, nil
}

func readSocksAddress(c io.Reader, kind byte) (host string, port int, err error) {
	var b [256 + 2]byte
	size := 0
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		if _, err := io.ReadFull(c, b[:1]); err != nil {
			return "", 0, err
		}
		size = int(b[0])
	default:
		return "", 0, &socksError{reply: socksNoAddress, reason: "the SOCKS5 request has an address of a kind that does not exist"}
	}
	if _, err := io.ReadFull(c, b[:size+2]); err != nil {
		return "", 0, err
	}
	port = int(binary.BigEndian.Uint16(b[size:]))
	if kind == socksName {
		return string(b[:size]), port, nil
	}
	a, _ := netip.AddrFromSlice(b[:size])
	return a.String(), port, nil
}

func socksCommand(b byte) string {
	switch b {
	case socksBind:
		return "BIND"
	case socksAssociate:
		return "UDP ASSOCIATE"
	}
	return fmt.Sprintf("command %d", b)
}

// socksReply is a reply with an address of zeros: where the connection comes out
// is nothing that the inside needs to know.
func socksReply(code byte) []byte { return []byte{socks5, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0} }
