//go:build linux

package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/text"
)

// memory is what runs of an agent hand on to each other through one JSON file: the
// answers to what it asks everybody once, where the user's own file has none. It is in
// Holdfast's state, and the user's file does not get it.
type memory struct {
	path   string
	gaps   [][]string     // keys of which the user's file has no value
	values map[string]any // of those, as the last run left them
	now    map[string]any // what this run left; nil while that is not known
}

// maxRemembered is the longest text that is handed on.
const maxRemembered = 100

// recall reads what earlier runs left for a row.
func (a *Agent) recall(c *copyRow) error {
	if len(c.Remember) == 0 || c.unreadable {
		return nil
	}
	rel, err := filepath.Rel(a.home, c.Path)
	if err != nil {
		return err
	}
	c.memory = &memory{path: filepath.Join(a.state, "remembered", a.plan.Preset, strings.ReplaceAll(rel, "/", "-")+".json"), values: map[string]any{}}
	host := map[string]any{}
	if len(c.files) > 0 {
		host = c.files[0].json
	}
	left, err := c.memory.read()
	if err != nil {
		return err
	}
	for _, way := range c.Remember {
		if _, has := lookUp(host, way); has {
			continue
		}
		c.memory.gaps = append(c.memory.gaps, way)
		if value, is := lookUp(left, way); is && plain(value) {
			set(c.memory.values, way, value)
		}
	}
	return nil
}

// read returns all that is remembered for the file, of every working directory.
func (m *memory) read() (map[string]any, error) {
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what earlier runs left: %w", err)
	}
	return parseJSON(data)
}

// notes reports whether a change is of a value that is handed on.
func (m *memory) notes(k KeyChange) bool {
	return m != nil && plain(k.Value) && slices.ContainsFunc(m.gaps, func(way []string) bool { return slices.Equal(way, k.Key) })
}

// keep writes down what this run left.
func (m *memory) keep() error {
	if m == nil || m.now == nil {
		return nil
	}
	all, err := m.read() // another run may have written to it
	if err != nil {
		all = map[string]any{}
	}
	before, err := json.Marshal(all)
	for _, way := range m.gaps {
		given, _ := lookUp(m.values, way)
		value, _ := lookUp(m.now, way)
		switch {
		case value == given || !plain(value), isEmpty(value) && given == nil: // another run may know better
		case isEmpty(value):
			remove(all, way)
		default:
			set(all, way, value)
		}
	}
	after, err2 := json.Marshal(all)
	if err = errors.Join(err, err2); err != nil || string(before) == string(after) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o700); err != nil {
		return fmt.Errorf("keeping answers for the next run: %w", err)
	}
	return workspace.ReplaceFile(m.path, append(after, '\n'), false)
}

// plain reports whether a value is a truth, a number, or a short line of text.
func plain(value any) bool {
	switch v := value.(type) {
	case nil, bool:
		return true
	case json.Number:
		return len(v) <= maxRemembered
	case string:
		return len(v) <= maxRemembered && text.Line(v) == v
	}
	return false
}

// lookUp returns the value at a path. What is no object on the way to it counts as one.
func lookUp(object map[string]any, way []string) (value any, is bool) {
	for _, part := range way[:len(way)-1] {
		inner, is := object[part]
		if !is {
			return nil, false
		}
		if object, is = inner.(map[string]any); !is {
			return inner, true
		}
	}
	value, is = object[way[len(way)-1]]
	return value, is
}
