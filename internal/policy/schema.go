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
		s := shape(k)
		text, _, _ := strings.Cut(k.doc, "\n\n") // tables are for the document
		s["description"] = strings.ReplaceAll(text, "`", "")
		properties[name] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// shape is the schema of one key's value.
func shape(k key) map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	switch k.kind {
	case section:
		return object(k.name)
	case version:
		return map[string]any{"const": 1}
	case word:
		return map[string]any{"enum": k.words}
	case source:
		return text
	case vars:
		return map[string]any{
			"type":                 "object",
			"propertyNames":        map[string]any{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
			"additionalProperties": map[string]any{"type": []string{"string", "number", "boolean"}},
		}
	case size:
		return orNone(map[string]any{"type": "string", "pattern": "^[1-9][0-9]* ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"})
	case count:
		return orNone(map[string]any{"type": "integer", "minimum": 1})
	case cores:
		return orNone(map[string]any{"type": "number", "exclusiveMinimum": 0})
	case patience:
		return map[string]any{"type": "string", "pattern": spanPattern}
	case span:
		return orNone(map[string]any{"type": "string", "pattern": spanPattern})
	}
	return listShape(k, text)
}

// listShape is the schema of a key that is a list.
func listShape(k key, text map[string]any) map[string]any {
	switch k.kind {
	case losses:
		return list(map[string]any{"enum": Losses})
	case hosts:
		return list(map[string]any{"oneOf": []any{text, destinationShape()}})
	case services:
		return list(portShape())
	case secrets:
		return list(credentialShape())
	case toolRules:
		return list(toolShape())
	case consents:
		return list(consentShape(k.name))
	case notifiers:
		return list(notifierShape())
	case sinks:
		return list(sinkShape())
	case anchors:
		return list(map[string]any{"type": "string", "pattern": "^(file:[^?]+|syslog:?|https?://.+)$"})
	case ports:
		return list(map[string]any{"oneOf": []any{
			portShape(),
			map[string]any{"type": "string", "pattern": "^[1-9][0-9]{0,4}(:[1-9][0-9]{0,4})?$"},
		}})
	case names:
		return list(map[string]any{"type": "string", "pattern": `^[A-Za-z_][A-Za-z0-9_]*\*?$`})
	}
	return list(text)
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
