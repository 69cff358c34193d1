package detect

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -run ^TestBuiltinIsCurrent$ . -args -detect.update

var update = flag.Bool("detect.update", false, "write what is generated from the rules")

// readRules reads the files of the built-in rules.
func readRules(t testing.TB) []Rule {
	t.Helper()
	files, err := filepath.Glob("rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of rules: %v", err)
	}
	var all []Rule
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := ParseRules(filepath.Base(f), data, all)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rules {
			rules[i].Where = ""
		}
		all = append(all, rules...)
	}
	return all
}

// TestRules runs the two sessions of every rule. The honest one raises nothing
// above low, of any rule.
func TestRules(t *testing.T) {
	all := readRules(t)
	if len(all) < 46 {
		t.Errorf("there are %d rules, 46 are the least", len(all))
	}
	for _, r := range all {
		t.Run(r.ID, func(t *testing.T) {
			raises, err := Replay(Config{Rules: all, Alone: true, Baseline: r.Tests.baseline()}, r.Tests.Raises)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(raises, func(a Alert) bool { return a.Rule == r.ID && a.Count == 1 && len(a.Events) > 0 }) {
				t.Errorf("its session raises %s", short(raises))
			}
			honest, err := Replay(Config{Rules: all, Alone: true, Baseline: r.Tests.baseline()}, r.Tests.Honest)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(honest, func(a Alert) bool { return a.Rule == r.ID || a.Severity.Level() > Low.Level() }) {
				t.Errorf("the honest session raises %s", short(honest))
			}
		})
	}
}

func short(alerts []Alert) string {
	var out []string
	for _, a := range alerts {
		out = append(out, fmt.Sprintf("%s(%s %q)", a.Rule, a.Severity, a.Key))
	}
	return strings.Join(out, ", ")
}

// TestTechniques compares the ids of techniques with the table.
func TestTechniques(t *testing.T) {
	used := map[string]bool{}
	for _, r := range readRules(t) {
		for _, id := range r.Technique {
			used[id] = true
			if TechniqueName(id) == "" {
				t.Errorf("%s: %s does not stand in the table of ATT&CK %s", r.ID, id, Attack)
			}
		}
	}
	for line := range strings.Lines(strings.TrimSpace(techniqueTable)) {
		id, _, _ := strings.Cut(line, " ")
		if !used[id] {
			t.Errorf("no rule uses %s", id)
		}
	}
	for _, gone := range []string{"T1562", "T1562.001", "T1562.004", "T1562.006", "T1562.008", "T1070.002", "T1656"} {
		if TechniqueName(gone) != "" {
			t.Errorf("%s was replaced in v19", gone)
		}
	}
}

// TestBuiltinIsCurrent compares what is compiled in with the files.
func TestBuiltinIsCurrent(t *testing.T) {
	want := readRules(t)
	if *update {
		writeFile(t, "builtin.go", builtinSource(t, want))
		return
	}
	for i := range want {
		want[i].Tests = Tests{}
	}
	if !reflect.DeepEqual(builtin(), want) {
		t.Error("builtin.go is not what the files of rules say; run: go generate ./internal/detect")
	}
}

// TestReference looks for each rule in the output.
func TestReference(t *testing.T) {
	text := Reference()
	for _, r := range readRules(t) {
		if !strings.Contains(text, "\n### "+r.ID+"\n\n**"+r.Title+"**") {
			t.Errorf("the reference lacks %s", r.ID)
		}
	}
	if Reference() != text {
		t.Error("the reference differs from call to call")
	}
}

func builtinSource(t *testing.T, rules []Rule) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated from rules/*.yaml by go generate; DO NOT EDIT.\n\npackage detect\n\n" +
		"func builtin() []Rule { return builtinRules[:len(builtinRules):len(builtinRules)] }\n\n" +
		"// builtinRules are laid out by the compiler: a start costs nothing.\nvar builtinRules = [...]Rule{\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "{%s},\n", fieldsOf(reflect.ValueOf(r)))
	}
	b.WriteString("}\n")
	out, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fieldsOf writes the fields of a struct that are set, one a line.
func fieldsOf(v reflect.Value) string {
	var out []string
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if f.IsZero() || name == "Tests" {
			continue
		}
		out = append(out, name+": "+goLiteral(f))
	}
	return strings.Join(out, ", ")
}

func goLiteral(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	case reflect.Slice:
		var out []string
		for i := range v.Len() {
			out = append(out, strings.TrimPrefix(goLiteral(v.Index(i)), v.Type().Elem().Name()))
		}
		return "[]" + v.Type().Elem().Name() + "{" + strings.Join(out, ", ") + "}"
	case reflect.Pointer:
		return "&" + goLiteral(v.Elem())
	case reflect.Struct:
		return v.Type().Name() + "{" + fieldsOf(v) + "}"
	}
	return fmt.Sprint(v.Int())
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
