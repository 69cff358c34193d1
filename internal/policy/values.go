package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pathText checks what can be checked of a path before it is opened. A component .. is
// refused because what it leads to depends on the links before it.
func pathText(text string) error {
	text, _ = strings.CutSuffix(text, "?")
	switch {
	case text == "":
		return errors.New("an empty path")
	case strings.ContainsAny(text, "\x00\n\r"):
		return fmt.Errorf("the path \"%s\" contains a NUL or a line break", printable(text))
	case len(text) > 4095:
		return fmt.Errorf("a path of %d bytes; the kernel allows at most 4095", len(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("the path %q goes up with ..; write the absolute path that is meant", printable(text))
	case strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/"):
		return fmt.Errorf("the path %q names the home of another user; write it in full", printable(text))
	}
	return nil
}

// fileText checks the path of a file that is a source, or part of one.
func fileText(text string) (string, error) {
	if strings.HasSuffix(text, "?") {
		return "", fmt.Errorf("the path %q cannot be optional: remove the ?", printable(text))
	}
	return text, pathText(text)
}

// expand makes a path of a policy absolute. It has no .. (pathText), so
// joining cannot skip over a link.
func expand(text, base, home string) string {
	switch {
	case text == "~":
		return home
	case strings.HasPrefix(text, "~/"):
		return filepath.Join(home, text[2:])
	case filepath.IsAbs(text):
		return text
	}
	return filepath.Join(base, text)
}

// escapeGlob is path with nothing in it that a pattern would read as more than itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// variable checks a name as POSIX shells take it: a name with anything else in
// it cannot be set by a shell, but may be parsed by one.
func variable(name string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	if name == "" || len(name) > 256 || strings.Trim(name, letters+"0123456789") != "" || name[0] >= '0' && name[0] <= '9' {
		return fmt.Errorf("%q is not a variable name", printable(name))
	}
	return nil
}

// matchName returns the first pattern that name matches, or "".
func matchName(patterns []string, name string) string {
	upper := strings.ToUpper(name)
	for _, p := range patterns {
		if matchStars(p, upper) {
			return p
		}
	}
	return ""
}

// matchStars matches text against a pattern in which * matches any text.
func matchStars(pattern, text string) bool {
	first, rest, stars := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !stars {
		return ok && text == ""
	}
	for {
		part, more, stars := strings.Cut(rest, "*")
		if !stars {
			return strings.HasSuffix(text, part)
		}
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
		rest = more
	}
}

func toolText(text string) (string, error) {
	switch {
	case strings.TrimSpace(text) != text:
		return "", errors.New("it begins or ends with a space")
	case len(text) > maxToolText:
		return "", fmt.Errorf("it is longer than %d bytes", maxToolText)
	case strings.ContainsAny(text, "\n\r\x00"):
		return "", errors.New("it has a line break")
	}
	return text, nil
}

// maxToolText is how long a name, a pattern or a reason may be, in bytes.
const maxToolText = 500

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// wholeNumber reads decimal digits only: no sign, no leading zero, no
// underscore, so that a number means the same to every reader of the file.
func wholeNumber(text string) (int64, error) {
	if text == "" || text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

func parseSpan(text string) (int64, error) {
	if text == none {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration above 0 such as 30s, 15m or 4h, or none", printable(text))
	}
	return int64(d), nil
}

// spanShape is the schema of a duration.
func spanShape() map[string]any { return map[string]any{"type": "string", "pattern": spanPattern} }

const spanPattern = `^([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+$`

// textShape is the schema of a text.
func textShape() map[string]any { return map[string]any{"type": "string", "minLength": 1} }
