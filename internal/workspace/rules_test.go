package workspace

import (
	"context"
	"slices"
	"testing"
)

func TestNameSurvivesJSON(t *testing.T) {
	for _, n := range []Name{"", "a/b", "a\nb\x00c", "\xff\xfe", `a\\b`, `\\xff`, "\u200c\ufffd"} {
		b, err := n.MarshalText()
		var back Name
		if err != nil || back.UnmarshalText(b) != nil || back != n {
			t.Errorf("%q became %q and then %q", n, b, back)
		}
	}
}

func TestWith(t *testing.T) {
	w := tempRoot(t)
	write(t, w, ".vscode/settings.json", "")
	write(t, w, "a/secret.txt", "")
	write(t, w, "a/only/here", "")
	write(t, w, "only/here", "")
	write(t, w, "b/.envrc", "")
	write(t, w, "c/.envrc", "")
	r, err := DefaultRules().With([]string{"secret.txt", "/only/**"}, []string{".vscode/", "b/.envrc"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Scan(context.Background(), w, r)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := paths(s), []string{"only", "a/secret.txt", "c/.envrc"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range []string{"", "/", "..", "a/../b", "a/**/b", "x\x00"} {
		if _, err := r.With([]string{bad}, nil); err == nil {
			t.Errorf("protect %q is accepted", bad)
		}
	}
}

func TestListHasReasons(t *testing.T) {
	for _, r := range DefaultRules().List() {
		if r.Reason == "" || r.Ref == "" || r.Pattern == "" || r.Tier != Deny && r.Tier != Flag {
			t.Errorf("incomplete entry: %+v", r)
		}
		if c, err := cleanPattern(r.Pattern); err != nil || c != r.Pattern {
			t.Errorf("pattern %q: %v", r.Pattern, err)
		}
	}
}
