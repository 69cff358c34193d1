package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Limits for edited files: settings are written by people.
const (
	maxSettings = 4 << 20 // bytes
	maxNested   = 10_000  // objects and lists: the parser recurses once for each level
)

// document is a settings file: JSON with comments and trailing commas. An edit
// leaves everything else unchanged, byte for byte.
type document struct {
	root    hujson.Value
	ownMark []byte // byte order mark before the text; nil for none
	unit    string // of indentation
	line    string // line ending
}

func parseSettings(data []byte) (*document, error) {
	if len(data) > maxSettings {
		return nil, fmt.Errorf("it is longer than %d MiB", maxSettings>>20)
	}
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > maxNested {
		return nil, fmt.Errorf("it has more than %d objects and lists", maxNested)
	}
	text := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := &document{ownMark: data[:len(data)-len(text)], unit: "  ", line: "\n"}
	var err error
	if d.root, err = hujson.Parse(append(bytes.Clone(text), '\n')); err != nil { // a comment on the last line needs an end
		return nil, syntaxError(err)
	}
	if bytes.Contains(data, []byte("\r\n")) {
		d.line = "\r\n"
	}
	if size(&d.root) > 0 {
		if lead, own := ownLine(*gap(&d.root, 0)); own && lead != "" {
			d.unit = lead
		}
	}
	return d, nil
}

// syntaxError is a parser error without the text of a value, which may be secret.
func syntaxError(err error) error {
	place, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), ": ")
	why := errors.Unwrap(err).Error()
	if strings.HasPrefix(why, "invalid literal") {
		why = "a value is not JSON"
	}
	return fmt.Errorf("%s: %s", place, why)
}

// bytes returns the text.
func (d *document) bytes() []byte {
	text := d.root.Pack()
	return slices.Concat(d.ownMark, text[:len(text)-1])
}

// find returns the value of a key in an object, nil for none. A duplicate key is
// an error, because parsers disagree on which one counts.
func find(v *hujson.Value, key string) (*hujson.Value, error) {
	i, err := index(v, key)
	if err != nil || i < 0 {
		return nil, err
	}
	return member(v, i), nil
}

// index is like find, but returns the index of the key; -1 for none.
func index(v *hujson.Value, key string) (int, error) {
	if v == nil {
		return -1, nil
	}
	object, is := v.Value.(*hujson.Object)
	if !is {
		return -1, nil
	}
	same := func(m hujson.ObjectMember) bool {
		name, is := m.Name.Value.(hujson.Literal)
		return is && name.String() == key
	}
	i := slices.IndexFunc(object.Members, same)
	if i >= 0 && slices.ContainsFunc(object.Members[i+1:], same) {
		return -1, fmt.Errorf("the key %q is there twice", key)
	}
	return i, nil
}

// word returns the string at a key; "" for none.
func word(v *hujson.Value, key string) string {
	found, err := find(v, key)
	if err != nil || found == nil || found.Value.Kind() != '"' {
		return ""
	}
	return found.Value.(hujson.Literal).String()
}

// size returns the number of members of an object or a list; 0 for any other
// value.
func size(v *hujson.Value) int {
	switch c := v.Value.(type) {
	case *hujson.Object:
		return len(c.Members)
	case *hujson.Array:
		return len(c.Elements)
	}
	return 0
}

// member returns the i-th value of an object or a list.
func member(v *hujson.Value, i int) *hujson.Value {
	if object, is := v.Value.(*hujson.Object); is {
		return &object.Members[i].Value
	}
	return &v.Value.(*hujson.Array).Elements[i]
}

// gap returns the white space and comments before the i-th member of an object or
// a list, or before its end, after the comma.
func gap(v *hujson.Value, i int) *hujson.Extra {
	switch c := v.Value.(type) {
	case *hujson.Object:
		if i < len(c.Members) {
			return &c.Members[i].Name.BeforeExtra
		}
		return &c.AfterExtra
	case *hujson.Array:
		if i < len(c.Elements) {
			return &c.Elements[i].BeforeExtra
		}
		return &c.AfterExtra
	}
	return new(hujson.Extra)
}

// ownLine returns the indentation after a gap, and whether what follows begins a
// line.
func ownLine(before hujson.Extra) (string, bool) {
	i := bytes.LastIndexByte(before, '\n')
	lead := string(before[i+1:])
	return lead, i >= 0 && strings.Trim(lead, " \t") == ""
}

// hasComments reports whether v has comments beside its only member: people comment
// out hooks that way.
func hasComments(v *hujson.Value) bool {
	return bytes.ContainsRune(slices.Concat(*gap(v, 0), member(v, 0).AfterExtra, *gap(v, 1)), '/')
}

// appendValue appends a value to v, under a key if v is an object.
func (d *document) appendValue(v *hujson.Value, depth int, key string, content any) error {
	n := size(v)
	lead := strings.Repeat(d.unit, depth+1)
	var comma hujson.Extra // not nil for a trailing comma
	if n > 0 {
		if own, alone := ownLine(*gap(v, n-1)); alone {
			lead = own
		}
		if member(v, n-1).AfterExtra != nil {
			comma = hujson.Extra{}
		}
	} else if end := gap(v, 0); len(bytes.TrimSpace(*end)) == 0 {
		*end = hujson.Extra(d.line + strings.Repeat(d.unit, depth))
	}
	added, err := d.render(content, lead)
	if err != nil {
		return err
	}
	before := hujson.Extra(d.line + lead)
	added.AfterExtra = comma
	switch c := v.Value.(type) {
	case *hujson.Object:
		added.BeforeExtra = hujson.Extra(" ")
		c.Members = append(c.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(key)}, Value: added})
	case *hujson.Array:
		added.BeforeExtra = before
		c.Elements = append(c.Elements, added)
	}
	return nil
}

// render makes a value for a line with the indentation lead.
func (d *document) render(content any, lead string) (hujson.Value, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(lead, d.unit)
	if err := e.Encode(content); err != nil {
		return hujson.Value{}, err
	}
	return hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(d.line)))
}

// drop removes the i-th member of v, with its comma and its line.
func drop(v *hujson.Value, i int) {
	before, after := *gap(v, i), gap(v, i+1)
	if lead, alone := ownLine(before); alone {
		rest := bytes.TrimSuffix(before[:len(before)-len(lead)-1], []byte("\r"))
		// The newline may end a comment: it is kept, unless another one follows.
		if hujson.Extra(rest).IsValid() || bytes.HasPrefix(bytes.TrimLeft(*after, " \t\r"), []byte("\n")) {
			before = rest
		}
	}
	if last := i == size(v)-1; last && i > 0 {
		previous := member(v, i-1)
		if member(v, i).AfterExtra == nil { // no trailing comma: remove the one before too
			before, previous.AfterExtra = slices.Concat(previous.AfterExtra, before), nil
		} else if previous.AfterExtra == nil {
			previous.AfterExtra = hujson.Extra{}
		}
	}
	*after = slices.Concat(before, *after)
	switch c := v.Value.(type) {
	case *hujson.Object:
		c.Members = slices.Delete(c.Members, i, i+1)
	case *hujson.Array:
		c.Elements = slices.Delete(c.Elements, i, i+1)
	}
	if end := gap(v, 0); size(v) == 0 && len(bytes.TrimSpace(*end)) == 0 {
		*end = nil
	}
}
