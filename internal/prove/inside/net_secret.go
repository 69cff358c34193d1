//go:build linux

package inside

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// netSecret sends the value of a variable, with lines like those of netSay but
// with a door each: "DOOR HOST:PORT chunks…", each chunk filled in by filler.
// Port 443 uses TLS. "lookup NAME" looks up a name that is filled in.
func netSecret(p *Probe) {
	value := p.secret()
	p.Control("the variable "+p.Arg("env")+" is set", func() error {
		if value == "" {
			return os.ErrNotExist
		}
		return nil
	})
	fill := filler(value)
	send := func(line string) ([]byte, error) { return sendSecret(fill, line) }
	netMust(p, linesOf(p.Arg("ok"), send))
	netAttempts(p, linesOf(p.Arg("say"), send))
	if p.Arg("look") != "" {
		lookForSecrets(p)
	}
}

// secret returns the value of a variable, or the content of a file.
func (p *Probe) secret() string {
	if p.Arg("from") == "" {
		return os.Getenv(p.Arg("env"))
	}
	b, _ := os.ReadFile(p.Arg("from"))
	return firstSecret(string(b))
}

// firstSecret returns the first word of a text that is too long to be a name.
func firstSecret(text string) string {
	for _, word := range strings.Fields(text) {
		if len(word) >= 18 {
			return word
		}
	}
	return ""
}

// filler replaces {} with a value, {basic} with its Basic authorization, and the
// placeholders for its halves and its length.
func filler(value string) *strings.Replacer {
	half := len(value) / 2
	escaped := ""
	for _, b := range []byte(value) {
		escaped += fmt.Sprintf("%%%02x", b)
	}
	return strings.NewReplacer("{}", value, "{lower}", strings.ToLower(value), "{length}", strconv.Itoa(len(value)), "{half1}", value[:half], "{half2}", value[half:], "{escaped}", escaped,
		"{size1}", strconv.FormatInt(int64(half), 16), "{size2}", strconv.FormatInt(int64(len(value)-half), 16),
		"{basic}", base64.StdEncoding.EncodeToString([]byte("user:"+value)))
}

func sendSecret(fill *strings.Replacer, line string) ([]byte, error) {
	door, rest, _ := strings.Cut(line, " ")
	address, rest, _ := strings.Cut(rest, " ")
	if door == "lookup" {
		// Only the resolver outside knows whether the query left.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		at, err := net.DefaultResolver.LookupHost(ctx, fill.Replace(address))
		return []byte(strings.Join(at, " ")), err
	}
	c, host, port, err := throughTo(door, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if port == "443" {
		t := tls.Client(c, &tls.Config{ServerName: host, InsecureSkipVerify: true}) // the server is a probe's own
		if err := t.Handshake(); err != nil {
			return nil, err
		}
		c = t
	}
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
		if _, err := io.WriteString(c, fill.Replace(text)); err != nil {
			break // it was refused in the middle; the answer tells why
		}
		if rest != "" {
			time.Sleep(10 * time.Millisecond) // a separate segment
		}
	}
	b, err := listen(c)
	return append(b, unpackAnswer(b)...), err
}

// unpackAnswer returns the compressed data in an answer, unpacked.
func unpackAnswer(b []byte) []byte {
	i := bytes.Index(b, []byte{0x1f, 0x8b})
	if i < 0 {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b[i:]))
	if err != nil {
		return nil
	}
	out := make([]byte, 4096)
	n, _ := io.ReadFull(z, out) // what follows the stream is the end of a chunk
	return out[:n]
}

// lookForSecrets prints what visible processes were given, for the judge to
// search.
func lookForSecrets(p *Probe) {
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/proc/[0-9]*/auxv", "/run/*", "/tmp/*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if b, err := os.ReadFile(path); err == nil {
				p.Note(path, b[:min(len(b), 4096)])
			}
		}
	}
}
