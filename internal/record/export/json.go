package export

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/record/audit"
)

// object is a JSON object under construction. It is written with sorted keys,
// no spaces and the escapes of RFC 8785 (JCS), so that its bytes are its
// canonical form and anyone can compute their hash again.
type object struct{ fields []field }

// objects are the objects of one event, which the next event reuses.
type objects struct {
	all  []*object
	used int
}

// next returns an empty object.
func (o *objects) next() *object {
	if o.used == len(o.all) {
		o.all = append(o.all, &object{})
	}
	one := o.all[o.used]
	o.used++
	one.fields = one.fields[:0]
	return one
}

// field has a text, a number, or a value of another type.
type field struct {
	key, text string
	number    int64
	numeric   bool
	value     any // a bool, *object, []*object or []string; nil for a text or number
}

func (o *object) add(f field) *object {
	o.fields = append(o.fields, f)
	return o
}

func (o *object) set(key string, value any) *object { return o.add(field{key: key, value: value}) }

// text sets a text, which may be empty.
func (o *object) text(key, value string) *object { return o.add(field{key: key, text: value}) }

// str sets a text; an empty one is left out.
func (o *object) str(key, value string) *object {
	if value == "" {
		return o
	}
	return o.text(key, value)
}

func (o *object) num(key string, value int64) *object {
	return o.add(field{key: key, number: value, numeric: true})
}

// obj sets an object; an empty one is left out.
func (o *object) obj(key string, value *object) *object {
	if value == nil || len(value.fields) == 0 {
		return o
	}
	return o.set(key, value)
}

func (o *object) list(key string, values ...*object) { o.set(key, values) }

// append writes o.
func (o *object) append(b []byte) []byte {
	slices.SortFunc(o.fields, func(x, y field) int { return compareKeys(x.key, y.key) })
	b = append(b, '{')
	for i, f := range o.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, f.key), ':')
		switch {
		case f.numeric:
			b = strconv.AppendInt(b, f.number, 10)
		case f.value == nil:
			b = appendString(b, f.text)
		default:
			b = appendValue(b, f.value)
		}
	}
	return append(b, '}')
}

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case *object:
		return v.append(b)
	case []*object:
		return appendList(b, v)
	case []string:
		return appendList(b, v)
	}
	return appendString(b, value.(string))
}

func appendList[T any](b []byte, values []T) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
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

// appendString writes a JSON string with the escapes of RFC 8785, 3.2.2.2.
func appendString(b []byte, s string) []byte {
	b, _ = audit.AppendString(b, s)
	return b
}

// safeKey makes a key printable; two different keys stay different.
func safeKey(key string) string {
	if utf8.ValidString(key) && !strings.HasPrefix(key, `"`) {
		return key
	}
	return strconv.QuoteToASCII(key)
}

// rawBytes is the bytes of a string that is not UTF-8, as base64; "" for others.
func rawBytes(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}
