package export

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// constants are the string constants of package event whose names satisfy want,
// read in its source: a new one cannot be forgotten here.
func constants(t *testing.T, want func(name, kind string) bool) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../floor/event/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind := ""
		if id, ok := spec.Type.(*ast.Ident); ok {
			kind = id.Name
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if value := literal(spec.Values[i]); value != "" && want(name.Name, kind) {
					found[name.Name] = value
				}
			}
		}
		return true
	})
	return found
}

func literal(x ast.Expr) string {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

func TestEveryActionHasARow(t *testing.T) {
	all := constants(t, func(_, kind string) bool { return kind == "" })
	known := 0
	for name, value := range all {
		if !strings.Contains(value, ".") {
			continue
		}
		known++
		if actionByName()[value] == nil {
			t.Errorf("event.%s (%q) has no row in actions", name, value)
		}
	}
	if known != len(actions) || len(actionByName()) != len(actions) {
		t.Errorf("%d constants, %d rows, %d names", known, len(actions), len(actionByName()))
	}
	for _, a := range actions {
		if a.meaning == "" || a.severity == 0 {
			t.Errorf("%s lacks a meaning or a severity", a.name)
		}
		if named := a.class.activities[a.activity]; a.class != httpActivity && (named == "") == (a.other == "") {
			t.Errorf("%s: activity %d is called %q and %q", a.name, a.activity, named, a.other)
		}
	}
}

func TestEverySensorLayerAndBlindSpotHasARow(t *testing.T) {
	for kind, rows := range map[string][][2]string{"Sensor": sensors, "Layer": layers, "Blind": blindSpots} {
		for name, value := range constants(t, func(name, of string) bool {
			return of == kind || kind != "Sensor" && strings.HasPrefix(name, kind)
		}) {
			if !slices.ContainsFunc(rows, func(r [2]string) bool { return r[0] == value }) {
				t.Errorf("event.%s (%q) has no row", name, value)
			}
		}
	}
}

func TestEveryFieldHasARow(t *testing.T) {
	want := map[string]bool{}
	for _, s := range []struct {
		of     reflect.Type
		prefix string
	}{{reflect.TypeFor[event.Event](), ""}, {reflect.TypeFor[event.Process](), "Process."}} {
		for f := range s.of.Fields() {
			want[s.prefix+f.Name] = true
		}
	}
	for _, f := range fields {
		if !want[f.in] {
			t.Errorf("%s: there is no field %s", f.name, f.in)
		}
		delete(want, f.in)
	}
	for name := range want {
		t.Errorf("field %s has no row in fields", name)
	}
}

// emitters are the packages that make events.
var emitters = []string{"agents/hooks", "network", "credentials", "run", "supervise", "detect", "detect/alert", "detect/honey", "record/audit", "record/bus", "consent", "agents/gateway", "review"}

func TestEveryDetailHasARow(t *testing.T) {
	seen := 0
	for _, pkg := range emitters {
		files, err := filepath.Glob("../../" + pkg + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, use := range detailKeys(t, path) {
				seen++
				if !slices.ContainsFunc(details, func(d detailRow) bool { return use.fits(d) }) {
					t.Errorf("%s: detail %q has no row in internal/record/export/details.go", use.at, use.key)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d details were found: the test does not read what it should", seen)
	}
}

// keyUse is a key of a Detail in the source; open is a key that continues with
// a computed part.
type keyUse struct {
	key, at string
	open    bool
}

func (u keyUse) fits(d detailRow) bool {
	stem, all := strings.CutSuffix(d.key, "*")
	return d.key == u.key && !u.open || all && strings.HasPrefix(u.key, stem)
}

// detailKeys finds, in a file that imports events, the keys of maps of strings and of
// assignments to something called detail, of egress's with and of supervise's add.
func detailKeys(t *testing.T, path string) []keyUse {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return strings.HasSuffix(i.Path.Value, `internal/floor/event"`) }) {
		return nil
	}
	var uses []keyUse
	add := func(x ast.Expr) {
		use := keyUse{key: literal(x), at: fmt.Sprint(set.Position(x.Pos()))}
		if b, ok := x.(*ast.BinaryExpr); ok {
			use.key, use.open = literal(b.X), true
		}
		if c, ok := x.(*ast.CallExpr); ok && lastName(c.Fun) == "Sprintf" {
			use.key, _, use.open = strings.Cut(literal(c.Args[0]), "%")
		}
		if use.key != "" {
			uses = append(uses, use)
		}
	}
	assigned := func(n *ast.AssignStmt) {
		for _, left := range n.Lhs {
			if i, ok := left.(*ast.IndexExpr); ok && slices.Contains([]string{"Detail", "detail", "d"}, lastName(i.X)) {
				add(i.Index)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if m, ok := n.Type.(*ast.MapType); ok && lastName(m.Key) == "string" && lastName(m.Value) == "string" {
				for _, e := range n.Elts {
					add(e.(*ast.KeyValueExpr).Key)
				}
			}
		case *ast.AssignStmt:
			assigned(n)
		case *ast.CallExpr:
			if name := lastName(n.Fun); (name == "with" || name == "add") && len(n.Args) == 2 {
				add(n.Args[0])
			}
		}
		return true
	})
	return uses
}

// lastName is the name of x, or of the last selector in it.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
