package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// example is the YAML of docs/ci.md that follows a mark.
func example(t *testing.T, mark string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "<!-- checked by: "+mark+" -->\n```yaml\n")
	text, _, ends := strings.Cut(after, "```\n")
	if !found || !ends {
		t.Fatalf("docs/ci.md has no example that is checked by %s", mark)
	}
	if !strings.Contains(text, "holdfast prove --world siblings --strict --format sarif") {
		t.Errorf("the example checked by %s does not run what it is for", mark)
	}
	return text
}

func TestWorkflowOfGitHub(t *testing.T) {
	lint, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) []*actionlint.Error {
		found, err := lint.Lint("boundary.yml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	text := example(t, "actionlint")
	for _, e := range check(text) {
		t.Error(e)
	}
	if len(check(strings.Replace(text, "runs-on:", "runs-where:", 1))) == 0 {
		t.Error("a workflow with an unknown key is found to be right")
	}
}

func TestPipelineOfGitLab(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("testdata/schemas/gitlab-ci.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	text := example(t, "GitLab's schema")
	if err := check(text); err != nil {
		t.Error(err)
	}
	if check(strings.Replace(text, "artifacts:", "artefacts:", 1)) == nil {
		t.Error("a job with an unknown key is found to be right")
	}
}
