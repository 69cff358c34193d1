package policy

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Schema is the JSON Schema (draft 2020-12) of a policy file, for editors. It
// is made of the table of keys; what a schema cannot say (secret variables,
// paths that may not be shown) only Holdfast itself checks.
func Schema() ([]byte, error) {
	top := object("")
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = "https://holdfast.dev/schema/policy-1.json"
	top["title"] = "Holdfast policy"
	top["required"] = []string{"version"}
	out, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	return append(out, '\n'), nil
}

// object is the schema of a section.
func object(parent string) map[string]any {
	properties := map[string]any{}
	for _, name := range children(parent) {
		full := name
		if parent != "" {
			full = parent + "." + name
		}
		k, _ := lookup(full)
		var s map[string]any
		if k.kind == nil {
			s = object(full)
		} else {
			s = k.kind.schema(k)
		}
		text, _, _ := strings.Cut(k.doc, "\n\n") // tables are for the document
		s["description"] = strings.ReplaceAll(text, "`", "")
		properties[name] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func list(item map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": item}
}

func orNone(s map[string]any) map[string]any {
	return map[string]any{"oneOf": []any{s, map[string]any{"const": none}}}
}

// some is a list that has at least one item, each once.
func some(item map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": item, "minItems": 1, "uniqueItems": true}
}

func oneOrSome(item map[string]any) map[string]any {
	return map[string]any{"oneOf": []any{item, some(item)}}
}

// closed is a mapping of the given keys and no others.
func closed(required []string, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "required": required, "additionalProperties": false, "properties": properties}
}
