package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar decodes a key that has one value.
func (d *decoder) scalar(k key, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.fail(n, "for example "+last(k.name)+": "+k.example, "%s is %s; a single value is wanted", k.name, describe(n))
		return
	}
	switch k.kind {
	case version:
		if n.Value != "1" || n.ShortTag() != "!!int" {
			d.fail(n, "write version: 1", "version is %s; this program knows version 1", describe(n))
			return
		}
		d.versioned = true
	case source:
		if n.ShortTag() != "!!str" || n.Value == "" {
			d.fail(n, "", "extends is %s; a profile or a file is wanted", describe(n))
			return
		}
		d.file.Extends, d.file.ExtendsAt = n.Value, d.at(n)
	case word:
		if err := wordText(k, n.Value); err != nil {
			d.fail(n, "", "%s: %v", k.name, err)
			return
		}
		d.add(n, Entry{Key: k.name, Value: n.Value})
	default:
		amount, err := parseAmount(k.kind, n.Value)
		if err != nil {
			d.fail(n, "for example "+last(k.name)+": "+k.example, "%s: %v", k.name, err)
			return
		}
		d.add(n, Entry{Key: k.name, Value: n.Value, Amount: amount})
	}
}

// list decodes a key that has many values. An empty list is a statement of its
// own: it takes away what earlier sources listed.
func (d *decoder) list(k key, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		hint := "for example " + last(k.name) + ": " + k.example
		if n.ShortTag() == "!!null" {
			hint = "write [] for nothing"
		}
		d.fail(n, hint, "%s is %s; a list is wanted", k.name, describe(n))
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
		if d.element(k, item) {
			continue
		}
		tag := item.ShortTag()
		if item.Kind != yaml.ScalarNode || tag != "!!str" && !((k.kind == ports || k.kind == services) && tag == "!!int") {
			hint := ""
			if k.kind == anchors {
				hint = "write no space behind the colon: file:PATH"
			}
			d.fail(item, hint, "an entry of %s is %s; text is wanted", k.name, describe(item))
			continue
		}
		e, hint, err := parseItem(k, item.Value)
		if err != nil {
			d.fail(item, hint, "%s: %v", k.name, err)
			continue
		}
		d.add(item, e)
	}
}

// element decodes an element that is more than a text; false for one that is not.
func (d *decoder) element(k key, item *yaml.Node) bool {
	switch {
	case k.kind == hosts && item.Kind == yaml.MappingNode:
		d.host(k.name, item)
	case k.kind == secrets:
		d.credential(k.name, item)
	case k.kind == sinks:
		d.sink(k.name, item)
	case k.kind == toolRules:
		d.tool(k.name, item)
	case k.kind == gateRules:
		d.gate(k.name, item)
	case k.kind == notifiers:
		d.notifier(k.name, item)
	default:
		return false
	}
	return true
}

// vars decodes variables with their values. A value is the text as written:
// DEBUG: 1 and DEBUG: "1" are the same.
func (d *decoder) vars(k key, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "for example "+last(k.name)+": "+k.example, "%s is %s; a mapping of variables is wanted", k.name, describe(n))
		return
	}
	if len(n.Content) == 0 {
		d.add(n, Entry{Key: k.name, Clear: true})
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		variable, value := n.Content[i], n.Content[i+1]
		if !d.plain(variable) || !d.plain(value) {
			continue
		}
		if variable.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			d.fail(value, "write \"\" for an empty value", "%s in %s is %s; text is wanted", printable(variable.Value), k.name, describe(value))
			continue
		}
		if seen[variable.Value] {
			d.fail(variable, "", "the variable %q stands here again", printable(variable.Value))
			continue
		}
		seen[variable.Value] = true
		if err := setVariable(variable.Value, value.Value); err != nil {
			d.fail(variable, "", "%s: %v", k.name, err)
			continue
		}
		d.add(variable, Entry{Key: k.name, Value: variable.Value, Text: value.Value})
	}
}

// last is the part of a dotted name that stands in the file.
func last(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}
