//go:build linux

package state

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/policy"
)

// reference is where settings refer to a secret.
type reference struct {
	redact.Reference
	key string // of the value, its parts with dots between
}

// mask returns the text of the host's file at path without its secrets.
func (a *Agent) mask(path, text string) string {
	return a.secrets.Settings(text, redact.Known{
		Variable: func(name string) bool {
			_, found := os.LookupEnv(name)
			return found
		},
		File: func(name string) bool {
			_, err := os.Lstat(a.named(path, name))
			return err == nil
		},
	})
}

// named is the file that the settings at path name, such as ~/key.
func (a *Agent) named(path, name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(a.home, rest)
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
}

// eachText calls f with every text in a JSON value, and its key.
func eachText(value any, key string, f func(key, text string)) {
	below := func(name string) string { return strings.TrimPrefix(key+"."+name, ".") }
	switch v := value.(type) {
	case string:
		f(key, v)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(v[name], below(name), f)
		}
	case []any:
		for i, one := range v {
			eachText(one, below(strconv.Itoa(i)), f)
		}
	}
}

// maskedKeys lists the keys of the texts that masking changed.
func maskedKeys(was, now map[string]any) (keys []string) {
	before := map[string]string{}
	eachText(was, "", func(key, text string) { before[key] = text })
	eachText(now, "", func(key, text string) {
		if before[key] != text {
			keys = append(keys, key)
		}
	})
	return keys
}

// referencesIn lists the references in the texts of a JSON file, whose secrets are masked:
// what is left is no password that looks like a reference.
func referencesIn(object map[string]any) (all []reference) {
	eachText(object, "", func(key, text string) {
		if r, ok := redact.ReferenceOf(text); ok {
			all = append(all, reference{r, key})
		}
	})
	return all
}

// maskedLines lists the lines that masking changed. A mark has no line break, so what
// was masked with several lines moves those after it: then the first is named alone.
func maskedLines(was, now []byte) (lines []string) {
	before, after := bytes.Split(was, []byte("\n")), bytes.Split(now, []byte("\n"))
	for i := range min(len(before), len(after)) {
		if bytes.Equal(before[i], after[i]) {
			continue
		}
		lines = append(lines, fmt.Sprintf("line %d", i+1))
		if len(before) != len(after) {
			break
		}
	}
	return lines
}

// fewNotes is how many files of settings are told of, and how many keys of each.
const fewNotes = 8

// Notes says what of the settings is not what the user has: where secrets were masked,
// and which references lead nowhere inside. It is complete after AddTo.
func (a *Agent) Notes() (notes []string) {
	for _, c := range a.copies {
		for _, f := range c.files {
			place := filepath.Join(c.Place, f.rest)
			if rest, ok := strings.CutPrefix(place, a.home+"/"); ok {
				place = "~/" + rest
			}
			if len(f.hidden) > 0 {
				notes = append(notes, fmt.Sprintf("secrets are masked in the agent's copy of %s: %s; to lend one as a variable: holdfast grant add --help", place, few(f.hidden)))
			}
			if lost := a.lost(f); len(lost) > 0 {
				notes = append(notes, fmt.Sprintf("references in %s lead nowhere inside: %s; to lend a secret as a variable: holdfast grant add --help", place, few(lost)))
			}
		}
	}
	if more := len(notes) - fewNotes; more > 0 {
		notes = append(notes[:fewNotes], fmt.Sprintf("and %d more files of settings have masked secrets or such references", more))
	}
	return notes
}

// lost lists the references of a file that lead nowhere inside.
func (a *Agent) lost(f copiedFile) (all []string) {
	for _, r := range f.references {
		if r.Variable != "" && a.variables[r.Variable] == "" {
			all = append(all, r.key+" (the variable "+r.Variable+")")
		}
		if r.File != "" && !a.shown(a.named(f.path, r.File)) {
			all = append(all, r.key+" (the file "+r.File+")")
		}
	}
	return all
}

// shown reports whether a file is inside: copied, or in view.
func (a *Agent) shown(path string) bool {
	if slices.ContainsFunc(a.copies, func(c *copyRow) bool {
		return slices.ContainsFunc(c.files, func(f copiedFile) bool { return f.path == path })
	}) {
		return true
	}
	access, longest := policy.Hidden, 0
	for _, r := range a.paths {
		at := cmp.Or(r.At, r.Path)
		if paths.Within(at, path) && len(at) > longest {
			access, longest = r.Access, len(at)
		}
	}
	return access != policy.Hidden
}

// few joins the first of many texts.
func few(all []string) string {
	text := strings.Join(all[:min(len(all), fewNotes)], ", ")
	if more := len(all) - fewNotes; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
