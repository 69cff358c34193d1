//go:build linux

package workspace

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Directories are made where they are lacking, and never through a link.
func TestMakeBeneath(t *testing.T) {
	w := tempRoot(t)
	mkdir(t, w+"/a/there")
	write(t, w, "file", "")
	link(t, "a", w, "link")
	root := openDir(t, w)
	for rel, want := range map[string]bool{".": true, "a/there": true, "a/new/deep": true, "link/x": false, "file/x": false} {
		fd, err := makeBeneath(root, rel)
		if (err == nil) != want {
			t.Errorf("%s: %v", rel, err)
			continue
		}
		if err != nil {
			continue
		}
		at, err := fdPath(fd)
		unix.Close(fd)
		if err != nil || at != strings.TrimSuffix(w+"/"+rel, "/.") {
			t.Errorf("%s was opened for %s, %v", at, rel, err)
		}
	}
	if _, err := os.Lstat(w + "/a/x"); err == nil {
		t.Error("a link was followed")
	}
}

// Permission bits are added by a descriptor, and nothing is touched that has them.
func TestChmodFD(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "file", "")
	link(t, "file", w, "link")
	root := openDir(t, w)
	for _, tt := range []struct {
		name       string
		mode       os.FileMode
		bits, want uint32
		err        error
	}{
		{"file", 0o400, 0o200, 0o600, nil},
		{"file", 0o640, 0o600, 0o640, nil},
		{"file", 0o040, 0o700, 0o740, nil},
		{"link", 0o640, 0o1000, 0o640, unix.EOPNOTSUPP},
		{".", 0o500, 0o700, 0o700, nil},
	} {
		path := w + "/" + tt.name
		must(t, os.Chmod(path, tt.mode))
		h, err := openHandle(root, tt.name)
		must(t, err)
		if err := chmodFD(h.fd, tt.bits); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		h.close()
		if st, err := os.Stat(path); err != nil || uint32(st.Mode().Perm()) != tt.want {
			t.Errorf("%s of %o with %o has %o, %v", tt.name, tt.mode, tt.bits, st.Mode().Perm(), err)
		}
	}
	var before, after unix.Stat_t
	must(t, unix.Fstat(root, &before))
	time.Sleep(2 * clockSlack) // a change now has another time
	must(t, chmodFD(root, 0o500))
	if must(t, unix.Fstat(root, &after)); before != after {
		t.Error("a directory that has the bits was touched")
	}
	if chmodFD(-1, 0o700) == nil || setMode(-1, 0o700) == nil {
		t.Error("no descriptor has a mode")
	}
}

// A handle refers to its file, whatever its name leads to meanwhile.
func TestHandleIsOfAFile(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "a", "one")
	write(t, w, "b", "two")
	mkdir(t, w+"/d")
	link(t, "a", w, "l")
	root := openDir(t, w)
	open := func(name string) *handle {
		h, err := openHandle(root, name)
		must(t, err)
		t.Cleanup(h.close)
		return h
	}
	a, again, b := open("a"), open("a"), open("b")
	if !a.sameFile(again) || a.sameFile(b) || !a.named(root, "a") || a.named(root, "b") || a.named(root, "none") {
		t.Error("which file it is")
	}
	for name, ok := range map[string]bool{"a": true, "d": false, "l": false} {
		f, err := open(name).read()
		if (err == nil) != ok {
			t.Errorf("%s is read: %v", name, err)
		}
		if f != nil {
			f.Close()
		}
	}
	if text, err := open("l").link(); err != nil || text != "a" {
		t.Errorf("the link says %q, %v", text, err)
	}
	if text, err := a.link(); err == nil || text != "" {
		t.Errorf("a file says %q, %v", text, err)
	}
	if _, err := openHandle(root, "none"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("what is not there: %v", err)
	}
}

// Nothing is opened below a directory through a link, or above it.
func TestOpenBeneath(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "d/e/f", "")
	link(t, "d", w, "link")
	root := openDir(t, w)
	for rel, want := range map[string]bool{
		"": true, "d": true, "d/e": true, ".": true, "d/e/f": false, "link": false, "link/e": false, "..": false, "d/..": false, "d//e": false, "d/": false, "/d": false, "none": false,
	} {
		fd, err := OpenBeneath(root, rel, unix.O_PATH|unix.O_DIRECTORY)
		if (err == nil) != want {
			t.Errorf("%q: %v", rel, err)
		}
		if err == nil {
			unix.Close(fd)
		}
	}
	if _, err := OpenBeneath(-1, "d", unix.O_PATH); err == nil {
		t.Error("there is no such root")
	}
}

