package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// unraced are tests that are left out with the race detector, by the directory of
// the package and the name of the test, and why it would find nothing there.
var unraced = map[string]string{
	"internal/cli: TestDocuments":                               "runs the shipped binary, which is not built with the detector",
	"internal/cli: TestScripts":                                 "runs the shipped binary, which is not built with the detector",
	"internal/prove/harness: TestAblation":                      "plays rows against shipped binaries; TestPool races what plays them",
	"internal/prove/harness: TestAblationInANetwork":            "plays rows against shipped binaries; TestPool races what plays them",
	"internal/prove/harness: TestAblationOfTheRecord":           "plays rows against shipped binaries; TestPool races what plays them",
	"internal/prove/harness: TestManySupervisors":               "runs shipped binaries",
	"internal/prove/harness: TestMatrix":                        "plays rows against the shipped binary; TestPool races what plays them",
	"internal/prove/harness: TestReconstructionIsCurrent":       "plays rows against the shipped binary; TestPool races what plays them",
	"internal/prove/harness: TestRootRungTun":                   "plays rows against a shipped binary; TestPool races what plays them",
	"internal/prove/harness: TestRungs":                         "plays rows against a shipped binary; TestPool races what plays them",
	"internal/supervise: TestRootLandlockAuditHearsEveryDenial": "executes itself where it may read nothing else, and with the detector it is linked to libraries",
	"internal/supervise: TestRootLandlockAuditHearsAFlood":      "executes itself where it may read nothing else, and with the detector it is linked to libraries",
	"internal/boundary/native: TestKilledSupervisor":            "kills a process at each of 600 steps: one that was killed reports nothing, and TestConformance races the launch",
}

// startsGoroutine reports whether a package has code of its own, and it or its
// tests have a go statement or call a method Go (sync.WaitGroup). Packages with
// only tests run the shipped binary, which the detector does not see.
func startsGoroutine(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false, err
	}
	var code, starts bool
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				code = code || !strings.HasSuffix(file, "_test.go")
			case *ast.GoStmt:
				starts = true
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				starts = starts || ok && s.Sel.Name == "Go"
			}
			return true
		})
	}
	return code && starts, nil
}
