package exposure

import "strings"

// gitSetting is one line of a git configuration.
type gitSetting struct {
	section string // as between the brackets, including the subsection
	key     string // lower case
	value   string
}

// gitSettings reads a git configuration (git-config(1), section "Syntax") as far
// as is necessary to find credentials: quotation marks inside values are kept,
// and includes are not followed.
func gitSettings(text string) []gitSetting {
	var out []gitSetting
	section := ""
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			end := strings.LastIndexByte(rest, ']')
			if end < 0 {
				continue
			}
			name, sub, _ := strings.Cut(rest[:end], " ")
			section = strings.ToLower(strings.TrimSpace(name))
			if sub = strings.Trim(strings.TrimSpace(sub), `"`); sub != "" {
				section += "." + sub
			}
			line = strings.TrimSpace(rest[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		out = append(out, gitSetting{section, strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`)})
	}
	return out
}
