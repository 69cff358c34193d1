package arch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// threatModel is where each promise names the classes of probes that try to
// break it.
const threatModel = "docs/threat-model.md"

// rowFiles is where the rows of each class are.
const rowFiles = "internal/prove/probe/rows/"

var className = regexp.MustCompile("`([a-z]+\\.[a-z-]+)`")

// promised checks that the classes of probes and those that the threat model
// names are the same: a promise without probes is a wish, and a probe without
// a promise breaks nothing that anybody was told.
func promised(t *tree) []string {
	named := map[string]bool{}
	for line := range strings.Lines(string(t.texts[threatModel])) {
		if !strings.HasPrefix(line, "| P") {
			continue
		}
		for _, m := range className.FindAllStringSubmatch(line, -1) {
			named[m[1]] = true
		}
	}
	classes := map[string]bool{}
	for p := range t.texts {
		if class, ok := strings.CutPrefix(p, rowFiles); ok {
			classes[strings.TrimSuffix(class, ".yaml")] = true
		}
	}
	var bad []string
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		if !named[class] {
			bad = append(bad, fmt.Sprintf("%s: no promise names the probe class %s", threatModel, class))
		}
	}
	for _, class := range slices.Sorted(maps.Keys(named)) {
		if !classes[class] {
			bad = append(bad, fmt.Sprintf("%s: there is no probe class %s", threatModel, class))
		}
	}
	return bad
}
