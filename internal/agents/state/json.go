//go:build linux

package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"unicode/utf8"
)

// parseJSON reads one object. Comment lines are ignored, as agents do in their
// own files.
func parseJSON(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(withoutComments(data)))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return nil, errors.New("it is not a JSON object") // its error could quote the content
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) || object == nil {
		return nil, errors.New("it is not one JSON object")
	}
	return object, nil
}

func withoutComments(data []byte) []byte {
	lines := bytes.Split(data, []byte("\n"))
	lines = slices.DeleteFunc(lines, func(line []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) })
	return bytes.Join(lines, []byte("\n"))
}

func writeJSON(object map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object)
	return b.Bytes(), err
}

// keepsText reports whether writing the object of a JSON file again keeps all its
// text: the decoder replaces invalid Unicode by U+FFFD.
func keepsText(file []byte, object map[string]any) bool {
	const replacement = "\ufffd"
	again, err := writeJSON(object)
	was := bytes.Count(file, []byte(replacement)) + bytes.Count(bytes.ToLower(file), []byte(`\ufffd`))
	return err == nil && utf8.Valid(file) && bytes.Count(again, []byte(replacement)) <= was
}

// overlay merges the values of over into base, object by object.
func overlay(base, over map[string]any) {
	for name, value := range over {
		inner, ok := value.(map[string]any)
		old, was := base[name].(map[string]any)
		if ok && was {
			overlay(old, inner)
			continue
		}
		base[name] = value
	}
}

// descend returns the object at the end of a path; nil if there is none.
func descend(object map[string]any, way []string) map[string]any {
	for _, part := range way {
		object, _ = object[part].(map[string]any)
	}
	return object
}

// remove deletes a value; "*" matches any key.
func remove(object map[string]any, way []string) {
	if len(way) == 1 {
		delete(object, way[0])
		return
	}
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok && (way[0] == "*" || way[0] == name) {
			remove(inner, way[1:])
		}
	}
}

// set sets the value at a path.
func set(object map[string]any, way []string, value any) {
	for _, part := range way[:len(way)-1] {
		inner, ok := object[part].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[part] = inner
		}
		object = inner
	}
	object[way[len(way)-1]] = value
}

// KeyChange is one changed value of a JSON file.
type KeyChange struct {
	Key     []string `json:"key"`
	Value   any      `json:"value,omitempty"`
	Removed bool     `json:"removed,omitempty"`
	Had     bool     `json:"had,omitempty"` // the agent was given a value
	Was     any      `json:"was,omitempty"` // that value; the host's may have more
}

// differences lists the values in which now differs from before. If there are
// notable paths, only values below or above those count, and an empty one where there
// was none does not: programs write down what they would assume. Values below a quiet
// path never count.
func differences(before, now map[string]any, notable, quiet [][]string) []KeyChange {
	var out []KeyChange
	compare(before, now, nil, &out)
	if len(notable) > 0 {
		out = slices.DeleteFunc(out, func(k KeyChange) bool {
			return !k.Had && isEmpty(k.Value) || !slices.ContainsFunc(notable, func(way []string) bool { return overlaps(way, k.Key) })
		})
	}
	out = slices.DeleteFunc(out, func(k KeyChange) bool {
		return slices.ContainsFunc(quiet, func(way []string) bool { return len(way) <= len(k.Key) && overlaps(way, k.Key) })
	})
	slices.SortFunc(out, func(a, b KeyChange) int { return slices.Compare(a.Key, b.Key) })
	return out
}

// isEmpty reports whether a value is one that programs take a missing one for.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func compare(before, now map[string]any, above []string, out *[]KeyChange) {
	for name, value := range now {
		way := append(slices.Clone(above), name)
		old, was := before[name]
		if was && reflect.DeepEqual(old, value) {
			continue
		}
		inner, isObject := value.(map[string]any)
		oldInner, wasObject := old.(map[string]any)
		if isObject && (wasObject || !was && len(inner) > 0) {
			compare(oldInner, inner, way, out)
			continue
		}
		*out = append(*out, KeyChange{Key: way, Value: value, Had: was, Was: old})
	}
	for name, old := range before {
		if inner, isObject := old.(map[string]any); isObject && !hasKey(now, name) {
			compare(inner, nil, append(slices.Clone(above), name), out) // each by itself: the host's may hold more than was copied
			continue
		}
		if _, is := now[name]; !is {
			*out = append(*out, KeyChange{Key: append(slices.Clone(above), name), Removed: true, Had: true, Was: old})
		}
	}
}

// overlaps reports whether the key is below the path, or above it.
func overlaps(way, key []string) bool {
	for i, part := range way[:min(len(way), len(key))] {
		if part != "*" && part != key[i] {
			return false
		}
	}
	return true
}

func hasKey(object map[string]any, name string) bool {
	_, is := object[name]
	return is
}
