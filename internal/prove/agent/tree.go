package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// expander holds the values of {names}.
type expander map[string]string

// text replaces {name} in one pass: inserted values are not expanded again. An
// unknown name is an error; braces around anything that is no name are kept.
func (x expander) text(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
			b.WriteByte('{')
			s = rest
			continue
		}
		value, known := x[name]
		if !known {
			return "", fmt.Errorf("unknown name {%s}", name)
		}
		b.WriteString(value)
		s = after
	}
}

// literal is a string of a tree that is not a template.
type literal string

func literals(words []string) []any {
	list := make([]any, 0, len(words))
	for _, w := range words {
		list = append(list, literal(w))
	}
	return list
}

// mergeTrees lays b over a: maps key by key, anything else is replaced. Neither is
// changed.
func mergeTrees(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range b {
		under, ok1 := out[k].(map[string]any)
		over, ok2 := v.(map[string]any)
		if ok1 && ok2 {
			v = mergeTrees(under, over)
		}
		out[k] = v
	}
	return out
}

// fill expands the strings of a tree. In a list, a map with the single key
// "secrets" is replaced by one copy of its value for each secret, with {secret}
// set to its name.
func (x expander) fill(v any, secrets []string) (any, error) {
	switch v := v.(type) {
	case literal:
		return string(v), nil
	case string:
		return x.text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			e, err := x.fill(e, secrets)
			if err != nil {
				return nil, err
			}
			if k, err = x.text(k); err != nil {
				return nil, err
			}
			out[k] = e
		}
		return out, nil
	case []any:
		return x.fillList(v, secrets)
	case bool, int, nil:
		return v, nil
	}
	return nil, fmt.Errorf("values of type %T are not allowed here", v)
}

func (x expander) fillList(v []any, secrets []string) (any, error) {
	out := make([]any, 0, len(v))
	for _, e := range v {
		if m, ok := e.(map[string]any); ok && len(m) == 1 && m["secrets"] != nil {
			for _, name := range secrets {
				y := maps.Clone(x)
				y["secret"] = name
				e, err := y.fill(m["secrets"], nil)
				if err != nil {
					return nil, err
				}
				out = append(out, e)
			}
			continue
		}
		e, err := x.fill(e, secrets)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// encode writes the file's content.
func (f File) encode(tree map[string]any, x expander, secrets []string) ([]byte, error) {
	if f.Format == "text" {
		s, err := x.text(f.Text)
		return []byte(s), err
	}
	v, err := x.fill(tree, secrets)
	if err != nil {
		return nil, err
	}
	if f.Format == "toml" {
		var b bytes.Buffer
		err := writeTOML(&b, nil, v.(map[string]any))
		return b.Bytes(), err
	}
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}

// writeTOML writes a table: first its values, then its subtables. Strings and
// keys are written as JSON, which is a basic string of TOML 1.0 with two
// exceptions: DEL, which is refused, and escapes that only JSON has, which Go's
// encoder does not write.
func writeTOML(b *bytes.Buffer, at []string, table map[string]any) error {
	keys := slices.Sorted(maps.Keys(table))
	if len(at) > 0 {
		fmt.Fprintf(b, "\n[%s]\n", strings.Join(at, "."))
	}
	for _, k := range keys {
		if _, ok := table[k].(map[string]any); ok {
			continue
		}
		value, err := inlineTOML(table[k])
		if err != nil {
			return fmt.Errorf("key %s: %w", k, err)
		}
		key, err := inlineTOML(k)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s = %s\n", key, value)
	}
	for _, k := range keys {
		sub, ok := table[k].(map[string]any)
		if !ok {
			continue
		}
		key, err := inlineTOML(k)
		if err != nil {
			return err
		}
		if err := writeTOML(b, append(slices.Clone(at), key), sub); err != nil {
			return err
		}
	}
	return nil
}

func inlineTOML(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0x7f) {
			return "", errors.New("a control character cannot be written")
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return strings.TrimSuffix(b.String(), "\n"), err
	case bool, int:
		return fmt.Sprint(v), nil
	case []any:
		var parts []string
		for _, e := range v {
			s, err := inlineTOML(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, s)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "", fmt.Errorf("values of type %T cannot be written", v)
}

// platform replaces what depends on the processor: {arch} is npm's name for it,
// {cpu} that of compilers.
func platform(s string) string {
	arch, cpu := "x64", "x86_64"
	if runtime.GOARCH == "arm64" {
		arch, cpu = "arm64", "aarch64"
	}
	return strings.NewReplacer("{arch}", arch, "{cpu}", cpu).Replace(s)
}
