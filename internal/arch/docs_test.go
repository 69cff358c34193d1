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

// promised checks that the classes of probes and those that the threat model names are
// the same: a promise without probes is a wish, and a probe without a promise breaks
// nothing that was promised.
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

// housePlan is the page that says which rooms there are, and what each may import of the
// others.
const housePlan = "docs/decisions/house.md"

// rooms checks that the page and the directories of internal agree. What is for tests
// alone is not a room.
func rooms(t *tree, testOnly string) []string {
	_, list, _ := strings.Cut(string(t.texts[housePlan]), "```rooms\n")
	list, _, _ = strings.Cut(list, "```")
	planned := map[string]string{}
	for line := range strings.Lines(list) {
		name, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		planned[name] = strings.Join(strings.Fields(imports), " ")
	}
	room := func(pkg string) string { name, _, _ := strings.Cut(pkg, "/"); return name }
	found := map[string]map[string]bool{}
	for _, f := range t.files {
		here := room(f.pkg())
		if !under(f.dir, "internal") || slices.Contains(strings.Fields(testOnly), here) {
			continue
		}
		if found[here] == nil {
			found[here] = map[string]bool{}
		}
		for _, target := range f.targets() {
			name, ours := t.inModule(target)
			if there := room(name); ours && !f.test && !f.helper() && there != here && !slices.Contains(strings.Fields(testOnly), there) {
				found[here][there] = true
			}
		}
	}
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		imports := strings.Join(slices.Sorted(maps.Keys(found[name])), " ")
		if plan, there := planned[name]; !there {
			bad = append(bad, fmt.Sprintf("%s: it has no room %s", housePlan, name))
		} else if plan != imports {
			bad = append(bad, fmt.Sprintf("%s: the room %s imports %q, and the page says %q", housePlan, name, imports, plan))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(planned)) {
		if found[name] == nil {
			bad = append(bad, fmt.Sprintf("%s: there is no room %s", housePlan, name))
		}
	}
	return bad
}
