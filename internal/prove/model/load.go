package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a script file, far above what a person writes.
const (
	maxFile  = 4 << 20 // bytes
	maxName  = 64      // characters of a name
	maxSteps = 1000
	maxNest  = 32 // levels of arguments
)

// LoadError is a fault in a script file, with its position.
type LoadError struct {
	File string
	Line int // 0 for the file as a whole
	Msg  string
}

func (e *LoadError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Hint is the next thing to do.
func (e *LoadError) Hint() string {
	return "correct the file; docs/formats/model-script.md describes its format"
}

// Load reads the scripts of a file; name is its name in messages. Anything that
// it does not understand is a *LoadError.
func Load(data []byte, name string) ([]Script, error) {
	l := loader{file: name}
	if len(data) > maxFile {
		return nil, l.fail(nil, "it is too long; a file of scripts may have %d bytes", maxFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, l.syntax(err)
	}
	if len(doc.Content) == 0 {
		return nil, l.fail(nil, "it has no script")
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, l.fail(list, "a file of scripts is a list; a script begins with '- name:'")
	}
	var all []Script
	for _, n := range list.Content {
		s, err := l.script(n)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o Script) bool { return o.Name == s.Name }) {
			return nil, l.fail(n, "there are two scripts called %s", s.Name)
		}
		all = append(all, s)
	}
	if err := l.children(list, all); err != nil {
		return nil, err
	}
	return all, nil
}

// children refuses a sub-agent whose script is not in the file.
func (l loader) children(list *yaml.Node, all []Script) error {
	for i, s := range all {
		for _, step := range s.Steps {
			if step.Op == Spawn && !slices.ContainsFunc(all, func(o Script) bool { return o.Name == step.Script }) {
				return l.fail(list.Content[i], "%s spawns %q, which is not a script of this file", s.Name, step.Script)
			}
		}
	}
	return nil
}

// loader reads one file.
type loader struct {
	file string
}

func (l loader) fail(at *yaml.Node, format string, args ...any) error {
	e := &LoadError{File: l.file, Msg: fmt.Sprintf(format, args...)}
	if at != nil {
		e.Line = at.Line
	}
	return e
}

// syntax gives an error of the YAML parser the form of all others.
func (l loader) syntax(err error) error {
	e := &LoadError{File: l.file, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	if n, _ := fmt.Sscanf(e.Msg, "line %d:", &e.Line); n == 1 {
		_, e.Msg, _ = strings.Cut(e.Msg, ": ")
	}
	return e
}

// reader reads the value of a key.
type reader func(*yaml.Node) error

// fields passes each value of a mapping to the reader of its key.
func (l loader) fields(n *yaml.Node, what string, table map[string]reader) error {
	if n.Kind != yaml.MappingNode {
		return l.fail(n, "%s is a mapping of names to values", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read, ok := table[k.Value]
		switch {
		case !ok:
			return l.fail(k, "%q is not a key of %s; its keys are: %s", k.Value, what, strings.Join(slices.Sorted(maps.Keys(table)), ", "))
		case seen[k.Value]:
			return l.fail(k, "%q stands twice", k.Value)
		}
		seen[k.Value] = true
		if err := read(v); err != nil {
			return err
		}
	}
	return nil
}

func (l loader) text(into *string) reader {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return l.fail(n, "expected a string here")
		}
		*into = n.Value
		return nil
	}
}

func (l loader) truth(into *bool) reader {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(into) != nil {
			return l.fail(n, "expected true or false here")
		}
		return nil
	}
}

// arguments reads a mapping that represents a JSON object.
func (l loader) arguments(into *map[string]any) reader {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return l.fail(n, "arguments are a mapping of names to values")
		}
		if err := l.plain(n, 0); err != nil {
			return err
		}
		if err := n.Decode(into); err != nil {
			return l.fail(n, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if _, err := json.Marshal(*into); err != nil {
			return l.fail(n, "the arguments are not JSON: %v", errors.Unwrap(err))
		}
		return nil
	}
}

// plain refuses what JSON cannot express.
func (l loader) plain(n *yaml.Node, depth int) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return l.fail(n, "aliases are not allowed")
	case depth > maxNest:
		return l.fail(n, "it is nested too deep")
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && (c.Kind != yaml.ScalarNode || c.Tag != "!!str") {
			return l.fail(c, "expected a name here")
		}
		if err := l.plain(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}
