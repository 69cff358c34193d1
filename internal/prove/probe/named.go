//go:build linux

package probe

import (
	"path/filepath"
	"strings"
)

// joinOracles asks two oracles.
func joinOracles(a, b func(*World, Observation) []string) func(*World, Observation) []string {
	return func(w *World, o Observation) []string { return append(a(w, o), b(w, o)...) }
}

// named demands that the launcher names each new or changed path at the end,
// itself or through a directory above it. before is the content of files that
// existed; for a path not in it, a change of attributes alone counts too.
func named(before map[string]string, templates ...string) func(*World, Observation) []string {
	return func(w *World, o Observation) []string {
		printed := printedPaths(o.Stderr)
		var out []string
		for _, t := range templates {
			path := w.Path(t)
			if !exists(path) || printed[path] || printedAbove(printed, w.W, path) {
				continue
			}
			if content, ok := before[t]; ok {
				if b, err := readSome(path); err == nil && string(b) == content {
					continue
				}
			}
			out = append(out, t+" was changed, and the launcher did not name it")
		}
		return out
	}
}

// printedPaths returns the words of a text, without the punctuation around them.
func printedPaths(text []byte) map[string]bool {
	printed := map[string]bool{}
	for _, word := range strings.Fields(string(text)) {
		printed[strings.TrimRight(strings.Trim(word, `"',:;()`), "/")] = true
	}
	return printed
}

// printedAbove reports whether a directory between root and path, exclusively, was
// named.
func printedAbove(printed map[string]bool, root, path string) bool {
	for dir := filepath.Dir(path); len(dir) > len(root); dir = filepath.Dir(dir) {
		if printed[dir] {
			return true
		}
	}
	return false
}
