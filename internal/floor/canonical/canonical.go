// Package canonical writes JSON values in one form, for everything that judges,
// shows or keeps what a program sends in JSON. It knows nothing of what a value
// means.
package canonical

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Bounds of a value.
const (
	maxMembers    = 100_000 // of all objects together: each costs some 100 bytes of memory
	maxDepth      = 128
	integerDigits = 40 // a longer integer is written as a float, as most readers take it
)

// JSON writes a JSON value in its only form, so that rules, screens, the
// record and the program that acts on it read the same: no white space, no escape that is
// not needed, the members of objects in the order of their names, numbers that
// are equal alike (22, 22.0 and 2.2e1 are 22). Half of a surrogate pair becomes
// U+FFFD.
//
// An object in which a name is twice is refused at every depth, also when the
// two differ in upper and lower case: readers differ in which one counts, and some
// (encoding/json among them) take both for the same name.
func JSON(value []byte) ([]byte, error) {
	if !utf8.Valid(value) {
		return nil, errors.New("it is not UTF-8")
	}
	if !json.Valid(value) {
		return nil, errors.New("it is not JSON")
	}
	c := writer{in: value, out: make([]byte, 0, len(value))}
	if err := c.value(0); err != nil {
		return nil, err
	}
	return c.out, nil
}

// Marshal writes v as encoding/json does, but leaves &, < and > as they are: what is
// written here is searched and read by people, and put into no page of HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// writer is a value that is being rewritten; in is valid JSON.
type writer struct {
	in, out []byte
	at      int // of in
	members int // of all objects so far
}

// next returns the next byte that is not white space, without taking it; 0 at the end.
func (c *writer) next() byte {
	for c.at < len(c.in) {
		switch b := c.in[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

func (c *writer) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	switch b := c.next(); {
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.list(depth)
	case b == '"':
		text, err := c.text()
		c.out = appendText(c.out, text)
		return err
	case b == '-' || b >= '0' && b <= '9':
		number, err := plainNumber(c.word())
		c.out = append(c.out, number...)
		return err
	}
	c.out = append(c.out, c.word()...) // true, false, null
	return nil
}

// word takes a number or a literal.
func (c *writer) word() string {
	begin := c.at
	for c.at < len(c.in) && !strings.ContainsRune(" \t\n\r,]}", rune(c.in[c.at])) {
		c.at++
	}
	return string(c.in[begin:c.at])
}

// text takes a string and decodes it.
func (c *writer) text() (string, error) {
	begin := c.at
	for c.at++; c.in[c.at] != '"'; c.at++ {
		if c.in[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	written := c.in[begin:c.at]
	if !bytes.ContainsRune(written, '\\') {
		return string(written[1 : len(written)-1]), nil
	}
	var text string
	err := json.Unmarshal(written, &text)
	return text, err
}

func (c *writer) list(depth int) error {
	c.at++
	c.out = append(c.out, '[')
	for c.next() != ']' {
		if c.in[c.at] == ',' {
			c.at++
			c.out = append(c.out, ',')
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	c.at++
	c.out = append(c.out, ']')
	return nil
}

// member is one of an object; its text is in the output from begin to end.
type member struct {
	name       string
	begin, end int
}

func (c *writer) object(depth int) error {
	c.at++
	begin := len(c.out)
	c.out = append(c.out, '{')
	var all []member
	for c.next() != '}' {
		if c.in[c.at] == ',' {
			c.at++
			c.next()
			c.out = append(c.out, ',')
		}
		if c.members++; c.members > maxMembers {
			return fmt.Errorf("its objects have more than %d members", maxMembers)
		}
		m, err := c.member(depth)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	c.at++
	c.out = append(c.out, '}')
	if err := unambiguous(all); err != nil {
		return err
	}
	byName := func(a, b member) int { return cmp.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(all, byName) {
		slices.SortFunc(all, byName)
		c.reorder(begin, all)
	}
	return nil
}

func (c *writer) member(depth int) (m member, err error) {
	m.begin = len(c.out)
	if m.name, err = c.text(); err != nil {
		return m, err
	}
	c.out = append(appendText(c.out, m.name), ':')
	c.next()
	c.at++ // the colon
	err = c.value(depth + 1)
	m.end = len(c.out)
	return m, err
}

// reorder rewrites the members of the object that begins there, in their new order.
func (c *writer) reorder(begin int, all []member) {
	written := slices.Clone(c.out[begin:])
	c.out = c.out[:begin+1]
	for i, m := range all {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, written[m.begin-begin:m.end-begin]...)
	}
	c.out = append(c.out, '}')
}

// unambiguous refuses a name that is there twice, in whatever case.
func unambiguous(all []member) error {
	seen := make(map[string]string, len(all))
	for _, m := range all {
		folded := FoldName(m.name)
		other, twice := seen[folded]
		switch {
		case twice && other == m.name:
			return fmt.Errorf("the name %q appears twice in it", cutName(m.name))
		case twice:
			return fmt.Errorf("the names %q and %q in it differ only in case", cutName(other), cutName(m.name))
		}
		seen[folded] = m.name
	}
	return nil
}

func cutName(name string) string {
	return text.Cut(name, 100)
}

// FoldName returns what two names have in common that readers which ignore upper
// and lower case take for the same one (strings.EqualFold).
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

const hexDigits = "0123456789abcdef"

// appendText writes a string with the escapes that JSON demands and no others.
func appendText(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		case b == '\n':
			out = append(out, `\n`...)
		case b == '\r':
			out = append(out, `\r`...)
		case b == '\t':
			out = append(out, `\t`...)
		case b < ' ':
			out = append(out, `\u00`...)
			out = append(out, hexDigits[b>>4], hexDigits[b&15])
		default:
			out = append(out, b)
		}
	}
	return append(out, '"')
}

// plainNumber writes a number in the only form of its value: integers of up to
// integerDigits digits exactly and without an exponent, others as the nearest
// float64, which is what readers make of them.
func plainNumber(written string) (string, error) {
	if digits, ok := integer(written); ok {
		return digits, nil
	}
	f, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return "", fmt.Errorf("a number in it is out of range: %s", cutName(written))
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 { // 22.00000000000000001 is 22 for every reader
		return strconv.FormatInt(int64(f), 10), nil
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}

// integer returns the digits of a number that is an integer, however it is
// written, if they are not too many.
func integer(written string) (digits string, ok bool) {
	rest, negative := strings.CutPrefix(written, "-")
	rest, exponent, _ := strings.Cut(strings.ToLower(rest), "e")
	whole, fraction, _ := strings.Cut(rest, ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > integerDigits || shift < -integerDigits {
			return "", false
		}
	}
	fraction = strings.TrimRight(fraction, "0")
	all, zeros := whole+fraction, shift-len(fraction)
	for zeros < 0 && strings.HasSuffix(all, "0") {
		all, zeros = all[:len(all)-1], zeros+1
	}
	all = strings.TrimLeft(all, "0")
	switch {
	case all == "":
		return "0", true
	case zeros < 0 || len(all)+zeros > integerDigits:
		return "", false
	}
	all += strings.Repeat("0", zeros)
	if negative {
		all = "-" + all
	}
	return all, true
}
