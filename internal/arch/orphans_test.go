package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// survivors are the calls by which a function may check whether its parent lives.
var survivors = []string{"Getppid", "SYS_GETPPID", "SYS_RECVFROM"}

// orphans checks that a function that asks for a signal at the death of its parent
// checks afterwards whether the parent is still alive: one that died before sends none.
// SysProcAttr.Pdeathsig does that itself (syscall, forkAndExecInChild1).
func orphans(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || f.test {
				continue
			}
			asked, looked := ast.Node(nil), false
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && mentions(call, "PR_SET_PDEATHSIG") && mentions(call, "Prctl", "SYS_PRCTL") {
					asked = n
				}
				if sel, ok := n.(*ast.SelectorExpr); ok && asked != nil && slices.Contains(survivors, sel.Sel.Name) {
					looked = true
				}
				return true
			})
			if asked != nil && !looked {
				bad = append(bad, fmt.Sprintf("%s: %s asks for a death signal, and does not look whether its parent lives after that (%s)",
					t.position(asked), fn.Name.Name, strings.Join(survivors, ", ")))
			}
		}
	}
	return bad
}

// mentions reports whether one of the names is called, or is given to the call.
func mentions(call *ast.CallExpr, names ...string) bool {
	found := false
	for _, e := range append([]ast.Expr{call.Fun}, call.Args...) {
		if sel, ok := e.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
			found = true
		}
		if list, ok := e.(*ast.CompositeLit); ok {
			for _, e := range list.Elts {
				if sel, ok := e.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
					found = true
				}
			}
		}
	}
	return found
}
