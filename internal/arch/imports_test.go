package arch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// layer is the place of a package: its line in the table, doubled so that there
// is room between two, and whether it is for tests only.
type layer struct {
	line int
	test bool
}

func parseLayers(table string) (map[string]layer, error) {
	all := map[string]layer{}
	for i, row := range rows(table) {
		for _, word := range strings.Fields(row) {
			name, test := strings.CutSuffix(word, "*")
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("layer table: %s stands twice", name)
			}
			all[name] = layer{2 * i, test}
		}
	}
	return all, nil
}

// importOrder checks that every package of this module imports only packages
// of layers below its own. Tests obey too: a test of a low layer that needs a
// high one belongs to the high one.
func importOrder(t *tree, table, entries string) []string {
	places, err := parseLayers(table)
	if err != nil {
		return []string{err.Error()}
	}
	only := map[string]string{}
	for _, row := range rows(entries) {
		program, target, _ := strings.Cut(row, " ")
		only[program] = strings.TrimSpace(target)
	}
	var bad []string
	for _, f := range t.files {
		here, known := findLayer(f, places)
		if !known && under(f.dir, "internal") {
			bad = append(bad, fmt.Sprintf("%s: package %s has no place in the layer table", f.path, f.pkg()))
			continue
		}
		for _, target := range f.targets() {
			name, ours := t.inModule(target)
			if !ours || name == f.pkg() {
				continue
			}
			if why := refuse(f, name, places, here, only); why != "" {
				bad = append(bad, fmt.Sprintf("%s: %s imports %s: %s", f.path, f.pkg(), name, why))
			}
		}
	}
	return bad
}

// findLayer finds the layer of the package of f. A program below a package, such as a
// generator, needs no row: it is right above that package.
func findLayer(f *file, places map[string]layer) (layer, bool) {
	here, known := places[f.pkg()]
	if !known && f.helper() {
		here, known = places[path.Dir(f.pkg())]
		here.line++
	}
	return here, known
}

// refuse says why f may not import the package name; "" where it may.
func refuse(f *file, name string, places map[string]layer, here layer, only map[string]string) string {
	there, known := places[name]
	testing := f.test || here.test
	switch want, program := only[f.dir]; {
	case !known:
		return "which has no place in the layer table"
	case there.test && !testing:
		return "which is for tests only"
	case program && name != want && !f.test:
		return "a program imports " + want + " and nothing else"
	case !testing && under(f.dir, "internal") && otherProgram(f.pkg(), name):
		return "which is of the other program: holdfast and holdfast-prove share internal/floor alone"
	case !under(f.dir, "internal"):
		return "" // bench, tools and programs are above all layers
	case there.line > here.line:
		return "which is of a higher layer"
	case there.line == here.line:
		return "which is of the same layer"
	}
	return ""
}

// otherProgram reports whether one of two packages is of holdfast-prove and the
// other of holdfast. The floor is of both.
func otherProgram(a, b string) bool {
	return !under(a, "floor") && !under(b, "floor") && under(a, "prove") != under(b, "prove")
}

// home is a row of the table of homes.
type home struct {
	target string
	places []string
}

func parseHomes(table string) ([]home, error) {
	var all []home
	for _, row := range rows(table) {
		names, reason, ok := strings.Cut(row, " : ")
		fields := strings.Fields(names)
		if !ok || len(fields) == 0 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("home table: a row is 'import places : reason', not %q", row)
		}
		all = append(all, home{fields[0], fields[1:]})
	}
	return all, nil
}

// admits reports whether the import is allowed in f.
func (h home) admits(f *file) bool {
	return slices.ContainsFunc(h.places, func(place string) bool {
		matched, err := path.Match(place, path.Base(f.path)) // file patterns hold no slash, so a package never matches by accident
		return under(f.pkg(), place) || err == nil && matched
	})
}

// outsideImports checks that imports from outside this module are in their homes. A
// test may import whatever has a row; cgo has no home even there.
func outsideImports(t *tree, table, layerTable string) []string {
	all, err := parseHomes(table)
	if err != nil {
		return []string{err.Error()}
	}
	places, err := parseLayers(layerTable)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	for _, f := range t.files {
		testing := f.test || places[f.pkg()].test
		for _, target := range f.targets() {
			if _, ours := t.inModule(target); ours {
				continue
			}
			i := slices.IndexFunc(all, func(h home) bool { return under(target, h.target) })
			switch {
			case i < 0 && standard(target):
			case i < 0:
				bad = append(bad, fmt.Sprintf("%s: %s has no row in the table of homes", f.path, target))
			case all[i].admits(f) || testing && target != "C" && target != "unsafe":
			case under(f.dir, "internal") || under(f.dir, "cmd") || target == "C":
				bad = append(bad, fmt.Sprintf("%s: %s is imported outside its homes (%s)", f.path, target, strings.Join(all[i].places, " ")))
			}
		}
	}
	return bad
}

// breadth checks how many packages of this module each package imports.
func breadth(t *tree, limit int) []string {
	imports := map[string]map[string]bool{}
	for _, f := range t.files {
		for _, target := range f.targets() {
			name, ours := t.inModule(target)
			if f.test || !ours {
				continue
			}
			if imports[f.pkg()] == nil {
				imports[f.pkg()] = map[string]bool{}
			}
			imports[f.pkg()][name] = true
		}
	}
	var bad []string
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if n := len(imports[pkg]); n > limit {
			bad = append(bad, fmt.Sprintf("%s: imports %d packages of this module, the budget is %d", pkg, n, limit))
		}
	}
	return bad
}
