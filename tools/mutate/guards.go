package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// guard is one condition that decides what the product does: the condition of an
// if, or a case of a switch without a tag. If it is composed with && and ||, each
// operand is a guard, but the whole is not.
type guard struct {
	pkg        string // import path
	file       string // relative to the root of the module, with slashes
	line       int
	function   string // that contains it, without its receiver
	text       string // on one line
	start, end int    // byte offsets in the file
	reached    int    // line of its statement
}

func (g guard) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", g.file, g.line, g.function, g.text)
}

// plain reports whether g only checks an error. Negating it fails on every
// success, which nearly every test notices.
func (g guard) plain() bool { return g.text == "err != nil" }

// find returns the guards of the packages below root, in source order, and the
// directory of each package.
func find(root string, packages []string) ([]guard, map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-f", `{{.ImportPath}} {{.Dir}}{{range .GoFiles}} {{.}}{{end}}`}, packages...)...)
	list.Dir, list.Env, list.Stderr = root, append(os.Environ(), "GOOS=linux"), os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing packages: %w", err)
	}
	var all []guard
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		dirs[words[0]] = words[1]
		for _, name := range words[2:] {
			path := filepath.Join(words[1], name)
			source, err := os.ReadFile(path)
			if err != nil {
				return nil, nil, err
			}
			found, err := guards(source)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			for _, g := range found {
				g.pkg = words[0]
				if g.file, err = filepath.Rel(root, path); err != nil {
					return nil, nil, err
				}
				all = append(all, g)
			}
		}
	}
	return all, dirs, nil
}

// guards returns the guards of one file; none if it is generated.
func guards(source []byte) ([]guard, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var all []guard
	for _, d := range file.Decls {
		function := "-"
		if f, ok := d.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			for _, c := range conditions(n) {
				start, end := set.Position(c.Pos()), set.Position(c.End()).Offset
				text := strings.Join(strings.Fields(string(source[start.Offset:end])), " ")
				all = append(all, guard{line: start.Line, function: function, text: text, start: start.Offset, end: end, reached: set.Position(n.Pos()).Line})
			}
			return true
		})
	}
	slices.SortFunc(all, func(a, b guard) int { return cmp.Compare(a.start, b.start) })
	return all, nil
}

// conditions returns the conditions that n decides by.
func conditions(n ast.Node) (all []ast.Expr) {
	switch n := n.(type) {
	case *ast.IfStmt:
		return operands(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag != nil {
			return nil
		}
		for _, s := range n.Body.List {
			for _, c := range s.(*ast.CaseClause).List {
				all = append(all, operands(c)...)
			}
		}
	}
	return all
}

// operands splits e at && and ||.
func operands(e ast.Expr) []ast.Expr {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return operands(x.X)
	case *ast.BinaryExpr:
		if x.Op == token.LAND || x.Op == token.LOR {
			return append(operands(x.X), operands(x.Y)...)
		}
	case *ast.UnaryExpr:
		if _, ok := x.X.(*ast.ParenExpr); ok && x.Op == token.NOT {
			return operands(x.X)
		}
	}
	return []ast.Expr{e}
}

// negate returns source with g negated.
func negate(source []byte, g guard) []byte {
	return bytes.Join([][]byte{source[:g.start], []byte("!("), source[g.start:g.end], []byte(")"), source[g.end:]}, nil)
}
