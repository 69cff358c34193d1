package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// turnAway ends an intercepted connection that is refused: clients of HTTP, of HTTP in
// TLS and of ssh get the reason in words, all others a reset. What is refused at once and
// not by a timeout, and by no status that means "later", is not tried again.
func (e *Engine) turnAway(ctx context.Context, c net.Conn, r Refusal) {
	wait := peekTime
	if r.Port == 80 || r.Port == 443 {
		wait = peekTimeHTTP
	}
	c.SetReadDeadline(time.Now().Add(wait))
	first := make([]byte, 2<<10)
	n, _ := io.ReadAtLeast(c, first, 8)
	first = first[:n]
	if looksLikeHTTP(string(first)) {
		e.answerRefused(c, first, r)
		return
	}
	e.findDecoy(first, r)
	switch {
	case bytes.HasPrefix(first, []byte{recordHandshake, 3}):
		e.turnAwayTLS(ctx, replay(c, first), r)
	case bytes.HasPrefix(first, []byte("SSH-")):
		writeAndClose(c, sshDisconnect(r.Line()))
	default:
		abort(c)
	}
}

// turnAwayTLS ends TLS with a certificate of the session for the host that was refused,
// because no client shows a reason that comes before. Nothing of it is passed on.
func (e *Engine) turnAwayTLS(ctx context.Context, c net.Conn, r Refusal) {
	if e.config.Authority == nil {
		abort(c)
		return
	}
	leaf, err := e.config.Authority.certificate(r.Name)
	if err != nil {
		abort(c)
		return
	}
	t := tls.Server(c, &tls.Config{
		Certificates:           []tls.Certificate{*leaf},
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"http/1.1", "http/1.0"}, // HTTP/2 has no words in its status line
		SessionTicketsDisabled: true,
	})
	c.SetDeadline(time.Now().Add(turnAwayTime))
	if t.HandshakeContext(ctx) != nil {
		abort(c)
		return
	}
	first := make([]byte, 2<<10)
	n, _ := io.ReadAtLeast(t, first, 8)
	if !looksLikeHTTP(string(first[:n])) {
		e.findDecoy(first[:n], r)
		abort(c)
		return
	}
	e.answerRefused(t, first[:n], r)
}

// findDecoy raises the alarm for a honeytoken in what a refused client sent.
func (e *Engine) findDecoy(sent []byte, r Refusal) {
	if kind := e.decoyIn(sent); kind != "" {
		e.decoySent(r.Where(), kind, "in what it sent first", Intercepted, "")
	}
}

// answerRefused reads the rest of the head of a request and answers it.
func (e *Engine) answerRefused(c net.Conn, first []byte, r Refusal) {
	c.SetReadDeadline(time.Now().Add(peekTimeHTTP))
	head, rest, err := readProxyHead(c, first, e.limits.HeadBytes)
	if err != nil {
		head = first // it is refused as well as it can be
	}
	e.findDecoy(slices.Concat(head, rest), r)
	writeAndClose(c, plainAnswer(http.StatusForbidden, r.Line(), fieldsIn(head)))
}

// requestField gives the value of a header field of the request that is answered; "" if it has
// none.
type requestField func(name string) string

// noField is for a request that was not understood.
func noField(string) string { return "" }

// fieldsIn are those of a head of HTTP/1.
func fieldsIn(head []byte) requestField {
	return func(name string) string {
		for line := range strings.SplitSeq(string(head), "\r\n") {
			if n, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
}

// plainAnswer is a whole HTTP answer of one line, after which the connection ends. The
// line is in the status, too: apt, pip, pnpm and wget show nothing else.
func plainAnswer(status int, line string, request requestField) []byte {
	status, kind, body := answerFor(request, status, line)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n%s",
		status, printableASCII(line), kind, len(body), body)
}

// answerFor puts a line into the form in which the client shows it. One that asks for
// JSON, and is no browser, gets an object with the field that npm shows. Of an index that
// it may not have, pip shows nothing but a type of content that it does not know, and
// that of an answer which is no error alone.
func answerFor(request requestField, status int, line string) (_ int, kind, body string) {
	accept := request("Accept")
	switch {
	case strings.Contains(accept, "application/vnd.pypi.simple") && strings.HasPrefix(request("User-Agent"), "pip/"):
		return http.StatusMultipleChoices, "text/plain; " + printableASCII(line), line + "\n"
	case strings.Contains(accept, "json") && !strings.Contains(accept, "text/html"):
		if b, err := json.Marshal(map[string]string{"error": line}); err == nil {
			return status, "application/json", string(b) + "\n"
		}
	}
	return status, "text/plain; charset=utf-8", line + "\n"
}

// printableASCII is a line without what a status line may not hold (RFC 9112, 4).
func printableASCII(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.ReplaceAll(line, "…", "..."))
}

// sshDisconnect is the version of an ssh server and its message that it ends the
// connection, with a reason that clients show (RFC 4253, 4.2, 6 and 11.1).
func sshDisconnect(line string) []byte {
	const disconnect, hostNotAllowed, block = 1, 1, 8
	payload := binary.BigEndian.AppendUint32([]byte{disconnect}, hostNotAllowed)
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(line)))
	payload = append(payload, line...)
	payload = binary.BigEndian.AppendUint32(payload, 0) // no language
	padding := block - (4+1+len(payload))%block
	if padding < 4 {
		padding += block
	}
	packet := binary.BigEndian.AppendUint32([]byte("SSH-2.0-holdfast\r\n"), uint32(1+len(payload)+padding))
	packet = append(packet, byte(padding))
	packet = append(packet, payload...)
	return append(packet, make([]byte, padding)...)
}

// writeAndClose writes last words and gives the client a moment to take them in:
// closing a connection with unread bytes resets it, and the words are lost.
func writeAndClose(c net.Conn, words []byte) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(lingerTime))
	if _, err := c.Write(words); err != nil {
		abort(c)
		return
	}
	if closeWrite(c) == nil {
		io.CopyN(io.Discard, c, 1<<20)
	}
}

// looksLikeHTTP reports whether a connection begins with a method of HTTP/1.
func looksLikeHTTP(s string) bool {
	method, _, ok := strings.Cut(s, " ")
	if !ok || method == "" {
		return false
	}
	return strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
