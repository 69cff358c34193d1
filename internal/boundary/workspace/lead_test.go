//go:build linux

package workspace

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a tree leads the host to in another one is protected there.
func TestLedFrom(t *testing.T) {
	base := tempRoot(t)
	w, results := base+"/w", base+"/results"
	write(t, results, "hooks/pre-commit", "")
	write(t, results, "other/x", "")
	repo(t, w)
	git(t, w, "config", "core.hooksPath", results+"/hooks")
	around := scanned(t, w)
	s := scanned(t, results, obeyedBy(around))
	if got := rowPaths(s); !slices.Equal(got, []string{"hooks"}) || len(s.Warnings) != 0 {
		t.Errorf("protected %q, warnings %q", got, s.Warnings)
	}
	if r := around.obeysAll(results + "/hooks"); r == nil || r.Pattern != "core.hooksPath" || r.Tier != Deny {
		t.Errorf("the directory of hooks: %+v", r)
	}
	if r := around.obeysAll(results + "/hooks/below/it"); r == nil {
		t.Error("what is in it is not led to")
	}
	for _, dir := range []string{results, results + "/other", results + "/hooksx"} {
		if r := around.obeysAll(dir); r != nil {
			t.Errorf("%s: %+v", dir, r)
		}
	}
	for _, all := range []string{"hooks", "."} { // the directory itself, and one above it
		git(t, w, "config", "core.hooksPath", results+"/"+all)
		s := scanned(t, results+"/hooks", obeyedBy(scanned(t, w)))
		if len(s.Warnings) == 0 || !strings.Contains(s.Warnings[0], "stays writable") {
			t.Errorf("%s: warnings %q", all, s.Warnings)
		}
	}
	closed := &Snapshot{Root: w, obeyed: []row{{Path: Name(results), Rule: "x", Closed: true}}}
	if closed.obeysAll(results) != nil {
		t.Error("a directory that cannot be read leads the host to all of itself")
	}
	if s := scanned(t, results, obeyedBy(closed)); len(s.Warnings) != 0 {
		t.Errorf("a directory that cannot be read: %q", s.Warnings)
	}
}

// What is obeyed in a tree is found everywhere in it, or around some paths alone.
func TestFindObeyed(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "home/.mcp.json", `{"command": "./run.sh"}`)
	write(t, w, "home/run.sh", "")
	write(t, w, "far/.mcp.json", `{"command": "./run.sh"}`)
	write(t, w, "far/run.sh", "")
	write(t, w, "real/x", "")
	link(t, "../real", w, "home/.cargo")
	link(t, "real/x", w, "Makefile")
	git(t, w, "init", "-q", "--bare", "far/bare")
	rules := DefaultRules()
	for _, tt := range []struct {
		name    string
		options []Option
		obeyed  []string
		not     []string
	}{
		{"everywhere", nil, []string{"home/.mcp.json", "home/run.sh", "far/run.sh", "real", "real/x", "real/deep/y", "Makefile", "home/.cargo"}, []string{"home", "home/other", "", "src"}},
		{"around a path", []Option{Around("home/a/b")}, []string{"home/run.sh", "real"}, []string{"far/run.sh"}},
	} {
		o, err := FindObeyed(t.Context(), w, "", rules, tt.options...)
		must(t, err)
		for _, p := range tt.obeyed {
			if r := o.Rule(p); r == nil || r.Tier != Deny {
				t.Errorf("%s: %s is not obeyed", tt.name, p)
			}
		}
		for _, p := range tt.not {
			if r := o.Rule(p); r != nil {
				t.Errorf("%s: %s is obeyed: %+v", tt.name, p, r)
			}
		}
		if o.Above("home") == nil || o.Above("real") == nil || o.Above("home/run.sh") != nil || o.Above("none") != nil {
			t.Errorf("%s: directories above: %+v", tt.name, o.ways)
		}
	}
	var none *Obeyed
	if none.Rule("x") != nil || none.Above("x") != nil {
		t.Error("nothing obeys something")
	}
	if o, err := FindObeyed(t.Context(), w, "", Rules{}); o != nil || err != nil {
		t.Errorf("without rules: %+v, %v", o, err)
	}
	if _, err := FindObeyed(t.Context(), w+"/none", "", rules); err == nil {
		t.Error("a tree that is not there")
	}
	if _, err := FindObeyed(t.Context(), w, w+"/none", rules); err == nil {
		t.Error("a layer that is not there")
	}
	upper := tempRoot(t)
	write(t, upper, "home/.mcp.json", `{"command": "./new.sh"}`)
	o, err := FindObeyed(t.Context(), w, upper, rules)
	must(t, err)
	for _, p := range []string{"home/run.sh", "home/new.sh"} {
		if o.Rule(p) == nil {
			t.Errorf("with a layer: %s is not obeyed", p)
		}
	}
}

// A directory is entered around some paths if it is above them, has a listed name or
// may hold one, or is a repository by its name.
func TestAroundEnters(t *testing.T) {
	rules := DefaultRules()
	s := &obeyVisitor{scan{rules: &rules, found: &tree{Root: "/w"}, budget: NewBudget()}}
	w := &walker{walk: &walk{rules: &rules}, fold: make([]byte, 0, 256)}
	d := &dir{states: []*node{rules.root}}
	passed := func(name string, typ byte) bool {
		done, err := s.beforeRules(w, d, entry{nameZ: []byte(name + "\x00"), folded: fold([]byte(name), nil), typ: typ})
		must(t, err)
		return done
	}
	if passed("src", unix.DT_DIR) {
		t.Error("a directory is passed over, although nothing says so")
	}
	Around("home/a/b", "top")(&s.scan)
	for name, want := range map[string]bool{"src": true, "home": false, ".git": false, ".vscode": false, ".github": false, "a": true, "top": true, "node_modules": true} {
		if passed(name, unix.DT_DIR) != want {
			t.Errorf("%s is passed over: %v", name, !want)
		}
	}
	if passed("src", unix.DT_REG) {
		t.Error("a file is passed over")
	}
	s.budget.Stop()
	s.budget.files.Store(0)
	if _, err := s.beforeRules(w, d, entry{nameZ: []byte("x\x00")}); err == nil {
		t.Error("when the time is over it goes on")
	}
}
