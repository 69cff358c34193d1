package policy

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPresetKeysAreDocumented: each key that a preset may have is in the pages, as code.
func TestPresetKeysAreDocumented(t *testing.T) {
	code := ""
	for _, page := range []string{"agents", "credentials", "policy"} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```") {
			if i%2 == 0 {
				block = strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(block, -1), " ")
			}
			code += block + "\n"
		}
	}
	for _, place := range []string{
		"X", "keep: [{X}]", "copy: [{path: ~/.a, X}]", "files: [{X}]", "settings: [{X}]", "endpoints: [{X}]", "logins: [{X}]",
		"credentials: [{X}]", "credentials: [{source: {X}}]", "credentials: [{renew: {X}}]", "credentials: [{inside: {X}}]",
	} {
		w := newWorld(t)
		w.write("home/u/.config/holdfast/presets/mine.yaml", "version: 1\n"+strings.Replace(place, "X", "unknown: 1", 1)+"\n", 0o600)
		_, err := w.compile(Options{Host: w.host, Preset: "mine"})
		var all Errors
		var one *Error
		if errors.As(err, &all) {
			one = all[0]
		} else if !errors.As(err, &one) {
			t.Fatalf("%s: %v", place, err)
		}
		_, known, ok := strings.Cut(one.hint, "known here: ")
		if !ok {
			t.Fatalf("%s: %v, %s", place, err, one.hint)
		}
		for _, key := range strings.Split(known, ", ") {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(key) + `\b`).MatchString(code) {
				t.Errorf("%s: %s is not documented", place, key)
			}
		}
	}
}
