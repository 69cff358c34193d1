package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

//go:generate go test -run "^(TestSchemaIsCurrent|TestDocumentIsCurrent|TestShow)$" -update .

var update = flag.Bool("update", false, "write the golden files and the generated part of docs/policy.md")

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
		t.Errorf("%s is not current (%v); run: go generate ./internal/policy", path, err)
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	got, err := Schema()
	if err != nil || !json.Valid(got) {
		t.Fatal(err)
	}
	golden(t, "testdata/schema.json", got)
}

// generatedMark begins the part of the document that is made of the table.
const generatedMark = "<!-- generated from the table of keys: go generate ./internal/policy -->\n"

func TestDocumentIsCurrent(t *testing.T) {
	const path = "../../docs/policy.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(old), generatedMark)
	if !ok {
		t.Fatalf("%s has no line %s", path, generatedMark)
	}
	golden(t, path, []byte(head+generatedMark+"\n"+Reference()))
}

// TestExamplesOfKeysParse keeps the table honest: what the document shows is
// what the decoder takes.
func TestExamplesOfKeysParse(t *testing.T) {
	for _, k := range keys {
		if k.kind == section || k.later != "" || k.name == "version" {
			continue
		}
		if _, err := Parse("example", "/", []byte("version: 1\n"+nested(k)+"\n")); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		if k.doc == "" || kindText[k.kind] == "" {
			t.Errorf("%s is not documented", k.name)
		}
	}
}

func TestShow(t *testing.T) {
	w := newWorld(t)
	w.mkdir("home/u/.cache/go-build")
	w.write(userFile, "version: 1\nenvironment: {set: {MY_TOKEN: secret-value}}\nnetwork: {publish: [3000]}\n", 0o644)
	o := w.options("filesystem.write", w.at("data"), "without", "landlock-scopes")
	e, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(e, o.Host)
	if err != nil {
		t.Fatal(err)
	}
	rows := Rows(e, p)
	for i, r := range rows {
		if r.Section == "source" {
			rows[i].Origin, _, _ = strings.Cut(r.Origin, " ")
		}
	}
	rows = append(rows[:0:0], rows...)
	for i := range rows {
		rows[i].Value = strings.ReplaceAll(rows[i].Value, w.root, "ROOT")
		rows[i].Origin = strings.ReplaceAll(rows[i].Origin, w.root, "ROOT")
		if strings.HasPrefix(rows[i].Value, "PATH=") {
			rows[i].Value = "PATH=" + "ROOT/usr/bin" // the rest is this machine's
		}
		if strings.HasPrefix(rows[i].Value, "SHELL=") {
			rows[i].Value = "SHELL=..."
		}
	}
	text := Text(rows)
	if strings.Contains(text, "secret-value") {
		t.Error("a secret is shown")
	}
	golden(t, "testdata/show.txt", []byte(text))
}
