package policy

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// field is one key of a mapping that stands in a list.
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
		d.fail(n, "", "%s is %s; a mapping is wanted", what, describe(n))
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
			d.fail(name, "", "the key %q stands here again; it was first given on line %d", printable(name.Value), line)
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
func (d *decoder) text(what, name string, n *yaml.Node, take func(string) error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "" {
		d.fail(n, "", "%s of %s is %s; text is wanted", name, what, describe(n))
		return
	}
	if err := take(n.Value); err != nil {
		d.fail(n, "", "%s of %s: %v", name, what, err)
	}
}

// texts decodes a list of texts. An empty one is refused: where a list left out
// means all, it could be read as all or as none. With one a single text is
// taken as well.
func (d *decoder) texts(what, name string, n *yaml.Node, one bool, take func(string) error) {
	if one && n.Kind == yaml.ScalarNode {
		d.text(what, name, n, take)
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "", "%s of %s is %s; a list is wanted", name, what, describe(n))
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
		d.text(what, name, item, take)
	}
}

// truth decodes true or false.
func (d *decoder) truth(what, name string, n *yaml.Node, into *bool) {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" || n.ShortTag() != "!!bool" {
		d.fail(n, "", "%s of %s is %s; true or false is wanted", name, what, describe(n))
		return
	}
	*into = n.Value == "true"
}
