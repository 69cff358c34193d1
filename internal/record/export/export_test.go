package export

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

//go:generate go test -run "^TestDocumentIsCurrent$" -update .

var update = flag.Bool("update", false, "write the generated part of docs/events.md")

const generatedMark = "<!-- generated from the tables of internal/record/export: go generate ./internal/record/export -->\n"

func TestDocumentIsCurrent(t *testing.T) {
	const path = "../../../docs/events.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(old), generatedMark)
	if !ok {
		t.Fatalf("%s has no line %s", path, generatedMark)
	}
	want := []byte(head + generatedMark + "\n" + reference())
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(old, want) {
		t.Errorf("%s is not current; run: go generate ./internal/record/export", path)
	}
}
