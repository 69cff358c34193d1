package arch

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:generate go test -count=1 -run ^TestDependencies$ -update

var update = flag.Bool("update", false, "write deps.txt instead of comparing it")

// checks are the rules by name, each with the tables of this module.
var checks = map[string]func(*tree) []string{
	"layers":   func(t *tree) []string { return importOrder(t, layers, entry) },
	"hidden":   func(t *tree) []string { return hidden(t, seers) },
	"homes":    func(t *tree) []string { return outsideImports(t, homes, layers) },
	"breadth":  func(t *tree) []string { return breadth(t, fanOut) },
	"budgets":  func(t *tree) []string { return budgets(t, exceptions) },
	"comments": packageComments,
	"orphans":  orphans,
	"pages":    func(t *tree) []string { return pages(t, pageWords) },
	"plans":    func(t *tree) []string { return plans(t, "policy") },
	"promises": promised,
	"rooms":    func(t *tree) []string { return rooms(t, "testenv arch") },
	"quiet":    func(t *tree) []string { return quiet(t, talkers, entry) },
	"skips":    func(t *tree) []string { return skips(t, "testenv") },
	"links":    func(t *tree) []string { return linked(t, hostile, follows) },
	"words":    words,
	"written":  written,
}

var module = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

func TestModule(t *testing.T) {
	m, err := module()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		t.Run(name, func(t *testing.T) {
			for _, problem := range checks[name](m) {
				t.Error(problem)
			}
		})
	}
}

// TestChecks runs each check on small modules that break its rule. A module is an
// archive whose comment names the check that examines it and, in lines that begin with
// "want:", what the check must report, in order; no such line means that it must report
// nothing.
func TestChecks(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			check, want := header(string(a.Comment))
			if checks[check] == nil {
				t.Fatalf("no check is called %q", check)
			}
			tried[check] = tried[check] || len(want) > 0
			compare(t, checks[check](build(t, a)), want)
		})
	}
	for name := range checks {
		if !tried[name] {
			t.Errorf("no archive shows that %s can fail", name)
		}
	}
}

func header(comment string) (check string, want []string) {
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "check: "); ok {
			check = name
		}
		if text, ok := strings.CutPrefix(line, "want: "); ok {
			want = append(want, strings.ReplaceAll(text, "@+", ""))
		}
	}
	return check, want
}

// build loads an archive. A line "@repeat" in it is replaced by 30 lines of comment,
// which keeps archives short; "@+" is removed: it splits words that no text of this
// module may contain.
func build(t *testing.T, a *txtar.Archive) *tree {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n")}}
	for _, f := range a.Files {
		data := bytes.ReplaceAll(f.Data, []byte("@repeat\n"), bytes.Repeat([]byte("// .\n"), 30))
		fsys[f.Name] = &fstest.MapFile{Data: bytes.ReplaceAll(data, []byte("@+"), nil)}
	}
	m, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	for i, problem := range got {
		if i >= len(want) || !strings.Contains(problem, want[i]) {
			t.Errorf("unexpected: %s", problem)
		}
	}
	for _, problem := range want[min(len(got), len(want)):] {
		t.Errorf("not found: %s", problem)
	}
}

// TestDependencies compares the packages from other modules that the binary
// links with deps.txt, so that a new one is a line in a diff.
func TestDependencies(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/holdfast")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing what the binary links: %v\n%s", err, stderr.String())
	}
	m, err := module()
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.DeleteFunc(rows(string(out)), func(p string) bool { return under(p, m.module) })
	slices.Sort(linked)
	got := strings.Join(linked, "\n") + "\n"
	if *update {
		if err := os.WriteFile("deps.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("deps.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the binary links:\n%sdeps.txt says:\n%sif that is meant: go generate ./internal/arch, and a line in docs/decisions/dependencies.md", got, want)
	}
}
