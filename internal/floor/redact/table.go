package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// table finds where a secret may be by pairs of bytes: a text without one of
// them is looked at once and left as it is. It is not changed once it is made.
type table struct {
	bits   [1 << 16 / 64]uint64 // pairs that mean something
	index  [1 << 16]uint16      // of the pair's group
	groups []group
}

// group is what a pair may be a part of.
type group struct {
	held   []needle
	shapes []anchored
	place  bool // a sign beside which secrets are found
}

type needle struct {
	text string // the pair is its end
	mark string
}

type anchored struct {
	shape *shape
	back  int // bytes of the prefix before the pair's second byte
}

func newTable(all []held) *table {
	t := &table{groups: make([]group, 1)}
	for i := range shapes {
		s := &shapes[i]
		back := s.anchor() + 1
		g := t.group(s.prefix[back-1], s.prefix[back])
		g.shapes = append(g.shapes, anchored{s, back})
	}
	for _, pair := range placePairs() {
		t.group(pair[0], pair[1]).place = true
	}
	for _, h := range all {
		for _, text := range h.forms {
			g := t.group(text[len(text)-2], text[len(text)-1])
			g.held = append(g.held, needle{text, h.mark})
		}
	}
	return t
}

func (t *table) group(first, second byte) *group {
	k := uint16(first)<<8 | uint16(second)
	if t.index[k] == 0 {
		t.bits[k/64] |= 1 << (k % 64)
		t.index[k] = uint16(len(t.groups))
		t.groups = append(t.groups, group{})
	}
	return &t.groups[t.index[k]]
}

// next returns the first position from at on where a known pair of bytes ends; len(s)
// if there is none. At is 1 or more.
func (t *table) next(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	k := uint16(s[at-1])
	for ; at < len(s); at++ {
		k = k<<8 | uint16(s[at])
		if t.bits[k>>6]>>(k&63)&1 != 0 {
			break
		}
	}
	return at
}

// longLine is the fewest bytes of a line of a secret of several that is masked
// where it is alone.
const longLine = 20

// formsOf are the ways in which programs write a value: plain, in base64 of both
// alphabets wherever it begins in what is encoded, in hexadecimal, in addresses,
// in JSON.
func formsOf(value string) []string {
	values := []string{value}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= longLine && line != value && !strings.HasPrefix(line, "-----") {
			values = append(values, line)
		}
	}
	var out []string
	for _, v := range values {
		out = append(out, v, fmt.Sprintf("%x", v), fmt.Sprintf("%X", v), strings.ReplaceAll(v, "/", `\/`))
		if len(v) >= longLine {
			out = append(out, strings.ToLower(v)) // as names of hosts are written
		}
		out = append(out, escaped(v)...)
		out = append(out, quoted(v)...)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				text := encoding.EncodeToString(append(make([]byte, before), v...))
				// Only letters that the value alone decides: six bits each.
				out = append(out, text[(before*8+5)/6:(before+len(v))*8/6])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// escaped are the percent-encodings: of what must be, once and twice, and of all;
// with the digits in capitals and in small letters.
func escaped(v string) []string {
	query, path := url.QueryEscape(v), url.PathEscape(v)
	var all strings.Builder
	for _, c := range []byte(v) {
		fmt.Fprintf(&all, "%%%02X", c)
	}
	out := []string{query, path, all.String(), url.QueryEscape(query), url.QueryEscape(path)}
	for _, text := range slices.Clone(out) {
		out = append(out, smallDigits(text))
	}
	return out
}

// smallDigits puts the digits of percent escapes, also of escaped ones, in small
// letters.
func smallDigits(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] != '%' {
			continue
		}
		k := i + 1
		for k+2 < len(out) && out[k] == '2' && out[k+1] == '5' {
			k += 2
		}
		copy(out[k:k+2], bytes.ToLower(out[k:k+2]))
	}
	return string(out)
}

// quoted are the ways to write a value in JSON.
func quoted(v string) []string {
	var out []string
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(v) != nil {
			continue
		}
		text := strings.TrimSuffix(b.String(), "\n")
		text = text[1 : len(text)-1]
		out = append(out, text, strings.ReplaceAll(text, "/", `\/`))
	}
	return out
}
