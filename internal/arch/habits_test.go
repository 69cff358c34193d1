package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// loud are the ways to print or to end the process, by import path and name.
var loud = map[string][]string{
	"os":  {"Exit", "Stdout", "Stderr"},
	"fmt": {"Print", "Printf", "Println"},
	"log": {"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln", "Default"},
}

// quiet checks that only the talkers print and exit, and programs that users do
// not get. The main of one that they do may call os.Exit and nothing else.
func quiet(t *tree, talking, entries string) []string {
	var bad []string
	for _, f := range t.files {
		product := under(f.dir, "internal") || under(f.dir, "cmd")
		if f.test || !product || f.helper() || slices.Contains(strings.Fields(talking), f.pkg()) {
			continue
		}
		program := slices.ContainsFunc(rows(entries), func(row string) bool { return strings.Fields(row)[0] == f.dir })
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if use := noise(f, n); use != "" && (!program || use != "os.Exit") {
				bad = append(bad, fmt.Sprintf("%s: %s: only %s prints or ends the process", t.position(n), use, talking))
			}
			return true
		})
	}
	return bad
}

// noise names what n is of the loud things; "" for nothing.
func noise(f *file, n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && slices.Contains(loud[f.imports[x.Name]], n.Sel.Name) {
			return f.imports[x.Name] + "." + n.Sel.Name
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "print" || fn.Name == "println") {
			return fn.Name
		}
	}
	return ""
}

// hiding are the functions and tables of unicode that say what a terminal does not
// show.
var hiding = []string{"IsPrint", "IsGraphic", "IsControl", "Cf", "Other_Default_Ignorable_Code_Point", "Variation_Selector"}

// hidden checks that only the named packages ask unicode what cannot be seen. One
// table of it, in floor/text, misses less than several.
func hidden(t *tree, allowed string) []string {
	var bad []string
	for _, f := range t.files {
		if f.test || !under(f.dir, "internal") || slices.Contains(strings.Fields(allowed), f.pkg()) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(hiding, s.Sel.Name) {
				if x, ok := s.X.(*ast.Ident); ok && f.imports[x.Name] == "unicode" {
					bad = append(bad, fmt.Sprintf("%s: unicode.%s: ask text.Hidden or text.Invisible", t.position(n), s.Sel.Name))
				}
			}
			return true
		})
	}
	return bad
}

// skips checks that no test outside the named package calls Skip directly.
func skips(t *tree, home string) []string {
	var bad []string
	for _, f := range t.files {
		_, tests := f.imports["testing"]
		if !f.test && !tests || f.pkg() == home {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s: %s: say what the test needs with %s.Need", t.position(n), s.Sel.Name, home))
			}
			return true
		})
	}
	return bad
}

// written checks that what may be executed is written with programs.Write: another
// goroutine that forks meanwhile keeps it open for writing, and it cannot be executed.
func written(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		if f.pkg() == "floor/programs" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 3 {
				return true
			}
			s, named := call.Fun.(*ast.SelectorExpr)
			mode, literal := call.Args[2].(*ast.BasicLit)
			if !named || !literal || s.Sel.Name != "WriteFile" {
				return true
			}
			if bits, err := strconv.ParseUint(mode.Value, 0, 32); err == nil && bits&0o111 != 0 {
				bad = append(bad, fmt.Sprintf("%s: WriteFile of a program: programs.Write holds off what forks meanwhile", t.position(n)))
			}
			return true
		})
	}
	return bad
}

// The words are put together here so that this file may hold them.
var (
	promises = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	later    = regexp.MustCompile(`(?i)\bfor ` + `now\b`)
	machine  = regexp.MustCompile(`(?:^|[^\w.~-])/wo` + `rk/(?:main|shared|\.)|/tmp/h` + `f\b|\bhf` + `test\b`)
)

// words checks every text of the module for what belongs in an issue and for
// the names of the machine that it was written on.
func words(t *tree) []string {
	var bad []string
	for _, p := range slices.Sorted(maps.Keys(t.texts)) {
		if path.Base(p) == "go.sum" { // hashes may spell anything
			continue
		}
		n := 0
		for line := range strings.Lines(string(t.texts[p])) {
			n++
			for what, re := range map[string]*regexp.Regexp{"a promise to do it later": promises, "the machine it was written on": machine} {
				if m := re.FindString(line); m != "" {
					bad = append(bad, fmt.Sprintf("%s:%d: %q names %s", p, n, strings.TrimSpace(m), what))
				}
			}
		}
	}
	for _, f := range t.files {
		for _, c := range f.ast.Comments {
			if m := later.FindString(c.Text()); m != "" {
				bad = append(bad, fmt.Sprintf("%s: %q: a comment says how it is", t.position(c), m))
			}
		}
	}
	return bad
}