// What is obeyed is kept by whether it lies in the tree, is the tree, or is missing.
func TestEndsOfWhatIsObeyed(t *testing.T) {
	s := &scan{found: &tree{Root: "/w"}, rowAt: map[Name]bool{}}
	var st unix.Statx_t
	for range 2 {
		s.addEnd("/w/in", "rule", "why", &st)
	}
	s.addEnd("/elsewhere", "rule", "why", &st)
	if len(s.found.Rows) != 1 || s.found.Rows[0].Path != "in" || len(s.outward) != 1 || s.all != nil || len(s.warnings) != 0 {
		t.Errorf("rows %+v, outside %+v, all %+v", s.found.Rows, s.outward, s.all)
	}
	s.addEnd("/w", "rule", "why", &st)
	if len(s.found.Rows) != 1 || len(s.outward) != 2 || s.all == nil || len(s.warnings) != 1 {
		t.Errorf("the tree itself: rows %+v, outside %+v, all %+v", s.found.Rows, s.outward, s.all)
	}
	s.addMissing("/w/d", []string{"x", "y"}, "rule", "why")
	s.addMissing("/w/d", []string{"x", "..", "y"}, "rule", "why")
	s.addMissing("/", []string{"x"}, "rule", "why")
	if len(s.found.Absent) != 1 || s.found.Absent[0].Path != "d/x/y" || len(s.outward) != 3 || s.outward[2].Path != "/x" {
		t.Errorf("missing: %+v, outside %+v", s.found.Absent, s.outward)
	}
	for p, want := range map[string]string{"a": "", "a/b": "a", "a/b/c": "a/b", "": ""} {
		if got := parent(p); got != want {
			t.Errorf("above %q is %q", p, got)
		}
	}
}

// What is a match of the list, for a name in a place.
func TestLookMatch(t *testing.T) {
	rules, err := RulesWith(Changes{Unprotect: []string{"mine"}})
	must(t, err)
	for _, tt := range []struct {
		path      string
		dir, link bool
		want      string // pattern, "" for none
		tier      Tier
	}{
		{"README", false, false, "", ""},
		{".envrc", false, false, ".envrc", Deny},
		{"a/.vscode", true, false, ".vscode", Deny},
		{".github", true, false, "", ""},
		{".github", false, true, ".github/workflows", Deny},
		{".github/workflows", true, false, ".github/workflows", Deny},
		{"a/.git", false, false, ".git", Deny},
		{"a/.GIT", false, true, ".git", Deny},
		{"a/.git", true, false, "", ""},
		{"a/.git/config", false, false, "config", Deny},
		{"a/config", false, false, "", ""},
		{"node_modules", true, false, "node_modules", Flag},
		{"node_modules", false, false, "", ""},
		{"Makefile", false, false, "Makefile", Flag},
		{"Makefile", true, false, "", ""},
		{"mine", true, false, "", ""},
		{"mine/.envrc", false, false, "", ""},
		{"minex/.envrc", false, false, ".envrc", Deny},
	} {
		look := rules.Look()
		var rule *Rule
		for at, rest, more := "", tt.path, true; more; {
			var name string
			name, rest, more = strings.Cut(rest, "/")
			at = strings.TrimPrefix(at+"/"+name, "/")
			rule, look = look.Match(at, name, more || tt.dir, tt.link && !more)
		}
		got, tier := "", Tier("")
		if rule != nil {
			got, tier = rule.Pattern, rule.Tier
		}
		if tier != tt.tier || tt.want != "" && tt.link == false && got != tt.want {
			t.Errorf("%s: %q, %s", tt.path, got, tier)
		}
	}
	_, deps := rules.Look().Match("node_modules", "node_modules", true, false)
	if rule, _ := deps.Match("node_modules/.editorconfig", ".editorconfig", false, false); rule != nil {
		t.Errorf("a name of the project in dependencies: %+v", rule)
	}
	_, src := rules.Look().Match("src", "src", true, false)
	if rule, _ := src.Match("src/.editorconfig", ".editorconfig", false, false); rule == nil {
		t.Error("a name of the project in a directory is free")
	}
	if rule, _ := src.Repository().Match("src/config", "config", false, false); rule == nil || !src.Repository().Git() || src.Git() {
		t.Error("the configuration of a bare repository is free")
	}
	_, git := rules.Look().Match(".git", ".git", true, false)
	_, refs := git.Match(".git/x", "x", true, false)
	if !git.Git() || !refs.Git() {
		t.Error("below .git is no repository")
	}
	var none Rules
	if rule, _ := none.Look().Match(".envrc", ".envrc", false, false); rule != nil {
		t.Errorf("without rules: %+v", rule)
	}
	if r := rules.Find("a/.vscode/tasks.json"); r == nil || r.Pattern != ".vscode" {
		t.Errorf("found %+v", r)
	}
	if r := rules.Find("a/b/c"); r != nil {
		t.Errorf("found %+v", r)
	}
}
