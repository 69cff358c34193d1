package rules

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

//go:generate go test -run ^TestTableIsCurrent$ -update .

var update = flag.Bool("update", false, "write the generated files")

// golden compares got with a file, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the sets say (%v); run: go generate ./internal/consent/rules", path, err)
	}
}

// shippedSet is a set as its file has it.
type shippedSet struct {
	Name, Title, Text, Blind string
	Rules                    []shippedRule
}

type shippedRule struct {
	ID, When, Reason string
	Asks, Passes     []example
}

// example is an attempt: a command line, or its parts.
type example struct {
	Action, Argv, Executable, SHA256, Script, Path, Parent string
	Operation, To, Host, Protocol, Method                  string
	URLPath                                                string `yaml:"url_path"`
	Port                                                   int
	Known, Cut                                             bool
	Interpreted                                            []string
}

func (e *example) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		e.Argv = n.Value
		return nil
	}
	type plain example
	return n.Decode((*plain)(e))
}

func (e example) attempt(t testing.TB) event.Attempt {
	t.Helper()
	var argv []string
	if e.Argv != "" {
		argv = splitWords(t, e.Argv)
	}
	a := event.Attempt{Kind: event.Kind(e.Action), Path: e.Path, Script: e.Script, ParentExecutable: e.Parent,
		Operation: e.Operation, To: e.To, Host: e.Host, Port: e.Port, Protocol: e.Protocol, Known: e.Known, Method: e.Method, URLPath: e.URLPath,
		Interpreted: e.Interpreted, Cut: e.Cut,
		ScriptSHA256: ordinaryHash,
		Process:      event.Process{Executable: e.Executable, SHA256: cmp.Or(e.SHA256, ordinaryHash), Argv: argv, Cwd: "/home/you/project"}}
	if a.Kind != "" {
		return a
	}
	a.Kind = event.KindExec
	if a.ParentExecutable == "" {
		a.ParentExecutable = "/usr/bin/dash"
	}
	if len(argv) == 0 && !e.Cut {
		t.Fatalf("%+v has no command line", e)
	}
	if a.Process.Executable == "" {
		a.Process.Executable = "/usr/bin/" + baseName(argv[0])
	}
	if a.Path == "" {
		a.Path = cmp.Or(a.Script, a.Process.Executable)
	}
	return a
}

// splitWords splits a command line at spaces, with quotes.
func splitWords(t testing.TB, text string) (words []string) {
	t.Helper()
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		word := ""
		for text != "" && text[0] != ' ' {
			if quote := text[:1]; quote == "'" || quote == `"` {
				inner, rest, ends := strings.Cut(text[1:], quote)
				if !ends {
					t.Fatalf("%s: a quote that does not end", text)
				}
				word, text = word+inner, rest
				continue
			}
			word, text = word+text[:1], text[1:]
		}
		words = append(words, word)
	}
	return words
}

