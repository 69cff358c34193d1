package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// span is the place of a value in a line: a string without its quotes, an
// object or list with its brackets. to is 0 if there is none.
type span struct {
	from, to int32
	escaped  bool // the string has an escape
}

// zeroHash is the "prev" of the first line.
const zeroHash = "0000000000000000000000000000000000000000000000000000000000000000"

const hashLen = len(zeroHash)

// errForm says that a line is not in canonical form, and where.
type errForm struct {
	at   int // bytes from the beginning of the line
	what string
}

func (e *errForm) Error() string {
	return fmt.Sprintf("byte %d of the line: %s", e.at, e.what)
}

// parser reads a line and accepts only the canonical spelling, so that two
// lines with the same meaning are the same bytes.
type parser struct {
	b   []byte
	at  int
	err error // the first
	r   *Record
}

// parseLine fills r from a line without its newline. r refers to the line.
func parseLine(line []byte, r *Record) error {
	*r = Record{line: line}
	p := parser{b: line, r: r}
	if len(line) > maxLine {
		return &errForm{maxLine, "the line is too long"}
	}
	p.expect(`{"seq":`)
	r.seq = p.number()
	p.expect(`,"prev":"`)
	r.prev = p.at
	p.hash()
	p.expect(`",`)
	if p.startsWith(`"checkpoint":`) {
		p.expect(`"checkpoint":`)
		r.checkpoint = p.nonEmptyString()
		p.expect(`}`)
	} else {
		p.event()
	}
	if p.err == nil && p.at != len(p.b) {
		p.fail("something follows the record")
	}
	return p.err
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = &errForm{p.at, what}
	}
}

func (p *parser) startsWith(s string) bool {
	return p.err == nil && len(p.b)-p.at >= len(s) && string(p.b[p.at:p.at+len(s)]) == s
}

func (p *parser) expect(s string) {
	if !p.startsWith(s) {
		p.fail("expected " + strconv.Quote(s))
		return
	}
	p.at += len(s)
}

// ends reads a comma, or the closing bracket of an object or list, and reports
// whether it was the bracket.
func (p *parser) ends(bracket byte) bool {
	if p.err == nil && p.at < len(p.b) {
		switch p.b[p.at] {
		case bracket:
			p.at++
			return true
		case ',':
			p.at++
			return false
		}
	}
	p.fail("expected a comma or the end of the object or list")
	return false
}

// number reads an integer from 1, without leading zeros.
func (p *parser) number() uint64 {
	start, end := p.at, p.at
	var n uint64
	for _, c := range p.b[start:min(len(p.b), start+19)] {
		if c-'0' > 9 {
			break
		}
		n = n*10 + uint64(c-'0')
		end++
	}
	p.at = end
	if p.err != nil || p.at == start || p.b[start] == '0' || n > math.MaxInt64 {
		p.at = start
		p.fail("expected an integer from 1, without leading zeros")
	}
	return n
}

func (p *parser) hash() {
	if p.err != nil {
		return
	}
	if len(p.b)-p.at >= hashLen && areHex(p.b[p.at:p.at+hashLen]) {
		p.at += hashLen
		return
	}
	p.fail("expected a SHA-256 in 64 lower-case hexadecimal digits")
}

// areHex reports whether all bytes are lower-case hexadecimal digits. It looks
// at eight at once: each sum has its highest bit set from one character on, a
// bound of '0' to '9' or 'a' to 'f'.
func areHex(digits []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	good := uint64(high)
	for ; len(digits) >= 8; digits = digits[8:] {
		x := binary.LittleEndian.Uint64(digits)
		low := x &^ high
		decimal := (low + ones*(0x80-'0')) &^ (low + ones*(0x80-'9'-1))
		letter := (low + ones*(0x80-'a')) &^ (low + ones*(0x80-'f'-1))
		good &= (decimal | letter) &^ x
	}
	return good == high
}

func isHex(c byte) bool { return strings.IndexByte(hexDigits, c) >= 0 }

// nonEmptyString reads a string that is not empty.
func (p *parser) nonEmptyString() span {
	s := p.readString()
	if p.err == nil && s.from == s.to {
		p.fail("an empty string must be left out")
	}
	return s
}

// readString reads a string in the only spelling that AppendString writes.
func (p *parser) readString() span {
	if p.at >= len(p.b) || p.b[p.at] != '"' {
		p.fail("expected a string")
		return span{}
	}
	p.at++
	s := span{from: int32(p.at)}
	b, i := p.b, skipPlain(p.b, p.at)
	if i < len(b) && b[i] == '"' && p.err == nil { // the usual case
		s.to = int32(i)
		p.at = i + 1
		return s
	}
	for ; p.err == nil; i = skipPlain(b, i) {
		p.at = i
		switch {
		case i >= len(b):
			p.fail("a string is not terminated")
		case b[i] == '"':
			s.to = int32(i)
			p.at++
			return s
		case b[i] == '\\':
			s.escaped = true
			i += p.escape()
		case b[i] >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size <= 1 {
				p.fail("a string is not UTF-8")
			}
			i += size
		default:
			p.fail("a control character is not escaped")
		}
	}
	return span{}
}

