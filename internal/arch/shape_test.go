package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// allowance is the table of exceptions while it is used up.
type allowance map[string]bool // key to "was needed"

func parseExceptions(table string) (allowance, error) {
	all := allowance{}
	for _, row := range rows(table) {
		key, reason, ok := strings.Cut(row, ": ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("exception table: a row is 'kind what: reason', not %q", row)
		}
		all[strings.Join(strings.Fields(key), " ")] = false
	}
	return all, nil
}

func (a allowance) use(key string) bool {
	_, ok := a[key]
	if ok {
		a[key] = true
	}
	return ok
}

// budgets checks the length of files and functions and the absence of init
// functions. Generated files are as long as they are.
func budgets(t *tree, table string) []string {
	allowed, err := parseExceptions(table)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	for _, f := range t.files {
		if f.generated() {
			continue
		}
		if f.lines > fileLinesMax || f.lines > fileLines && !allowed.use("file "+f.path) {
			bad = append(bad, fmt.Sprintf("%s: %d lines, the budget is %d (with an exception %d)", f.path, f.lines, fileLines, fileLinesMax))
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				bad = append(bad, function(t, f, fn, allowed)...)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		if !allowed[key] {
			bad = append(bad, fmt.Sprintf("exception table: nothing needs %q any more", key))
		}
	}
	return bad
}

func function(t *tree, f *file, fn *ast.FuncDecl, allowed allowance) []string {
	var bad []string
	if fn.Name.Name == "init" && fn.Recv == nil && !f.test && !allowed.use("init "+f.path) {
		bad = append(bad, t.position(fn)+": func init runs before anybody asked for it")
	}
	n := t.lines(fn)
	excused := f.test || isTable(fn)
	if n > funcLinesMax || n > funcLines && !excused && !allowed.use("func "+f.path+" "+fn.Name.Name) {
		bad = append(bad, fmt.Sprintf("%s: %s has %d lines, the budget is %d (with an exception %d)", t.position(fn), fn.Name.Name, n, funcLines, funcLinesMax))
	}
	return bad
}

// isTable reports whether fn only names some values and returns a literal.
func isTable(fn *ast.FuncDecl) bool {
	if fn.Body == nil || len(fn.Body.List) == 0 {
		return false
	}
	last := len(fn.Body.List) - 1
	for _, stmt := range fn.Body.List[:last] {
		if _, ok := stmt.(*ast.AssignStmt); !ok {
			return false
		}
	}
	ret, ok := fn.Body.List[last].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return false
	}
	_, ok = ret.Results[0].(*ast.CompositeLit)
	return ok
}

// listed is how many files a package may have whose comment is in any of them.
const listed = 10

// packageComments checks that each package has exactly one file with a package
// comment, and that it begins as godoc shows it. Tests count only where a
// package has nothing else. Where a directory has many files, it is in doc.go, which
// a reader of a listing opens first.
func packageComments(t *tree) []string {
	type pkg struct {
		name     string
		files    int
		comments []string
	}
	code, tests := map[string]*pkg{}, map[string]*pkg{}
	var bad []string
	for _, f := range t.files {
		into := code
		if f.test {
			into = tests
		}
		if into[f.dir] == nil {
			into[f.dir] = &pkg{name: f.ast.Name.Name}
		}
		into[f.dir].files++
		doc := f.ast.Doc.Text() // without directives, so that a build tag is no comment
		if doc == "" {
			continue
		}
		into[f.dir].comments = append(into[f.dir].comments, f.path)
		name := f.ast.Name.Name
		if name != "main" && !strings.HasPrefix(doc, "Package "+strings.TrimSuffix(name, "_test")+" ") {
			bad = append(bad, fmt.Sprintf("%s: the package comment must begin with %q", f.path, "Package "+name+" "))
		}
	}
	for dir, p := range tests {
		if code[dir] == nil {
			code[dir] = p
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(code)) {
		if c := code[dir].comments; len(c) != 1 {
			bad = append(bad, fmt.Sprintf("%s: package %s has %d package comments %v, want 1", dir, code[dir].name, len(c), c))
		} else if n := code[dir].files; n > listed && path.Base(c[0]) != "doc.go" && !strings.HasSuffix(c[0], "_test.go") {
			bad = append(bad, fmt.Sprintf("%s: package %s has %d files: move its comment to doc.go", c[0], code[dir].name, n))
		}
	}
	return bad
}
