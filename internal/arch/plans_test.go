package arch

import (
	"fmt"
	"go/ast"
	"go/token"
)

// plans checks that only the package of the plan assigns to its fields: elsewhere a
// plan grows by its method With. It sees assignments by way of a field that is called
// Plan, and of a variable that the function declares as a plan, or takes from such a
// field or from Compile. Tests make plans of their own, and so do helper programs.
func plans(t *tree, home string) []string {
	var bad []string
	for _, f := range t.files {
		name := importedAs(f, t.module+"/internal/"+home)
		if f.test || f.helper() || name == "" || f.ast.Name.Name == "boundarytest" {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			variables := planVariables(fn, name)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				for _, left := range assigned(n) {
					if inPlan(left, variables) {
						bad = append(bad, fmt.Sprintf("%s: %s assigns to a field of a plan: let Plan.With add it", t.position(n), fn.Name.Name))
					}
				}
				return true
			})
		}
	}
	return bad
}

// importedAs is the local name of an import; "" where a file has it not.
func importedAs(f *file, target string) string {
	for name, t := range f.imports {
		if t == target {
			return name
		}
	}
	return ""
}

// planVariables are the names of plans in a function, its function literals included.
func planVariables(fn *ast.FuncDecl, pkg string) map[string]bool {
	out := map[string]bool{}
	isPlan := func(e ast.Expr) bool {
		if star, ok := e.(*ast.StarExpr); ok {
			e = star.X
		}
		s, ok := e.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "Plan" {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && x.Name == pkg
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				out[name.Name] = out[name.Name] || isPlan(n.Type)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				out[name.Name] = out[name.Name] || n.Type != nil && isPlan(n.Type)
			}
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Rhs) == 1 && makesPlan(n.Rhs[0], pkg) {
				out[name.Name] = true
			}
		}
		return true
	})
	return out
}

// makesPlan reports whether an expression is a field called Plan, or a call that
// returns a plan.
func makesPlan(e ast.Expr, pkg string) bool {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		return makesPlan(e.X, pkg)
	case *ast.SelectorExpr:
		return e.Sel.Name == "Plan"
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return s.Sel.Name == "With" || s.Sel.Name == "Compile" && ok && x.Name == pkg
	}
	return false
}

// assigned are the expressions that a statement assigns to.
func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	}
	return nil
}

// inPlan reports whether an expression is in a plan: a field of it, or something
// below one.
func inPlan(e ast.Expr, variables map[string]bool) bool {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return inPlan(e.X, variables)
	case *ast.StarExpr:
		return inPlan(e.X, variables)
	case *ast.ParenExpr:
		return inPlan(e.X, variables)
	case *ast.SelectorExpr:
		switch x := e.X.(type) {
		case *ast.Ident:
			if variables[x.Name] {
				return true
			}
		case *ast.SelectorExpr:
			if x.Sel.Name == "Plan" {
				return true
			}
		}
		return inPlan(e.X, variables)
	}
	return false
}
