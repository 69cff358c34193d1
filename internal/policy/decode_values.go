package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// single reports whether a node is one value.
func (d *decoder) single(k key, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.fail(n, "for example "+last(k.name)+": "+k.example, "%s is %s; a single value is expected", k.name, describe(n))
		return false
	}
	return true
}

// scalar decodes a key that has one value.
func (d *decoder) scalar(k key, n *yaml.Node) {
	if !d.single(k, n) {
		return
	}
	e, example := Entry{Key: k.name, Value: n.Value}, ""
	var err error
	if k.kind.amount != nil {
		example = "for example " + last(k.name) + ": " + k.example
		e.Amount, err = k.kind.amount(n.Value)
	} else {
		e, example, err = k.kind.text(k, n.Value)
	}
	if err != nil {
		d.fail(n, example, "%s: %v", k.name, err)
		return
	}
	d.add(n, e)
}

// list decodes a key that has many values. An empty list is a statement of its own: it
// removes what earlier sources listed.
func (d *decoder) list(k key, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		hint := "for example " + last(k.name) + ": " + k.example
		if n.ShortTag() == "!!null" {
			hint = "write [] for nothing"
		}
		d.fail(n, hint, "%s is %s; a list is expected", k.name, describe(n))
		return
	}
	if len(n.Content) == 0 {
		d.add(n, Entry{Key: k.name, Clear: true})
		return
	}
	for _, item := range n.Content {
		if !d.plain(item) {
			continue
		}
		if k.kind.element != nil && k.kind.element(d, k.name, item) {
			continue
		}
		tag := item.ShortTag()
		if item.Kind != yaml.ScalarNode || tag != "!!str" && !(k.kind.number && tag == "!!int") {
			d.fail(item, k.kind.hint, "an entry of %s is %s; text is expected", k.name, describe(item))
			continue
		}
		e, hint, err := k.kind.text(k, item.Value)
		if err != nil {
			d.fail(item, hint, "%s: %v", k.name, err)
			continue
		}
		d.add(item, e)
	}
}

// checked is an entry that is just its text, with what is wrong with it.
func checked(k key, text string, err error) (Entry, string, error) {
	return Entry{Key: k.name, Value: text}, "", err
}

// words are the kind of a key that takes one of some words.
var words = kind{
	takes: "a word",
	text: func(k key, text string) (Entry, string, error) {
		return checked(k, text, oneOf("value", text, k.words))
	},
	schema: func(k key) map[string]any { return map[string]any{"enum": k.words} },
}

// oneOf refuses a text that is not one of the known ones.
func oneOf(what, text string, known []string) error {
	if slices.Contains(known, text) {
		return nil
	}
	if near := nearest(text, known); near != "" {
		return fmt.Errorf("unknown %s %q, did you mean %q?", what, printable(text), near)
	}
	return fmt.Errorf("unknown %s %q; known: %s", what, printable(text), strings.Join(known, ", "))
}

// choice is oneOf for a field.
func choice(what string, known ...string) func(string) (string, error) {
	return func(text string) (string, error) { return text, oneOf(what, text, known) }
}

// unchanged is a check for a field whose text is taken as it was written.
func unchanged(check func(string) error) func(string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

// anyText is the check of a field whose text is judged with the others.
func anyText(text string) (string, error) { return text, nil }

// last is the part of a dotted name that is in the file.
func last(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// field is one key of a mapping in a list.
type field struct {
	name string
	read func(n *yaml.Node)
}

// mapping decodes a mapping whose keys are fields, each at most once.
func (d *decoder) mapping(what string, n *yaml.Node, fields []field) {
	if !d.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n, "", "%s is %s; a mapping is expected", what, describe(n))
		return
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if !d.plain(name) || !d.plain(value) {
			continue
		}
		if line, twice := seen[name.Value]; twice {
			d.fail(name, "", "the key %q is repeated; it was first given on line %d", printable(name.Value), line)
			continue
		}
		seen[name.Value] = name.Line
		at := slices.Index(known, name.Value)
		if at < 0 || name.Kind != yaml.ScalarNode {
			d.unknownIn(what, name, known)
			continue
		}
		fields[at].read(value)
	}
}

// textField is a field whose value is one text, as check returns it.
func (d *decoder) textField(what, name string, into *string, check func(string) (string, error)) field {
	return field{name, func(n *yaml.Node) {
		d.text(what, name, n, func(text string) (err error) { *into, err = check(text); return err })
	}}
}

// textsField is a field whose value is a list of texts, as check returns them.
func (d *decoder) textsField(what, name string, into *[]string, check func(string) (string, error)) field {
	return d.someField(what, name, into, false, check)
}

// nameField is a textsField that takes a single text as well.
func (d *decoder) nameField(what, name string, into *[]string, check func(string) (string, error)) field {
	return d.someField(what, name, into, true, check)
}

func (d *decoder) someField(what, name string, into *[]string, one bool, check func(string) (string, error)) field {
	return field{name, func(n *yaml.Node) {
		d.texts(what, name, n, one, func(text string) error {
			text, err := check(text)
			*into = append(*into, text)
			return err
		})
	}}
}

// text decodes a value that is text, or a number or truth value whose text is
// taken as it is written.
func (d *decoder) text(what, name string, n *yaml.Node, set func(string) error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "" {
		d.fail(n, "", "%s of %s is %s; text is expected", name, what, describe(n))
		return
	}
	if err := set(n.Value); err != nil {
		d.fail(n, "", "%s of %s: %v", name, what, err)
	}
}

// texts decodes a list of texts. An empty one is refused: where a list left out
// means all, it could be read as all or as none. With one a single text is
// taken as well.
func (d *decoder) texts(what, name string, n *yaml.Node, one bool, set func(string) error) {
	if one && n.Kind == yaml.ScalarNode {
		d.text(what, name, n, set)
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "", "%s of %s is %s; a list is expected", name, what, describe(n))
		return
	}
	if len(n.Content) == 0 {
		d.fail(n, "leave it out, or name what is meant", "%s of %s is an empty list, which could be read as all or as nothing", name, what)
		return
	}
	seen := map[string]bool{}
	for _, item := range n.Content {
		if !d.plain(item) {
			continue
		}
		if item.Kind == yaml.ScalarNode && seen[item.Value] {
			d.fail(item, "", "%s of %s names %q twice", name, what, printable(item.Value))
			continue
		}
		seen[item.Value] = true
		d.text(what, name, item, set)
	}
}

// truth decodes true or false.
func (d *decoder) truth(what, name string, n *yaml.Node, into *bool) {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" || n.ShortTag() != "!!bool" {
		d.fail(n, "", "%s of %s is %s; true or false is expected", name, what, describe(n))
		return
	}
	*into = n.Value == "true"
}