func shippedSets(t testing.TB) (all []shippedSet) {
	t.Helper()
	for _, name := range SetNames {
		var s shippedSet
		data, err := os.ReadFile("sets/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		dec.KnownFields(true)
		if err := dec.Decode(&s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Name != name || s.Title == "" || s.Text == "" || s.Blind == "" {
			t.Errorf("sets/%s.yaml lacks something, or is called %q", name, s.Name)
		}
		all = append(all, s)
	}
	files, err := os.ReadDir("sets")
	if err != nil || len(files) != len(SetNames) {
		t.Errorf("there are %d files of sets and %d names (%v)", len(files), len(SetNames), err)
	}
	return all
}

// ordinaryHash is the hash of a program that no rule names.
const ordinaryHash = "hash-of-another"

// byHash finds the programs of a simulated host: hash-of-NAME is the hash of NAME.
func byHash(name string) (path, sha256 string) {
	return "/usr/bin/" + name, "hash-of-" + baseName(name)
}

// TestReference looks for each rule of a set in the output.
func TestReference(t *testing.T) {
	text, err := Reference()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shippedSets(t) {
		for _, r := range s.Rules {
			if !strings.Contains(text, "#### "+s.Name+"/"+r.ID+"\n") {
				t.Errorf("the reference lacks the rule %s/%s", s.Name, r.ID)
			}
		}
	}
	if again, err := Reference(); err != nil || again != text {
		t.Errorf("the reference differs from call to call (%v)", err)
	}
}

// TestRuleSets tries what each rule asks about and what it permits.
func TestRuleSets(t *testing.T) {
	for _, s := range shippedSets(t) {
		g, err := New([]Rule{{Set: s.Name}}, nil, Host{Find: byHash, Outside: func(path string) bool { return !strings.HasPrefix(path+"/", "/home/you/project/") }})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Rules {
			least := 8
			if len(s.Rules) == 1 && s.Name != "pipe-to-shell" {
				least = 3
			}
			if len(r.Asks) < least || len(r.Passes) < least {
				t.Errorf("%s/%s has %d examples that it asks about and %d that pass", s.Name, r.ID, len(r.Asks), len(r.Passes))
			}
			for _, e := range r.Asks {
				if j := g.Judge(e.attempt(t)); j.Verdict != event.Unknown || j.Rule.Name != r.ID {
					t.Errorf("%s/%s: %+v is %v by %q", s.Name, r.ID, e, j.Verdict, j.Rule.Name)
				}
			}
			for _, e := range r.Passes {
				if j := g.Judge(e.attempt(t)); j.Verdict == event.Unknown && j.Rule.Name == r.ID {
					t.Errorf("%s/%s: %+v is asked about", s.Name, r.ID, e)
				}
			}
		}
	}
}

// TestTableIsCurrent keeps table.go equal to the files of the sets.
func TestTableIsCurrent(t *testing.T) {
	var want []Set
	for _, s := range shippedSets(t) {
		set := Set{Name: s.Name, Title: s.Title, Text: s.Text, Blind: s.Blind}
		for _, r := range s.Rules {
			p, err := expr.CompileAttempt(r.When)
			if err != nil {
				t.Fatalf("%s/%s: %v", s.Name, r.ID, err)
			}
			one := SetRule{ID: r.ID, When: strings.Join(strings.Fields(r.When), " "), Reason: r.Reason, About: p.About()}
			one.Programs, _ = p.Only("program")
			one.Verbs, _ = p.Only("verb")
			if slices.Contains(one.About, event.KindExec) && len(one.Programs) == 0 {
				t.Errorf("%s/%s is about any program: each execution would be compared with it", s.Name, r.ID)
			}
			set.Rules = append(set.Rules, one)
		}
		want = append(want, set)
	}
	var b bytes.Buffer
	b.WriteString("// Code generated from sets/*.yaml by go generate ./internal/consent/rules; DO NOT EDIT.\n\npackage rules\n\nimport \"holdfast.dev/holdfast/internal/floor/event\"\n\n" +
		"// table is what the files of gates say.\nfunc table() []Set {\n\treturn []Set{\n")
	for _, s := range want {
		fmt.Fprintf(&b, "{Name: %q, Title: %q, Text: %q, Blind: %q, Rules: []SetRule{\n", s.Name, s.Title, s.Text, s.Blind)
		for _, r := range s.Rules {
			fmt.Fprintf(&b, "{ID: %q, When: %q, Reason: %q, About: []event.Kind{%s}", r.ID, r.When, r.Reason, quoted(r.About))
			if len(r.Programs) > 0 {
				fmt.Fprintf(&b, ", Programs: []string{%s}", quoted(r.Programs))
			}
			if len(r.Verbs) > 0 {
				fmt.Fprintf(&b, ", Verbs: []string{%s}", quoted(r.Verbs))
			}
			b.WriteString("},\n")
		}
		b.WriteString("}},\n")
	}
	b.WriteString("}\n}\n")
	got, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "table.go", got)
	if !*update && !reflect.DeepEqual(table(), want) {
		t.Error("table.go does not say what the files say")
	}
}

func quoted[S ~string](all []S) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = fmt.Sprintf("%q", string(s))
	}
	return strings.Join(out, ", ")
}
