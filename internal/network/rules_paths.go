package network

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// pathLayers is how often a path is unescaped to see what a server behind a
// server would make of it.
const pathLayers = 3

// pathBytes is the longest path that is compared.
const pathBytes = 8 << 10

// checkPathPattern refuses patterns that promise more than matchPattern does.
func checkPathPattern(pattern string) error {
	body := strings.TrimSuffix(pattern, "/**")
	if strings.Contains(body, "**") {
		return fmt.Errorf("the path %q has ** other than as /** at its end", text.Cut(pattern, nameBytes))
	}
	if body == "" && pattern != "" {
		return nil
	}
	if err := checkPath(body); err != nil {
		return fmt.Errorf("path pattern %q: %w", text.Cut(pattern, nameBytes), err)
	}
	if strings.Contains(body, "%") {
		return fmt.Errorf("the path %q has an escape; paths are compared unescaped, so it would never match", text.Cut(pattern, nameBytes))
	}
	return nil
}

// pathAllowed says why none of the patterns allows a path; nil when one does.
// No patterns allow everything. An escaped slash, as in the names of npm's scoped
// packages, is a slash to some servers and a character like others to the rest:
// both readings must be harmless and allowed.
func pathAllowed(patterns []string, path string) error {
	if len(patterns) == 0 {
		return nil
	}
	readings := []string{path}
	if plain := escapedSlash.Replace(path); plain != path {
		if err := checkPath(strings.ReplaceAll(strings.ReplaceAll(path, "%2f", "_"), "%2F", "_")); err != nil {
			return err
		}
		readings = append(readings, plain)
	} else if err := checkPath(path); err != nil {
		return err
	}
	for i, reading := range readings {
		if i > 0 {
			if err := checkPath(reading); err != nil {
				return fmt.Errorf("%w, when an escaped slash is read as a slash", err)
			}
		}
		if !slices.ContainsFunc(patterns, func(p string) bool { return matchPattern(p, reading) }) {
			return fmt.Errorf("the path %s is not among %s", text.Cut(reading, nameBytes), strings.Join(patterns, ", "))
		}
	}
	return nil
}

var escapedSlash = strings.NewReplacer("%2f", "/", "%2F", "/")

// checkPath refuses a path that some server or proxy on the way could read as another
// one: RFC 3986 lets each server decide how it treats dot segments, escaped separators,
// empty segments and parameters. Paths with such parts below further layers of escapes
// are refused as well, because of servers that unescape twice.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("the path does not begin with /")
	}
	if len(path) > pathBytes {
		return fmt.Errorf("the path has %d bytes; at most %d are compared", len(path), pathBytes)
	}
	for i := range len(path) {
		if c := path[i]; c >= 0x80 || c == '?' || c == '#' {
			return fmt.Errorf("the path contains %s that is not escaped", policy.DescribeByte(c))
		}
	}
	layer := path
	for range pathLayers {
		if err := checkLayer(layer); err != nil {
			return err
		}
		plain, err := url.PathUnescape(layer)
		switch {
		case err != nil && layer == path:
			return fmt.Errorf("the path has a bad escape")
		case err != nil || plain == layer:
			return nil
		}
		for _, sign := range []string{"/", `\`, "."} {
			if strings.Count(plain, sign) != strings.Count(layer, sign) {
				return fmt.Errorf("the path has an escaped %s", sign)
			}
		}
		layer = plain
	}
	return fmt.Errorf("the path is escaped %d times over", pathLayers)
}

// checkLayer checks a path as it is, without unescaping it.
func checkLayer(path string) error {
	for i := range len(path) {
		if c := path[i]; c < 0x20 || c == 0x7f || c == '\\' || c == ';' {
			return fmt.Errorf("the path contains %s", policy.DescribeByte(c))
		}
	}
	if !utf8.ValidString(path) {
		return fmt.Errorf("the path is not UTF-8")
	}
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		switch {
		case segment == "" && i < len(segments)-1:
			return fmt.Errorf("the path has an empty segment")
		case segment != "" && strings.Trim(segment, ". ") == "":
			return fmt.Errorf("the path has a segment of dots")
		}
	}
	for _, as := range []func(rune) string{compatible, cutShort} {
		if dotsAmong(path, as) {
			return fmt.Errorf("the path has a segment that some servers read as dots")
		}
	}
	return nil
}

// lookalikes are characters that normalisation (Unicode's NFKC, and the best fit of
// Windows) makes one of those that decide where a path leads.
var lookalikes = map[rune]string{
	'\u2024': ".", '\ufe52': ".", '\u3002': ".", '\uff61': ".", '\u2025': "..", '\ufe30': "..", '\u2026': "...", '\ufe19': "...",
	'\u2044': "/", '\u2215': "/", '\u29f8': "/", '\ufe68': "/", '\u2216': "/", '\u29f5': "/",
	'\ufe54': ";", '\u037e': ";", '\ufe6a': "%",
}

// compatible is what a character is after normalisation. What has no width, blanks
// and the plus that is one in forms are nothing.
func compatible(r rune) string {
	if text, ok := lookalikes[r]; ok {
		return text
	}
	if '\uff01' <= r && r <= '\uff5e' { // ASCII in full width
		return string(r - 0xfee0)
	}
	if r == '+' || unicode.In(r, unicode.Cf, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return ""
	}
	return string(r)
}

// cutShort is the lowest byte of a character, which is what programs keep that take
// text for Latin 1.
func cutShort(r rune) string { return string(r & 0xff) }

// dotsAmong reports whether a path has a segment of dots when its characters are
// read in another way. Parameters of a segment do not count.
func dotsAmong(path string, as func(rune) string) bool {
	if strings.Trim(path, "/-_~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return false // the usual
	}
	var read strings.Builder
	for _, r := range path {
		read.WriteString(as(r))
	}
	text := read.String()
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	for segment := range strings.SplitSeq(strings.ReplaceAll(text, `\`, "/"), "/") {
		if segment, _, _ = strings.Cut(segment, ";"); segment != "" && strings.Trim(segment, ".") == "" {
			return true
		}
	}
	return false
}

// matchPattern reports whether a pattern of policy.HostRule.Paths covers a path:
// segment by segment, where * is any part of one, and /** at the end everything
// below. Letters are compared as they are.
func matchPattern(pattern, at string) bool {
	head, tree := strings.CutSuffix(pattern, "/**")
	if tree {
		segments := strings.Split(at, "/")
		n := strings.Count(head, "/") + 1
		if len(segments) <= n {
			return false
		}
		at = strings.Join(segments[:n], "/")
	}
	ok, _ := path.Match(starOnly.Replace(head), at)
	return ok
}

// starOnly escapes the special characters of path.Match other than the star.
var starOnly = strings.NewReplacer(`\`, `\\`, "?", `\?`, "[", `\[`)
