//go:build linux

package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const rowSchema = "../../../docs/formats/rows.schema.json"

// TestRowsFollowTheirSchema checks what others read against the schema.
func TestRowsFollowTheirSchema(t *testing.T) {
	var b bytes.Buffer
	if err := WriteRows(&b); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(rowSchema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
}

// TestEveryVerbIsUsed checks that every step in the list is used by a row and has
// a description: in the list itself, or in the schema.
func TestEveryVerbIsUsed(t *testing.T) {
	all, err := entries(false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(rowSchema)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range verbs() {
		if !bytes.Contains(b, []byte(`"`+name+`"`)) {
			t.Errorf("no row takes the step %s", name)
		}
		if code := strings.HasPrefix(name, "go:"); code != (v.what != "") || code == bytes.Contains(schema, []byte(`"const": "`+name+`"`)) {
			t.Errorf("the step %s is to be described once, in the list or in the schema", name)
		}
		if v.what != "" && v.why() == "" {
			t.Errorf("nothing says why the step %s is code", name)
		}
	}
}

// TestFill checks placeholders that mean the same in every world.
func TestFill(t *testing.T) {
	for text, want := range map[string]string{
		"a{xff}b": "a\xffb", "{repeat 3:ab:}c": "abababc", "{repeat 2:{ :}x{repeat 2:}:}": "{ { x}}", "{x}{trip}": "{x}{trip}",
	} {
		if got := placeholder().ReplaceAllStringFunc(text, filledIn); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if !regexp.MustCompile(`^python3(\.[0-9]+)?$`).MatchString(filledIn("{python}")) {
		t.Errorf("{python} is %q", filledIn("{python}"))
	}
}
