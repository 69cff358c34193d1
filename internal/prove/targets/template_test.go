//go:build linux

package targets

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "",
		"a b\tc":            "a|b|c",
		`a 'b c' "d e"`:     "a|b c|d e",
		`a\ b`:              "a b",
		`'it'\''s'`:         "it's",
		`"a\"b\$c\n"`:       `a"b$c\n`,
		`'' ""`:             "|",
		`--x=a#b c~d e!f`:   "--x=a#b|c~d|e!f",
		`sh -c 'a | b; {}'`: "sh|-c|a | b; {}",
		"{W}/x {}":          "{W}/x|{}",
		"a\\\nb":            "ab",
	} {
		got, err := split(line)
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{"a | b", "a; b", "a $HOME", `a "$HOME"`, "a `b`", "a > b", "a *", "~/a", "a #b", "! a", "a 'b", `a "b`, `a \`, "a & b", "a (b)", "a [b]", "a ?"} {
		if got, err := split(line); err == nil {
			t.Errorf("%q became %q", line, got)
		}
	}
}

func TestTemplateLines(t *testing.T) {
	w := &probe.World{W: "/b/w", H: "/b/h"}
	for template, want := range map[string][]string{
		"env -C {W} HOME={H} {} end":  {"-C", "/b/w", "HOME=/b/h", "/p", "a 'b", "", "end"},
		"env sh -c 'cd {W}; exec {}'": {"sh", "-c", `cd /b/w; exec /p 'a '\''b' ''`},
	} {
		target, err := Command(template, "")
		if err != nil {
			t.Errorf("%q: %v", template, err)
			continue
		}
		got := target.(Template).line(w, []string{"/p", "a 'b", ""})
		if !slices.Equal(got[1:], want) {
			t.Errorf("%q: %q", template, got)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	for template, want := range map[string]string{
		"env -i":          "no place for the command to run",
		"":                "no place",
		"{}":              "no program",
		"env | {}":        "needs a shell",
		"no-such-prog {}": ErrNotHere.Error(),
	} {
		_, err := Command(template, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", template, err)
			continue
		}
		if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() == "" {
			t.Errorf("%q: %v has no hint", template, err)
		}
	}
	if _, err := Command("env {}", "a 'b"); err == nil {
		t.Error("a broken command for the version was taken")
	}
}
