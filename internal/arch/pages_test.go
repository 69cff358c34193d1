package arch

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// pageWords is how many words the pages for users may have in total. Tables that the
// program has belong into `holdfast reference`, and not between these pages.
const pageWords = 25_000

// forContributors is the one directory of docs/ that does not count.
const forContributors = "docs/decisions"

// pages checks that the pages for users stay short together, and that what all pages
// link to exists.
func pages(t *tree, most int) []string {
	var bad []string
	words := 0
	for _, name := range slices.Sorted(maps.Keys(t.texts)) {
		if path.Ext(name) != ".md" {
			continue
		}
		if name == "README.md" || under(name, "docs") && !under(name, forContributors) {
			words += len(strings.Fields(string(t.texts[name])))
		}
		bad = append(bad, deadLinks(t, name)...)
	}
	if words > most {
		bad = append(bad, fmt.Sprintf("README.md and docs have %d words, %d are the most: shorten a page", words, most))
	}
	return bad
}

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
)

// deadLinks are the links of a page to files or headings of the module that do not exist.
func deadLinks(t *tree, name string) []string {
	var bad []string
	for i, line := range proseLines(string(t.texts[name])) {
		for _, m := range pageLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			switch text, isFile := t.texts[target]; {
			case !isFile && !t.isDir(target):
				bad = append(bad, fmt.Sprintf("%s:%d: there is no %s", name, i+1, target))
			case anchor != "" && !slices.Contains(anchors(string(text)), anchor):
				bad = append(bad, fmt.Sprintf("%s:%d: %s has no heading #%s", name, i+1, target, anchor))
			}
		}
	}
	return bad
}

func (t *tree) isDir(name string) bool {
	for p := range t.texts {
		if under(p, name) {
			return true
		}
	}
	return false
}

// proseLines are the lines of a page, with those of code blocks empty.
func proseLines(text string) []string {
	lines := strings.Split(text, "\n")
	code := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if fence || code {
			lines[i] = ""
		}
		code = code != fence
	}
	return lines
}

// anchors are the names by which the headings of a page are linked to.
func anchors(text string) []string {
	var all []string
	for _, line := range proseLines(text) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, title))
	}
	return all
}
