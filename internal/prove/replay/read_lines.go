//go:build linux

package replay

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sections reads files of sections with KEY=VALUE lines: units, desktop entries,
// services of D-Bus. keys are SECTION.KEY; a * at the end matches any rest.
func sections(when string, keys ...string) func(string, []byte) ([]Launch, error) {
	return func(file string, content []byte) ([]Launch, error) {
		var out []Launch
		section := ""
		// A line continues after a backslash: systemd.syntax(7).
		text := strings.ReplaceAll(string(content), "\\\n", " ")
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch {
			case line == "" || line[0] == '#' || line[0] == ';':
				continue
			case line[0] == '[':
				section = strings.Trim(line, "[]")
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return nil, fmt.Errorf("%s has a line that is not an assignment", filepath.Base(file))
			}
			name := section + "." + strings.TrimSpace(key)
			if slices.ContainsFunc(keys, func(k string) bool { ok, _ := filepath.Match(k, name); return ok }) {
				out = append(out, Launch{Command: strings.TrimSpace(value), When: when})
			}
		}
		return out, nil
	}
}

// crontab reads a table of cron: crontab(5).
func crontab(_ string, content []byte) ([]Launch, error) {
	var out []Launch
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if name, value, ok := strings.Cut(line, "="); ok && len(strings.Fields(name)) == 1 && !strings.ContainsAny(name, "*/,@") {
			if strings.TrimSpace(name) == "SHELL" || strings.TrimSpace(name) == "PATH" {
				out = append(out, Launch{Command: value, When: "before each command of the table"})
			}
			continue
		}
		n := 5
		if fields[0][0] == '@' {
			n = 1
		}
		if len(fields) <= n {
			return nil, errors.New("a line has no command")
		}
		out = append(out, Launch{Command: strings.Join(fields[n:], " "), When: "at " + strings.Join(fields[:n], " ")})
	}
	return out, nil
}

// whole takes the whole file as a program.
func whole(when string) func(string, []byte) ([]Launch, error) {
	return func(_ string, content []byte) ([]Launch, error) {
		return []Launch{{Command: string(content), When: when}}, nil
	}
}

// assignments reads KEY=VALUE lines whose values decide what is executed.
func assignments(when string, keys ...string) func(string, []byte) ([]Launch, error) {
	return func(_ string, content []byte) ([]Launch, error) {
		var out []Launch
		for line := range strings.Lines(string(content)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if slices.Contains(keys, strings.TrimSpace(key)) {
				out = append(out, Launch{Command: value, When: when})
			}
		}
		return out, nil
	}
}

// parseTOML reads the part of TOML 1.0 that settings of agents are written in:
// tables, and strings and lists of strings as values. Anything else is an error.
func parseTOML(b []byte) (any, error) {
	root := map[string]any{}
	table := root
	lines := strings.Split(string(b), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			name, err := tableName(line)
			if err != nil {
				return nil, err
			}
			table = descend(root, name)
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d is not an assignment", i+1)
		}
		for strings.HasPrefix(strings.TrimSpace(value), "[") && !strings.Contains(value, "]") && i+1 < len(lines) {
			i++
			value += " " + strings.TrimSpace(lines[i])
		}
		v, err := tomlValue(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		path := strings.Split(strings.TrimSpace(key), ".")
		descend(table, path[:len(path)-1])[strings.Trim(path[len(path)-1], ` "`)] = v
	}
	return root, nil
}

func tableName(line string) ([]string, error) {
	name := strings.Trim(line, "[]")
	if strings.ContainsAny(name, `[]#"'`) {
		return nil, errors.New("a table has a name that is not plain")
	}
	return strings.Split(name, "."), nil
}

func descend(table map[string]any, path []string) map[string]any {
	for _, name := range path {
		name = strings.TrimSpace(name)
		next, ok := table[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			table[name] = next
		}
		table = next
	}
	return table
}

func tomlValue(s string) (any, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		var list []any
		for {
			inner = strings.TrimLeft(inner, " \t,")
			if strings.HasPrefix(inner, "]") {
				return list, nil
			}
			word, rest, err := tomlString(inner)
			if err != nil {
				return nil, err
			}
			list, inner = append(list, word), rest
		}
	}
	if strings.HasPrefix(s, `"`) || strings.HasPrefix(s, "'") {
		word, rest, err := tomlString(s)
		if rest = strings.TrimSpace(rest); err == nil && rest != "" && rest[0] != '#' {
			err = errors.New("something follows a string")
		}
		return word, err
	}
	if strings.ContainsAny(s, "{[\"'") {
		return nil, errors.New("a value is neither a string nor a list of strings")
	}
	return s, nil
}

func tomlString(s string) (word, rest string, err error) {
	switch {
	case strings.HasPrefix(s, `"""`) || strings.HasPrefix(s, "'''"):
		return "", "", errors.New("a string has several lines")
	case strings.HasPrefix(s, "'"):
		word, rest, ok := strings.Cut(s[1:], "'")
		if !ok {
			return "", "", errors.New("a string is not closed")
		}
		return word, rest, nil
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil || quoted[0] != '"' {
		return "", "", errors.New("a value is not a string")
	}
	word, err = strconv.Unquote(quoted)
	return word, s[len(quoted):], err
}

// yamlLines reads YAML of one level: a key and its value on a line, or a list
// below it. Anything else is an error.
func yamlLines(when string, keys ...string) func(string, []byte) ([]Launch, error) {
	return func(_ string, content []byte) ([]Launch, error) {
		var out []Launch
		key := ""
		for line := range strings.Lines(string(content)) {
			line = strings.TrimRight(line, " \t\r\n")
			trimmed := strings.TrimSpace(line)
			switch {
			case trimmed == "" || trimmed[0] == '#' || trimmed == "---":
				continue
			case strings.HasPrefix(trimmed, "- "):
				trimmed = key + ": " + trimmed[2:]
			case line != trimmed:
				return nil, errors.New("there is more than one level")
			}
			name, value, ok := strings.Cut(trimmed, ":")
			if !ok || strings.HasPrefix(strings.TrimSpace(value), "|") || strings.HasPrefix(strings.TrimSpace(value), ">") {
				return nil, errors.New("a line has no plain value")
			}
			if key = name; slices.Contains(keys, key) {
				out = append(out, Launch{Command: strings.Trim(strings.TrimSpace(value), `"'`), When: when})
			}
		}
		return out, nil
	}
}
