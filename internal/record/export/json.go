package export

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// object is a JSON object in the making. It is written with its keys sorted, no
// spaces and the escapes of RFC 8785 (JCS), so that the bytes of an object are
// its canonical form and a hash of them can be computed again by anyone.
type object struct{ fields []field }

type kind uint8

const (
	text kind = iota
	number
	boolean
	nested
	list  // of objects
	texts // of strings
	gap   // nothing; the place is remembered
)

type field struct {
	key     string
	kind    kind
	text    string
	number  int64
	nested  *object
	objects []*object
	texts   []string
}

// arena lends objects for one event and takes all back for the next.
type arena struct {
	objects []*object
	used    int
}

func (a *arena) reset() { a.used = 0 }

func (a *arena) new() *object {
	if a.used == len(a.objects) {
		a.objects = append(a.objects, &object{})
	}
	o := a.objects[a.used]
	a.used++
	o.fields = o.fields[:0]
	return o
}

// str sets a text; an empty one is left out.
func (o *object) str(key, value string) *object {
	if value != "" {
		o.fields = append(o.fields, field{key: key, kind: text, text: value})
	}
	return o
}

func (o *object) num(key string, value int64) *object {
	o.fields = append(o.fields, field{key: key, kind: number, number: value})
	return o
}

func (o *object) yes(key string) *object {
	o.fields = append(o.fields, field{key: key, kind: boolean})
	return o
}

// obj sets an object; an empty one is left out.
func (o *object) obj(key string, value *object) *object {
	if value != nil && len(value.fields) > 0 {
		o.fields = append(o.fields, field{key: key, kind: nested, nested: value})
	}
	return o
}

func (o *object) list(key string, values ...*object) {
	o.fields = append(o.fields, field{key: key, kind: list, objects: values})
}

func (o *object) strs(key string, values ...string) *object {
	if len(values) > 0 {
		o.fields = append(o.fields, field{key: key, kind: texts, texts: values})
	}
	return o
}

// hole keeps a place for what is known only once the rest is written. It must
// not be the first of its object.
func (o *object) hole(key string) *object {
	o.fields = append(o.fields, field{key: key, kind: gap})
	return o
}

// append writes o; at is where its hole is, if it has one.
func (o *object) append(b []byte, at *int) []byte {
	slices.SortFunc(o.fields, func(x, y field) int { return compareKeys(x.key, y.key) })
	b = append(b, '{')
	first := true
	for i := range o.fields {
		f := &o.fields[i]
		if f.kind == gap {
			*at = len(b)
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, f.key), ':')
		b = f.append(b, at)
	}
	return append(b, '}')
}

func (f *field) append(b []byte, at *int) []byte {
	switch f.kind {
	case number:
		return strconv.AppendInt(b, f.number, 10)
	case boolean:
		return append(b, "true"...)
	case nested:
		return f.nested.append(b, at)
	case list:
		b = append(b, '[')
		for i, o := range f.objects {
			if i > 0 {
				b = append(b, ',')
			}
			b = o.append(b, at)
		}
		return append(b, ']')
	case texts:
		b = append(b, '[')
		for i, s := range f.texts {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, s)
		}
		return append(b, ']')
	}
	return appendString(b, f.text)
}

// compareKeys is the order of RFC 8785: by UTF-16 code units. It differs from
// that of the bytes only above U+FFFF.
func compareKeys(x, y string) int {
	for i := 0; i < len(x) && i < len(y); i++ {
		if x[i] >= utf8.RuneSelf || y[i] >= utf8.RuneSelf {
			return slices.Compare(utf16.Encode([]rune(x)), utf16.Encode([]rune(y)))
		}
		if x[i] != y[i] {
			return cmp.Compare(x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y))
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string with the escapes of RFC 8785, 3.2.2.2. A byte
// that is no UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i-1]...)
		start = i
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// safeKey is a key of ours that two different ones never share.
func safeKey(key string) string {
	if utf8.ValidString(key) && !strings.HasPrefix(key, `"`) {
		return key
	}
	return strconv.QuoteToASCII(key)
}

// exact is the bytes of a string that is no UTF-8, as base64; "" for others.
func exact(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}