// skipPlain returns the index of the first byte from i that is not plain. It looks
// at eight bytes at once: those below a space, from 0x80, or equal to a quote or a
// backslash get their highest bit set in special, and the lowest such bit is exact.
func skipPlain(b []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		special := ((x-ones*' ')&^x | x | (quote-ones)&^quote | (slash-ones)&^slash) & high
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(b) && plain[b[i]] {
		i++
	}
	return i
}

// escape checks the escape that begins at p.at and returns its length.
func (p *parser) escape() int {
	rest := p.b[p.at+1:]
	if len(rest) > 0 && strings.IndexByte(`"\btnfr`, rest[0]) >= 0 {
		return 2
	}
	if len(rest) >= 5 && string(rest[:3]) == "u00" && (rest[3] == '0' || rest[3] == '1') && isHex(rest[4]) {
		c := (rest[3]-'0')<<4 | byte(strings.IndexByte(hexDigits, rest[4]))
		if strings.IndexByte("\b\t\n\f\r", c) < 0 {
			return 6
		}
	}
	p.fail("an escape is not in canonical form")
	return 1
}

// event reads the members of an event, up to the end of the line.
func (p *parser) event() {
	p.members(-1, false)
	if p.err == nil && p.r.at[mTime].to == 0 {
		p.fail("the record has no time")
	}
	p.raws()
}

// members reads the members of the line, or of "process", after member last.
func (p *parser) members(last int, process bool) {
	for p.err == nil {
		if last = p.memberAfter(last, process); last < 0 {
			p.name()
			p.fail("this member is unknown, repeated or out of order")
			return
		}
		p.value(last)
		if p.ends('}') {
			return
		}
	}
}

// value reads the value of member m.
func (p *parser) value(m int) {
	start := int32(p.at)
	switch m {
	case mN:
		p.r.n = p.number()
	case mPID, mExec, mParent, mParentExec:
		p.number()
	case mProcess:
		p.expect("{")
		p.members(mProcess, true)
	case mArgv:
		p.argv()
	case mDetail, mRaw:
		p.pairs()
	default:
		s := p.nonEmptyString()
		p.r.at[m] = s
		if p.err != nil {
			return
		}
		switch v := p.b[s.from:s.to]; m {
		case mTime:
			var ok bool
			if p.r.time, ok = parseTime(v); !ok {
				p.fail("this is not a UTC time in the one spelling of RFC 3339 that a record uses")
			}
		case mVerdict:
			if string(v) != "allowed" && string(v) != "denied" {
				p.fail("a verdict must be allowed or denied")
			}
		}
		return
	}
	p.r.at[m] = span{from: start, to: int32(p.at)}
}

func (p *parser) argv() {
	p.expect("[")
	for p.err == nil {
		p.readString()
		if p.ends(']') {
			return
		}
	}
}

// pairs reads an object of strings whose keys are in ascending order of bytes.
func (p *parser) pairs() {
	p.expect("{")
	var last []byte
	for p.err == nil {
		start := p.at
		k := p.name()
		if !plainKey(k) || bytes.Compare(k, last) <= 0 {
			p.at = start
			p.fail("this key has a character that is not ASCII or needs an escape, or it is repeated or out of order")
			return
		}
		last = k
		p.readString()
		if p.ends('}') {
			return
		}
	}
}

// raws checks that each member of "raw" holds bytes that are not UTF-8, and
// that the string of that name is their form in JSON.
func (p *parser) raws() {
	if p.err != nil || p.r.at[mRaw].to == 0 {
		return
	}
	shown := map[string]string{} // as in the line, with escapes
	p.r.each(func(name string, s span) { shown[name] = string(p.b[s.from:s.to]) })
	p.r.pairs(mRaw, func(key string, s span) bool {
		exact, err := base64.StdEncoding.Strict().DecodeString(string(p.b[s.from:s.to]))
		if err != nil {
			p.fail("raw: not in base64")
			return false
		}
		again, valid := AppendString(nil, string(exact))
		if was, found := shown[key]; valid || !found || `"`+was+`"` != string(again) {
			p.fail("raw: " + strconv.Quote(key) + " does not belong to a string of the record")
			return false
		}
		return true
	})
}

var errNoEvent = errors.New("the line is a checkpoint, not an event")
