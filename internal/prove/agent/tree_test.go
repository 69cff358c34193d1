package agent

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

func TestText(t *testing.T) {
	x := expander{"home": "/h", "key": "{home}", "prompt": "}{"}
	for in, want := range map[string]string{
		"":                    "",
		"{home}/x":            "/h/x",
		"{key}":               "{home}", // inserted values are not expanded
		"{prompt}{home}":      "}{/h",
		`{"a": {}}`:           `{"a": {}}`,
		"${HOME} {} { home }": "${HOME} {} { home }",
		"{{home}}":            "{/h}",
		"{home":               "{home",
	} {
		if got, err := x.text(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := x.text("{hoem}"); err == nil || !strings.Contains(err.Error(), "{hoem}") {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestTOML reads the output with an independent parser.
func TestTOML(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	tree := map[string]any{
		"a": "quotes \" and \\ and ' and\nlines\t\x01 <&> é \u2028", "b": true, "n": 42, "list": []any{"x", "y \"z\""}, "empty": []any{},
		"a key.with dots": map[string]any{"x": "1", "deep": map[string]any{"é": "2", "]": map[string]any{}}},
		"":                map[string]any{"blank": "key"},
	}
	var b bytes.Buffer
	if err := writeTOML(&b, nil, tree); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", "import sys,tomllib,json; json.dump(tomllib.load(sys.stdin.buffer), sys.stdout)")
	cmd.Stdin = bytes.NewReader(b.Bytes())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	var got, want any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(j, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v\n%s", got, want, &b)
	}
	for name, bad := range map[string]any{"a control character": "\x7f", "a fraction": 1.5, "nothing": nil} {
		if err := writeTOML(&b, nil, map[string]any{"k": bad}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

func TestSecrets(t *testing.T) {
	x := expander{"home": "/h"}
	tree := map[string]any{"list": []any{"first", map[string]any{"secrets": map[string]any{"name": "{secret}", "at": "{home}"}}}}
	got, err := x.fill(tree, []string{"A", "B"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"list": []any{"first", map[string]any{"name": "A", "at": "/h"}, map[string]any{"name": "B", "at": "/h"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestMerged(t *testing.T) {
	a := map[string]any{"x": map[string]any{"a": 1, "b": 1}, "y": []any{1}}
	b := map[string]any{"x": map[string]any{"b": 2}, "y": []any{2}, "z": 3}
	got := mergeTrees(a, b)
	want := map[string]any{"x": map[string]any{"a": 1, "b": 2}, "y": []any{2}, "z": 3}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if !reflect.DeepEqual(a["x"], map[string]any{"a": 1, "b": 1}) {
		t.Error("what was laid over was changed")
	}
}
