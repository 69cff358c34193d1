//go:build linux

package inside

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// netH2 writes HTTP/2 frames itself, so that it can send what no library would:
// each line is "DOOR HOST:PORT" and quoted fields "name=value", in the order in
// which they are sent. The field "=DATA text" is a body, "=TRAILER name=value"
// comes after it. Fields are filled in by filler.
func netH2(p *Probe) {
	fill := filler(p.secret())
	speak := func(line string) ([]byte, error) { return speakH2(fill, line) }
	netMust(p, linesOf(p.Arg("ok"), speak))
	netAttempts(p, linesOf(p.Arg("say"), speak))
}

func speakH2(fill *strings.Replacer, line string) ([]byte, error) {
	t, rest, err := h2Dial(line)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	flight, err := h2Request(fill, rest)
	if err != nil {
		return nil, err
	}
	if _, err := t.Write(flight); err != nil {
		return nil, err
	}
	return h2Answer(t)
}

// h2Dial opens the connection that a line names, and returns the rest of the line.
func h2Dial(line string) (net.Conn, string, error) {
	door, rest, _ := strings.Cut(line, " ")
	address, rest, _ := strings.Cut(rest, " ")
	c, host, _, err := throughTo(door, address)
	if err != nil {
		return nil, "", err
	}
	t := tls.Client(c, &tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // the server is a probe's own
	if err = t.Handshake(); err == nil && t.ConnectionState().NegotiatedProtocol != "h2" {
		err = refusedErr{"HTTP/2 was not taken"}
	}
	if err != nil {
		c.Close()
		return nil, "", err
	}
	return t, rest, nil
}

// The frames of RFC 9113, 6.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7
	flagEndStream, flagEndHeaders                                   = 1, 4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// literal encodes a field without indexing and without Huffman coding (RFC 7541,
// 6.2.2).
func literal(name, value string) []byte {
	b := []byte{0}
	for _, s := range []string{name, value} {
		if len(s) < 127 {
			b = append(b, byte(len(s)))
		} else {
			b = append(b, 127)
			n := len(s) - 127
			for ; n >= 128; n >>= 7 {
				b = append(b, byte(n)|128)
			}
			b = append(b, byte(n))
		}
		b = append(b, s...)
	}
	return b
}

// h2Parts are the blocks of a request.
type h2Parts struct {
	head, data, trailer []byte
	body                bool
}

// h2Fields parses the quoted fields of a line.
func h2Fields(fill *strings.Replacer, rest string) (r h2Parts, err error) {
	for rest != "" {
		chunk, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return r, err
		}
		rest = strings.TrimLeft(rest[len(chunk):], " ")
		text, err := strconv.Unquote(chunk)
		if err != nil {
			return r, err
		}
		text = fill.Replace(text)
		split := strings.IndexByte(text[1:], '=') + 1
		switch {
		case strings.HasPrefix(text, "=DATA "):
			r.data, r.body = append(r.data, text[6:]...), true
		case strings.HasPrefix(text, "=TRAILER "):
			name, value, _ := strings.Cut(text[9:], "=")
			r.trailer, r.body = append(r.trailer, literal(name, value)...), true
		default:
			r.head = append(r.head, literal(text[:split], text[split+1:])...)
		}
	}
	return r, nil
}

func h2Request(fill *strings.Replacer, rest string) ([]byte, error) {
	r, err := h2Fields(fill, rest)
	if err != nil {
		return nil, err
	}
	out := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, nil)...)
	if !r.body {
		return append(out, frame(frameHeaders, flagEndStream|flagEndHeaders, 1, r.head)...), nil
	}
	out = append(out, frame(frameHeaders, flagEndHeaders, 1, r.head)...)
	if r.trailer == nil {
		return append(out, frame(frameData, flagEndStream, 1, r.data)...), nil
	}
	out = append(out, frame(frameData, 0, 1, r.data)...)
	return append(out, frame(frameHeaders, flagEndStream|flagEndHeaders, 1, r.trailer)...), nil
}

// h2Answer returns the content of DATA frames until the stream or the connection
// ends.
func h2Answer(c net.Conn) ([]byte, error) {
	var body []byte
	head := make([]byte, 9)
	for len(body) < 1<<20 {
		if _, err := io.ReadFull(c, head); err != nil {
			return body, err
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			return body, err
		}
		switch head[3] {
		case frameData:
			body = append(body, payload...)
		case frameReset, frameGoAway:
			return body, refusedErr{fmt.Sprintf("frame %d: %x", head[3], payload[:min(len(payload), 16)])}
		}
		if (head[3] == frameData || head[3] == frameHeaders) && head[4]&flagEndStream != 0 {
			return body, nil
		}
	}
	return body, nil
}
