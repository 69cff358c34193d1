package network

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// helloBytes is the most that is read to find a ClientHello. crypto/tls takes
// none that is larger; browsers send 2 KiB at most, with post-quantum keys.
const helloBytes = 64 << 10

// errNotTLS is what readHello returns for bytes that are no ClientHello.
var errNotTLS = errors.New("it is not TLS")

// tlsHello is what a ClientHello asks for.
type tlsHello struct {
	server    string // SNI, unchanged; "" for none
	protocols []string
}

// readHello reads the ClientHello of c, however it is cut into records and
// segments, and returns it with a connection that says the same bytes again. The
// hello is understood by crypto/tls, so what is decided on is what a server
// would see. Nothing is written. The time is bounded by c's read deadline.
func readHello(c net.Conn) (tlsHello, net.Conn, error) {
	var h tlsHello
	heard := errors.New("heard")
	peek := &peekConn{Conn: c}
	err := tls.Server(peek, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h = tlsHello{server: info.ServerName, protocols: info.SupportedProtos}
		return nil, heard
	}}).Handshake()
	again := replay(c, peek.received.Bytes())
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, heard):
		return h, again, nil
	case peek.err != nil:
		return tlsHello{}, again, fmt.Errorf("reading the TLS hello: %w", peek.err)
	case errors.As(err, &record) || peek.received.Len() > 0 && peek.received.Bytes()[0] != recordHandshake:
		return tlsHello{}, again, errNotTLS
	default:
		return tlsHello{}, again, fmt.Errorf("understanding the TLS hello: %w", err)
	}
}

// Of RFC 8446: the record types and alerts that are spoken by hand.
const (
	recordAlert     = 21
	recordHandshake = 22

	alertHandshakeFailure = 40
	alertUnrecognizedName = 112
)

var errHelloSize = fmt.Errorf("it is not complete within %d bytes", helloBytes)

// peekConn is a connection that is only read, and that remembers what it read.
type peekConn struct {
	net.Conn
	received bytes.Buffer
	err      error
}

func (p *peekConn) Read(b []byte) (int, error) {
	left := helloBytes - p.received.Len()
	if left <= 0 {
		p.err = errHelloSize
		return 0, p.err
	}
	n, err := p.Conn.Read(b[:min(len(b), left)])
	p.received.Write(b[:n])
	if err != nil && p.err == nil {
		p.err = err
		if errors.Is(err, io.EOF) {
			p.err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// Write drops the alert that crypto/tls wants to send about the error by which
// the handshake is left.
func (p *peekConn) Write(b []byte) (int, error) { return len(b), nil }

func (p *peekConn) SetDeadline(time.Time) error      { return nil }
func (p *peekConn) SetWriteDeadline(time.Time) error { return nil }
func (p *peekConn) Close() error                     { return nil }

// alert ends a TLS connection that has not begun with a reason that the client
// can show.
func alert(c net.Conn, description byte) {
	c.SetWriteDeadline(time.Now().Add(time.Second))
	// A client that does not take it loses the explanation and nothing else.
	c.Write([]byte{recordAlert, 3, 1, 0, 2, 2, description})
}
