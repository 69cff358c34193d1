//go:build linux

package replay

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// rule selects the part of a structured file that is executed.
type rule struct {
	at     string   // keys from the root, separated by slashes, * for any; "" for the root
	fields []string // keys below it whose strings are the command; none: the value itself
	where  string   // key=value that must be there; "" for none
	when   string
}

// settings reads a structured file by rules; parse turns it into values.
func settings(parse func([]byte) (any, error), rules ...rule) func(string, []byte) ([]Launch, error) {
	return func(_ string, content []byte) ([]Launch, error) {
		root, err := parse(content)
		if err != nil {
			return nil, err
		}
		var out []Launch
		for _, r := range rules {
			for _, v := range reach(root, r.at) {
				if command := r.command(v); command != "" {
					out = append(out, Launch{Command: command, When: r.when})
				}
			}
		}
		return out, nil
	}
}

func (r rule) command(v any) string {
	if key, want, asked := strings.Cut(r.where, "="); asked {
		found := reach(v, key)
		if len(found) != 1 || fmt.Sprint(found[0]) != want {
			return ""
		}
	}
	if len(r.fields) == 0 {
		return strings.Join(words(v), " ")
	}
	var all []string
	for _, f := range r.fields {
		for _, part := range reach(v, f) {
			all = append(all, words(part)...)
		}
	}
	return strings.Join(all, " ")
}

// reach finds the values at a path.
func reach(v any, at string) []any {
	if at == "" {
		return []any{v}
	}
	key, rest, _ := strings.Cut(at, "/")
	var next []any
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if key == "*" || key == k {
				next = append(next, v[k])
			}
		}
	case []any:
		if key == "*" {
			next = v
		}
	}
	var out []any
	for _, n := range next {
		out = append(out, reach(n, rest)...)
	}
	return out
}

// words are all strings of a value.
func words(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, words(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, words(v[k])...)
		}
		return out
	}
	return nil
}

func parseJSON(b []byte) (any, error) {
	var v any
	return v, json.Unmarshal(b, &v)
}

// parseJSONC reads JSON with comments and trailing commas, as VS Code and its
// family do.
func parseJSONC(b []byte) (any, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	var out []byte
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"':
			end := i + 1
			for end < len(b) && b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(b))
			out, i = append(out, b[i:end]...), end-1
		case bytes.HasPrefix(b[i:], []byte("//")):
			for i < len(b) && b[i] != '\n' {
				i++
			}
		case bytes.HasPrefix(b[i:], []byte("/*")):
			n := bytes.Index(b[i:], []byte("*/"))
			if n < 0 {
				return nil, errors.New("a comment is not closed")
			}
			i += n + 1
		case b[i] == '}' || b[i] == ']':
			out = append(bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(",")), b[i])
		default:
			out = append(out, b[i])
		}
	}
	return parseJSON(out)
}

// options reads the settings of JetBrains programs: elements named option, with a
// name and a value, in any element named at.
func options(at, when string, names ...string) func(string, []byte) ([]Launch, error) {
	return func(_ string, content []byte) ([]Launch, error) {
		d := xml.NewDecoder(bytes.NewReader(content))
		var out []Launch
		var stack []string
		for {
			t, err := d.Token()
			if errors.Is(err, io.EOF) {
				return out, nil
			}
			if err != nil {
				return nil, err
			}
			switch e := t.(type) {
			case xml.StartElement:
				stack = append(stack, e.Name.Local)
				if e.Name.Local == "option" && slices.Contains(stack, at) && slices.Contains(names, attribute(e, "name")) {
					out = append(out, Launch{Command: attribute(e, "value"), When: when})
				}
			case xml.EndElement:
				stack = stack[:max(len(stack)-1, 0)]
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
