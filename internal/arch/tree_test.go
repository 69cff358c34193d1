package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is the module as its files are on disk, for any system or architecture.
type tree struct {
	module string
	fset   *token.FileSet
	files  []*file
	texts  map[string][]byte // every file that is not binary, by path
}

type file struct {
	path    string // slash-separated, from the module's root
	dir     string
	test    bool // name ends in _test.go
	lines   int
	ast     *ast.File
	imports map[string]string // local name to import path; blank and dot imports by "_ path" and ". path"
}

// skipped directories hold no source of ours.
func skipped(name string) bool {
	return name == "testdata" || name == "bin" || name == "node_modules" || name == ".git"
}

func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), texts: map[string][]byte{}}
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			t.module = strings.TrimSpace(name)
		}
	}
	return t, fs.WalkDir(fsys, ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && skipped(e.Name()):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		return t.add(fsys, p)
	})
}

func (t *tree) add(fsys fs.FS, p string) error {
	src, err := fs.ReadFile(fsys, p)
	if err != nil {
		return err
	}
	if !bytes.Contains(src, []byte{0}) {
		t.texts[p] = src
	}
	if path.Ext(p) != ".go" {
		return nil
	}
	parsed, err := parser.ParseFile(t.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"),
		lines: bytes.Count(src, []byte{'\n'}), ast: parsed, imports: map[string]string{}}
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		f.imports[localName(spec, target)] = target
	}
	t.files = append(t.files, f)
	return nil
}

// localName guesses the name of an unnamed import from its path; it is right
// for the standard library, which is all that the checks look for by name.
func localName(spec *ast.ImportSpec, target string) string {
	switch {
	case spec.Name == nil:
		return path.Base(target)
	case spec.Name.Name == "_" || spec.Name.Name == ".":
		return spec.Name.Name + " " + target
	}
	return spec.Name.Name
}

// pkg is the name by which the tables call the package of f: the path below
// internal/, or the whole path elsewhere.
func (f *file) pkg() string { return strings.TrimPrefix(f.dir, "internal/") }

// helper reports whether f is of a program below internal/: users do not get it,
// it generates something or is started by tests.
func (f *file) helper() bool { return under(f.dir, "internal") && f.ast.Name.Name == "main" }

func (f *file) generated() bool { return ast.IsGenerated(f.ast) }

// targets are the import paths of f, sorted.
func (f *file) targets() []string { return slices.Sorted(maps.Values(f.imports)) }

// inModule returns the name of an imported package of this module.
func (t *tree) inModule(target string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(target, t.module+"/")
	return strings.TrimPrefix(rest, "internal/"), ok
}

func (t *tree) lines(n ast.Node) int {
	return t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
}

func (t *tree) position(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// standard reports whether an import is of the standard library: its first
// element has no dot.
func standard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}

// under reports whether target is prefix or below it.
func under(target, prefix string) bool {
	return target == prefix || strings.HasPrefix(target, prefix+"/")
}

// rows splits a table into its lines, without empty ones.
func rows(table string) []string {
	var all []string
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
