package policy

func portShape() map[string]any {
	return map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}
}

// destinationShape is the schema of a destination that is written as a mapping.
func destinationShape() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	truth := map[string]any{"type": "boolean"}
	return map[string]any{
		"type": "object", "required": []string{"host"}, "additionalProperties": false,
		"properties": map[string]any{
			"host":       text,
			"ports":      some(portShape()),
			"kind":       map[string]any{"enum": hostKinds},
			"methods":    some(map[string]any{"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$"}),
			"paths":      some(pathShape()),
			"credential": oneOrSome(credentialNameShape()),
			"internal":   truth,
			"inspect":    truth,
		},
	}
}

func pathShape() map[string]any {
	return map[string]any{"type": "string", "pattern": "^/[^%;?#\\\\ ]*$"}
}

func credentialNameShape() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"}
}

// some is a list that has at least one item, each once.
func some(item map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": item, "minItems": 1, "uniqueItems": true}
}

func oneOrSome(item map[string]any) map[string]any {
	return map[string]any{"oneOf": []any{item, some(item)}}
}

// credentialShape is the schema of a credential.
func credentialShape() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	variable := map[string]any{"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
	return closed([]string{"name", "source"}, map[string]any{
		"name":   credentialNameShape(),
		"source": sourceShape(),
		"hosts":  some(text),
		"paths":  some(pathShape()),
		"header": map[string]any{"type": "string", "pattern": `^[A-Za-z0-9-]+: [^{}]*\{\}[^{}]*$`},
		"env":    oneOrSome(variable),
		"always": map[string]any{"type": "boolean"},
		"sign":   map[string]any{"enum": []string{awsSigV4}},
		"shape":  map[string]any{"type": "string", "pattern": "^[A-Za-z0-9._-]{1,32}$"},
		"ttl":    map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+$`},
		"uses":   map[string]any{"type": "integer", "minimum": 1},
	})
}

func sourceShape() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	number := map[string]any{"type": []string{"string", "integer"}}
	argv := map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1}
	return map[string]any{"oneOf": []any{
		closed([]string{"env"}, map[string]any{"env": text}),
		closed([]string{"file"}, map[string]any{"file": text}),
		closed([]string{"command"}, map[string]any{"command": map[string]any{"oneOf": []any{text, argv}}}),
		closed([]string{"vault"}, map[string]any{"vault": closed([]string{"path"},
			map[string]any{"path": text, "field": text, "address": text, "token-file": text, "namespace": text})}),
		closed([]string{"github-app"}, map[string]any{"github-app": closed([]string{"app-id", "installation-id", "key-file", "repositories", "permissions"},
			map[string]any{"app-id": number, "installation-id": number, "key-file": text, "repositories": some(text), "api": text,
				"permissions": map[string]any{"type": "object", "minProperties": 1, "additionalProperties": map[string]any{"enum": appLevels}}})}),
	}}
}

// sinkShape is the schema of a place for alerts.
func sinkShape() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	truth := map[string]any{"type": "boolean"}
	address := map[string]any{"type": "string", "pattern": "^https?://.+$"}
	options := map[string]any{
		"headers": text, "secret": text, "authority": text, "insecure": truth,
		"timeout": map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+$`},
	}
	var forms []any
	for _, k := range sinkKinds {
		properties := map[string]any{"severity": map[string]any{"enum": severities}}
		for _, name := range k.takes {
			properties[name] = options[name]
		}
		switch k.name {
		case "terminal":
			properties[k.name] = map[string]any{"const": true}
		case "file":
			properties[k.name] = text
		case "syslog":
			properties[k.name] = map[string]any{"type": "string", "pattern": "^(local|(udp|tcp|tls|unix)://.+)$"}
		default:
			properties[k.name] = address
		}
		forms = append(forms, closed([]string{k.name}, properties))
	}
	return map[string]any{"oneOf": forms}
}

// closed is a mapping of the given keys and no others.
func closed(required []string, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "required": required, "additionalProperties": false, "properties": properties}
}
