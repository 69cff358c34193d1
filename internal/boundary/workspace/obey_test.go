//go:build linux

package workspace

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// obeying is a scan of w that has found nothing yet.
func obeying(w string) *scan {
	return &scan{found: &tree{Root: Name(w)}, rowAt: map[Name]bool{}, budget: NewBudget()}
}

// The files of a command line are protected: programs by a path, and scripts that an
// interpreter is given or that are known by their end.
func TestFilesOfACommandLine(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"tools/run", "x.sh", "plain", "a b/run", "q/it's", "home/p"} {
		write(t, w, name, "")
	}
	for _, tt := range []struct {
		line, rows, absent string // absent: the first of them; the line as a whole may be a name as well
	}{
		{"tools/run --fix", "tools/run", ""},
		{"x.sh", "x.sh", ""},
		{"bash plain", "plain", ""},
		{"bash -e -u plain", "plain", ""},
		{"/usr/bin/env plain", "plain", ""},
		{"echo plain", "", ""},
		{"-plain x", "", ""},
		{"!tools/run;./x.sh", "tools/run|x.sh", "!tools/run;./x.sh"},
		{`"tools"/run`, "tools/run", ""},
		{"a b/run", "a b/run", ""},
		{"tools", "", ""},
		{"sh tools", "", ""},
		{"none/new.sh", "", "none/new.sh"},
		{"none/new", "", ""},
		{"sh new", "", ""},
		{"~/p", "home/p", ""},
		{"", "", ""},
	} {
		s := obeying(w)
		s.protectNamed(tt.line, w, w+"/home", "rule", "why")
		var rows, absent []string
		for _, r := range s.found.Rows {
			rows = append(rows, string(r.Path))
		}
		for _, r := range s.found.Absent {
			absent = append(absent, string(r.Path))
		}
		slices.Sort(rows)
		if strings.Join(rows, "|") != tt.rows || !strings.HasPrefix(strings.Join(absent, "|"), tt.absent) || tt.absent == "" && absent != nil {
			t.Errorf("%q: %q, missing %q", tt.line, rows, absent)
		}
	}
	s := obeying(w)
	s.followed = maxFollowed
	if s.protectNamed("tools/run", w, "", "rule", "why"); len(s.found.Rows) != 0 || s.all == nil {
		t.Errorf("past the bound: %+v", s.found.Rows)
	}
}

func TestTarget(t *testing.T) {
	t.Setenv("HOME", "/env")
	for _, tt := range []struct{ from, value, home, want string }{
		{"/w", "a/b", "/home", "/w/a/b"}, {"/w", "/a", "/home", "/a"}, {"/w", "", "/home", ""}, {"w", "a", "/home", ""},
		{"/w", "~/a", "/home", "/home/a"}, {"/w", "~/a", "", "/env/a"}, {"/w", "~a", "/home", "/w/~a"}, {"/w", "~/a", "home", ""},
	} {
		if got := target(tt.from, tt.value, tt.home); got != tt.want {
			t.Errorf("%q in %s: %q, want %q", tt.value, tt.from, got, tt.want)
		}
	}
	s := obeying("/w")
	s.pointers, s.tops = []string{"t/.git"}, []string{"", "r"}
	for _, tt := range []struct {
		f    gitFile
		want []string
	}{
		{gitFile{dir: "r/.git", own: true}, []string{"/w/r/.git", "/w/r", "/w/t"}},
		{gitFile{dir: "r/.git"}, []string{"/w/", "/w/r"}},
	} {
		if got := s.startDirs(tt.f); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt.f, got)
		}
	}
}

// Past a bound all of the tree counts as obeyed, and looking ends.
func TestBoundsOfWhatIsObeyed(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "hooks/x", "")
	write(t, w, "r/tools/run.sh", "")
	const config = "[core]\n\thooksPath = ../hooks\n[user]\n\tname = tools/run.sh\n"
	for name, c := range map[string]struct {
		change func(*scan)
		rows   int
		over   bool
	}{
		"with room":                         {func(*scan) {}, 1, false},
		"a rule for all, and room":          {func(s *scan) { s.all = &Rule{} }, 1, false},
		"a rule for all, and no room":       {func(s *scan) { s.all, s.followed = &Rule{}, maxFollowed+1 }, 0, false},
		"when the time is over":             {func(s *scan) { s.budget.Stop() }, 0, true},
		"a setting that may name a program": {func(s *scan) { s.shared[0].data = []byte("[alias]\n\tx = !tools/run.sh\n") }, 1, false},
		"no configuration":                  {func(s *scan) { s.shared[0].data = []byte("[") }, 0, false},
	} {
		s := obeying(w)
		s.tops = []string{"r", "r"}
		s.shared = []gitFile{{name: "/etc/gitconfig", data: []byte(config)}}
		c.change(s)
		err := s.obeyConfigs()
		var over *BudgetError
		if len(s.found.Rows) != c.rows || errors.As(err, &over) != c.over || (err != nil) != c.over || (len(s.warnings) > 0) != (name == "no configuration") {
			t.Errorf("%s: %+v, %v, %q", name, s.found.Rows, err, s.warnings)
		}
	}
	s := obeying(w)
	if !s.afford(maxFollowed, maxObeyed) || s.all != nil {
		t.Error("what is at the bound is too much")
	}
	if s.afford(0, 1) || s.all == nil {
		t.Error("a byte more is not too much")
	}
	first := s.all
	if s.afford(1, 0) || s.all != first {
		t.Error("the first reason is lost")
	}
	if s = obeying(w); s.afford(maxFollowed+1, 0) {
		t.Error("a link more is not too much")
	}
}
