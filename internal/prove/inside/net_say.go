//go:build linux

package inside

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func unquote(s string) (string, error) { return strconv.Unquote(s) }

// netSay sends raw bytes: each line of say is an address or a door, and quoted chunks that are
// sent one by one. The chunk "?" waits for an answer, and "*N TEXT" is N times TEXT.
func netSay(p *Probe) {
	netMust(p, linesOf(p.Arg("ok"), sayLine))
	netAttempts(p, linesOf(p.Arg("say"), sayLine))
}

func sayLine(line string) ([]byte, error) {
	to, rest, _ := strings.Cut(line, " ")
	door, address, ok := strings.Cut(to, "!")
	if !ok {
		door, address = "direct", to
	}
	c, _, _, err := throughTo(door, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var heard []byte
	for rest != "" {
		chunk, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, err
		}
		rest = strings.TrimLeft(rest[len(chunk):], " ")
		text, err := strconv.Unquote(chunk)
		if err != nil {
			return nil, err
		}
		if text == "?" {
			b, err := listen(c)
			heard = append(heard, b...)
			if err != nil {
				return heard, err
			}
			continue
		}
		if count, piece, ok := repeated(text); ok {
			text = strings.Repeat(piece, count)
		}
		if _, err := io.WriteString(c, text); err != nil {
			break // it was refused in the middle; the answer tells why
		}
		if rest != "" {
			time.Sleep(10 * time.Millisecond) // a separate segment
		}
	}
	b, err := listen(c)
	return append(heard, b...), err
}

// repeated parses "*COUNT TEXT", for a text that is too long for an argument.
func repeated(text string) (count int, piece string, ok bool) {
	head, piece, _ := strings.Cut(text, " ")
	if n, found := strings.CutPrefix(head, "*"); found {
		count, err := strconv.Atoi(n)
		return count, piece, err == nil
	}
	return 0, "", false
}

// netTLS opens TLS to an allowed destination in unusual ways: each line of try is
// "DOOR HOST:PORT key=value…". Keys: sni, host (of the request), path, segment
// and record (bytes of the first flight in each), patch (OLD>NEW in it, of equal
// length), alpn, max (highest version), first (quoted bytes before).
func netTLS(p *Probe) {
	netMust(p, linesOf(p.Arg("ok"), overTLS))
	netAttempts(p, linesOf(p.Arg("try"), overTLS))
}

func overTLS(line string) ([]byte, error) {
	f := strings.Fields(line)
	o := map[string]string{}
	for _, kv := range f[2:] {
		k, v, _ := strings.Cut(kv, "=")
		o[k] = v
	}
	host, port, err := net.SplitHostPort(f[1])
	if err != nil {
		return nil, err
	}
	c, err := through(f[0], host, port)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	config := &tls.Config{ServerName: host, InsecureSkipVerify: true} // the server is a probe's own
	if sni, ok := o["sni"]; ok {
		config.ServerName = sni
	}
	if o["alpn"] != "" {
		config.NextProtos = strings.Split(o["alpn"], ",")
	}
	if o["max"] == "1.2" {
		config.MaxVersion = tls.VersionTLS12
	}
	if o["first"] != "" {
		text, err := strconv.Unquote(o["first"])
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(c, text); err != nil {
			return nil, err
		}
	}
	authority := host
	if o["host"] != "" {
		authority = o["host"]
	}
	t := tls.Client(&firstFlight{Conn: c, options: o}, config)
	if err := t.Handshake(); err != nil {
		return nil, err
	}
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		return overH2(t, authority, "/"+strings.TrimPrefix(o["path"], "/"))
	}
	fmt.Fprintf(t, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", strings.TrimPrefix(o["path"], "/"), authority)
	return listen(t)
}

// overH2 makes one request with this :authority.
func overH2(c net.Conn, authority, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), netPatience)
	defer cancel()
	tr := &http.Transport{
		DialTLSContext:    func(context.Context, string, string) (net.Conn, error) { return c, nil },
		ForceAttemptHTTP2: true,
	}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, "GET", "https://allowed.test"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Host = authority
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return append([]byte(resp.Status+"\n"), b...), err
}

// firstFlight changes how a ClientHello looks on the wire.
type firstFlight struct {
	net.Conn
	options map[string]string
	sent    bool
}

func (f *firstFlight) Write(b []byte) (int, error) {
	if f.sent {
		return f.Conn.Write(b)
	}
	f.sent = true
	out := bytes.Clone(b)
	if from, to, ok := strings.Cut(f.options["patch"], ">"); ok {
		to, _ = strconv.Unquote(`"` + to + `"`)
		out = bytes.Replace(out, []byte(from), []byte(to), 1)
	}
	if n, _ := strconv.Atoi(f.options["record"]); n > 0 && len(out) > 5 {
		var split []byte
		for body := out[5:]; len(body) > 0; {
			l := min(n, len(body))
			split = append(split, out[0], out[1], out[2], byte(l>>8), byte(l))
			split = append(split, body[:l]...)
			body = body[l:]
		}
		out = split
	}
	n, _ := strconv.Atoi(f.options["segment"])
	if n == 0 {
		n = len(out)
	}
	for len(out) > 0 {
		l := min(n, len(out))
		if _, err := f.Conn.Write(out[:l]); err != nil {
			return 0, err
		}
		if out = out[l:]; len(out)%8 == 0 {
			time.Sleep(200 * time.Microsecond) // so that some segments are sent alone
		}
	}
	return len(b), nil
}
