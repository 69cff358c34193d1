//go:build linux

package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/prove/replay"
)

// step is a verb of a row: its name, or its name with arguments. A single argument
// that is not a list may be written alone.
type step struct {
	Name string
	Args []*yaml.Node
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (s *step) UnmarshalYAML(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode:
		s.Name = n.Value
	case n.Kind == yaml.MappingNode && len(n.Content) == 2:
		s.Name = n.Content[0].Value
		s.Args = []*yaml.Node{n.Content[1]}
		if list := followed(n.Content[1]); list.Kind == yaml.SequenceNode {
			s.Args = list.Content
		}
	default:
		return fmt.Errorf("line %d: a step is a name, or a name with arguments", n.Line)
	}
	if _, ok := verbs()[s.Name]; !ok {
		return fmt.Errorf("line %d: no step is called %q", n.Line, s.Name)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (s step) MarshalJSON() ([]byte, error) {
	if len(s.Args) == 0 {
		return json.Marshal(s.Name)
	}
	args := make([]any, len(s.Args))
	for i, a := range s.Args {
		if err := a.Decode(&args[i]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(map[string]any{s.Name: args})
}

func followed(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// bind stores in to, a pointer to a function, what the step does: its verb, or
// what its verb makes of the arguments.
func (s step) bind(to any) error {
	want := reflect.ValueOf(to).Elem()
	f := reflect.ValueOf(verbs()[s.Name].does)
	if f.Type() == want.Type() && len(s.Args) == 0 {
		want.Set(f)
		return nil
	}
	if f.Type().NumOut() != 1 || f.Type().Out(0) != want.Type() {
		return fmt.Errorf("%s: it is not a %s, or takes no arguments", s.Name, want.Type())
	}
	args, err := s.arguments(f.Type())
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	want.Set(f.Call(args)[0])
	return nil
}

// arguments decodes the arguments of the step as parameters of a function.
func (s step) arguments(f reflect.Type) ([]reflect.Value, error) {
	n := f.NumIn()
	if f.IsVariadic() {
		n = len(s.Args)
	}
	if len(s.Args) != n || n < f.NumIn()-1 {
		return nil, fmt.Errorf("%d arguments", len(s.Args))
	}
	var out []reflect.Value
	for i, a := range s.Args {
		t := f.In(min(i, f.NumIn()-1))
		if f.IsVariadic() && i >= f.NumIn()-1 {
			t = t.Elem()
		}
		v := reflect.New(t)
		if err := decode(a, v); err != nil {
			return nil, fmt.Errorf("line %d: %w", a.Line, err)
		}
		out = append(out, v.Elem())
	}
	return out, nil
}

// decode reads an argument: a step if a function is wanted; a program of package
// replay, or a list of its readers, by name; else data.
func decode(n *yaml.Node, to reflect.Value) error {
	n = followed(n)
	if to.Type().Elem().Kind() == reflect.Func {
		if n.Tag == "!!null" {
			return nil
		}
		var s step
		if err := s.UnmarshalYAML(n); err != nil {
			return err
		}
		return s.bind(to.Interface())
	}
	switch at := to.Interface().(type) {
	case *string:
		if n.Kind != yaml.ScalarNode {
			return errors.New("expected a string")
		}
		*at = n.Value
		return nil
	case *replay.Program:
		p, ok := replay.Programs()[n.Value]
		if *at = p; !ok {
			return fmt.Errorf("no program is called %q", n.Value)
		}
		return nil
	case *[]replay.Program:
		for _, c := range n.Content {
			p := replay.Program{}
			if err := decode(c, reflect.ValueOf(&p)); err != nil {
				return err
			}
			*at = append(*at, p)
		}
		return nil
	case *[]replay.Reader:
		r, ok := replay.Readers()[n.Value]
		if *at = r; !ok {
			return fmt.Errorf("no readers are called %q", n.Value)
		}
		return nil
	}
	return decodeStrict(n, to.Interface())
}

// decodeStrict decodes a node into a value that must have all of its fields.
func decodeStrict(n *yaml.Node, to any) error {
	b, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	return d.Decode(to)
}

// placeholder matches a part of a text that means the same in every world: a byte, a
// repeated text, the directory of the system's python modules, and the user.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{x[0-9a-f]{2}\}|\{repeat [0-9]+:(?s:.*?):\}|\{python\}|\{uid\}`)
})

// fill replaces the placeholders in all texts of v.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(placeholder().ReplaceAllStringFunc(v.String(), filledIn))
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(it.Key())
			value.Set(it.Value())
			fill(key)
			fill(value)
			v.SetMapIndex(it.Key(), reflect.Value{})
			v.SetMapIndex(key, value)
		}
	}
}

func filledIn(p string) string {
	body := strings.Trim(p, "{}")
	switch body {
	case "python":
		return pythonName()
	case "uid":
		return strconv.Itoa(os.Getuid())
	}
	if text, ok := strings.CutPrefix(p, "{repeat "); ok {
		count, text, _ := strings.Cut(strings.TrimSuffix(text, ":}"), ":")
		n, _ := strconv.Atoi(count)
		return strings.Repeat(text, n)
	}
	b, _ := strconv.ParseUint(body[1:], 16, 8)
	return string([]byte{byte(b)})
}

// argList is a list of KEY=VALUE, in the order of the file. A value that is a list
// has one item per line.
type argList []string

// UnmarshalYAML implements [yaml.Unmarshaler].
func (p *argList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: arguments must be a mapping of names to values", n.Line)
	}
	for i := 0; i < len(n.Content); i += 2 {
		value := followed(n.Content[i+1])
		text := value.Value
		if value.Kind != yaml.ScalarNode {
			var lines []string
			if err := value.Decode(&lines); err != nil {
				return err
			}
			text = strings.Join(lines, "\n")
		}
		*p = append(*p, n.Content[i].Value+"="+text)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (p argList) MarshalJSON() ([]byte, error) {
	all := map[string]string{}
	for _, kv := range p {
		k, v, _ := strings.Cut(kv, "=")
		all[k] = v
	}
	return json.Marshal(all)
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (c *Command) UnmarshalYAML(n *yaml.Node) error {
	var as struct {
		Action, Dir string
		Args        argList
		Options     Options
	}
	err := decodeStrict(n, &as)
	*c = Command{Action: as.Action, Args: as.Args, Dir: as.Dir, Options: as.Options}
	return err
}

// MarshalJSON implements [json.Marshaler].
func (c Command) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Action  string  `json:"action,omitempty"`
		Args    argList `json:"args,omitempty"`
		Dir     string  `json:"dir,omitempty"`
		Options Options `json:"options,omitzero"`
	}{c.Action, c.Args, c.Dir, c.Options})
}
