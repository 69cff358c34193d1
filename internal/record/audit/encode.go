package audit

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/event"
)

// maxLine is the length limit of a line in bytes, without its newline: limit.go
// keeps every event well below it.
const maxLine = 4 << 20

// rawString is a string that is not UTF-8, for the object "raw" of its line.
type rawString struct{ name, value string }

// encoder writes the part of a line that follows "prev", which is the same at
// any place in the log.
type encoder struct {
	buf  []byte
	raws []rawString
	keys []string // of detail, sorted
}

// body encodes e from `,"time":` to the closing brace. What it returns is valid
// until the next call.
func (c *encoder) body(e *event.Event) ([]byte, error) {
	c.buf, c.raws = c.buf[:0], c.raws[:0]
	c.buf = append(c.buf, `,"time":"`...)
	c.buf = appendTime(c.buf, e.Time)
	c.buf = append(c.buf, '"')
	c.text("session", e.Session)
	c.text("sensor", string(e.Sensor))
	c.number("n", e.N)
	c.text("action", e.Action)
	if e.Verdict != event.Unknown {
		c.text("verdict", e.Verdict.String())
	}
	c.text("object", e.Object)
	c.text("resolved", e.Resolved)
	c.text("layer", e.Layer)
	c.text("rule", e.Rule)
	c.text("error", e.Error)
	c.process(&e.Process)
	if err := c.detail(e.Detail); err != nil {
		return nil, err
	}
	c.raw()
	c.buf = append(c.buf, '}')
	if len(c.buf) > maxLine-256 {
		return nil, fmt.Errorf("the record would have %d bytes", len(c.buf))
	}
	return c.buf, nil
}

// text appends a member unless its value is empty. The first member of an
// object takes no comma.
func (c *encoder) text(name, value string) {
	if value == "" {
		return
	}
	c.member(name)
	c.str(name, value)
}

func (c *encoder) number(name string, value uint64) {
	if value == 0 {
		return
	}
	c.member(name)
	c.buf = strconv.AppendUint(c.buf, value, 10)
}

func (c *encoder) member(name string) {
	if c.buf[len(c.buf)-1] != '{' {
		c.buf = append(c.buf, ',')
	}
	c.buf = append(c.buf, '"')
	c.buf = append(c.buf, name...)
	c.buf = append(c.buf, '"', ':')
}

// str appends a string, and remembers its bytes under name where JSON cannot
// hold them.
func (c *encoder) str(name, value string) {
	var valid bool
	if c.buf, valid = AppendString(c.buf, value); !valid {
		c.raws = append(c.raws, rawString{name, value})
	}
}

func (c *encoder) process(p *event.Process) {
	mark := len(c.buf)
	c.member("process")
	c.buf = append(c.buf, '{')
	open := len(c.buf)
	c.number("pid", uint64(max(p.PID, 0)))
	c.number("exec", p.Exec)
	c.number("parent", uint64(max(p.Parent, 0)))
	c.number("parent_exec", p.ParentExec)
	c.text("executable", p.Executable)
	c.text("sha256", p.SHA256)
	c.text("cwd", p.Cwd)
	if len(p.Argv) > 0 {
		c.member("argv")
		c.buf = append(c.buf, '[')
		for i, a := range p.Argv {
			if i > 0 {
				c.buf = append(c.buf, ',')
			}
			var valid bool
			if c.buf, valid = AppendString(c.buf, a); !valid {
				c.raws = append(c.raws, rawString{"argv." + strconv.Itoa(i), a})
			}
		}
		c.buf = append(c.buf, ']')
	}
	if len(c.buf) == open {
		c.buf = c.buf[:mark]
		return
	}
	c.buf = append(c.buf, '}')
}

// detail appends the details with their keys sorted by bytes. Our code writes
// the keys; an invalid one is a bug.
func (c *encoder) detail(d map[string]string) error {
	if len(d) == 0 {
		return nil
	}
	c.keys = c.keys[:0]
	for k := range d {
		if !plainKey(k) {
			return fmt.Errorf("%q is not a valid key of a detail", k)
		}
		c.keys = append(c.keys, k)
	}
	slices.Sort(c.keys)
	c.member("detail")
	c.buf = append(c.buf, '{')
	for _, k := range c.keys {
		c.member(k)
		var valid bool
		if c.buf, valid = AppendString(c.buf, d[k]); !valid {
			c.raws = append(c.raws, rawString{"detail." + k, d[k]})
		}
	}
	c.buf = append(c.buf, '}')
	return nil
}

// maxKey is how long a key of a detail may be, in bytes.
const maxKey = 128

// plainKey reports whether k needs no escape in JSON and on a terminal.
func plainKey[S string | []byte](k S) bool {
	if len(k) == 0 || len(k) > maxKey {
		return false
	}
	for i := range len(k) {
		if k[i] <= ' ' || k[i] > '~' || k[i] == '"' || k[i] == '\\' {
			return false
		}
	}
	return true
}

func (c *encoder) raw() {
	if len(c.raws) == 0 {
		return
	}
	slices.SortFunc(c.raws, func(a, b rawString) int { return strings.Compare(a.name, b.name) })
	c.member("raw")
	c.buf = append(c.buf, '{')
	for _, r := range c.raws {
		c.member(r.name)
		c.buf = append(c.buf, '"')
		c.buf = base64.StdEncoding.AppendEncode(c.buf, []byte(r.value))
		c.buf = append(c.buf, '"')
	}
	c.buf = append(c.buf, '}')
}

// plain reports which bytes represent themselves in a string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// AppendString appends s quoted, as RFC 8785 (3.2.2.2) writes strings: only
// what must be escaped is, in one way. Each byte that is not part of valid
// UTF-8 becomes U+FFFD, and the result says that there was one.
func AppendString(b []byte, s string) (_ []byte, valid bool) {
	b = append(b, '"')
	valid = true
	start := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		if s[i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			valid = false
			b = append(b, s[start:i]...)
			b = append(b, "\uFFFD"...)
			i++
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, s[i])
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"'), valid
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\t':
		return append(b, '\\', 't')
	case '\n':
		return append(b, '\\', 'n')
	case '\f':
		return append(b, '\\', 'f')
	case '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
