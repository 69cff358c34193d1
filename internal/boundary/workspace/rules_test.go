//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestList looks at each row of protected.tsv: what no code reads is a mistake.
func TestList(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(protectedText) {
		if line[0] == '#' || line == "\n" {
			continue
		}
		if n := strings.Count(line, "\t"); n != 6 {
			t.Errorf("%q has %d columns, not 7", line, n+1)
		}
		r := parseRules(line)[0]
		key := fmt.Sprint(r.Where, r.Pattern, r.Tier == Hide || r.Tier == Show)
		if seen[key] || r.Pattern == "" || r.Reason == "" {
			t.Errorf("%q is there twice, or lacks something", line)
		}
		seen[key] = true
		if !slices.Contains([]Tier{Deny, Flag, Hide, Show}, r.Tier) || !slices.Contains([]Place{Project, Anywhere, AtRoot, InGit}, r.Where) {
			t.Errorf("%q is of tier %q in %q: there is none like it", r.Pattern, r.Tier, r.Where)
		}
		if marked := r.Dir || r.Key || r.Judged; marked != (strings.Split(line, "\t")[3] != "") {
			t.Errorf("%q has marks that mean nothing", r.Pattern)
		}
		if (r.Tier == Deny || r.Tier == Flag) != checked.MatchString(r.Checked) {
			t.Errorf("%q: checked is %q; see the head of protected.tsv for its forms", r.Pattern, r.Checked)
		}
	}
}

// checked is what an entry may say of how it is known. A source is a manual page, a
// file of a public repository or a page of the maker, so that a reader can look it up.
var checked = regexp.MustCompile(`^(tried with .+ [0-9][0-9.]*|documented in ([a-z0-9._+-]+\([0-9][a-z]*\)|[A-Za-z0-9-]+/[A-Za-z0-9._-]+: [^ :]+[^ :/]|https://[^ ]+)|Holdfast's own)$`)

// TestReference looks for each name of the list in what is printed.
func TestReference(t *testing.T) {
	text := Reference()
	for _, r := range builtIn() {
		if !strings.Contains(text, "\n| `"+r.Pattern+"` | "+string(r.Where)+" | "+string(r.Tier)+" |") {
			t.Errorf("the reference lacks %s", r.Pattern)
		}
	}
	if Reference() != text {
		t.Error("the reference differs from call to call")
	}
}

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
	write(t, w, "c/jobs/x.star", "")
	r, err := RulesWith(Changes{Protect: []string{"secret.txt", "/only/**", "jobs/*.star"}, Unprotect: []string{".vscode/", "b/.envrc"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Scan(context.Background(), w, r)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rowPaths(s), []string{"only", "a/secret.txt", "c/.envrc", "c/jobs/x.star"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range []string{"", "/", "..", "a/../b", "a/**/b", "x\x00"} {
		if _, err := RulesWith(Changes{Protect: []string{bad}}); err == nil {
			t.Errorf("protect %q is accepted", bad)
		}
	}
}

func TestListHasReasons(t *testing.T) {
	for _, r := range DefaultRules().List() {
		if r.Reason == "" || r.Ref == "" || r.Pattern == "" || !slices.Contains([]Tier{Deny, Flag, Hide, Show}, r.Tier) {
			t.Errorf("incomplete entry: %+v", r)
		}
		if c, err := cleanPattern(r.Pattern); err != nil || c != r.Pattern {
			t.Errorf("pattern %q: %v", r.Pattern, err)
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{".env", "a/.env.local", "a/.env.example", "b/server.key", "tls/my.txt", "node_modules/x/test.key"} {
		write(t, w, name, "value")
	}
	write(t, w, "ca.pem", "-----BEGIN CERTIFICATE-----")
	write(t, w, "own.pem", "-----BEGIN EC PRIVATE KEY-----")
	r, err := RulesWith(Changes{Hide: []string{"/tls/my.txt"}, Show: []string{".env.local"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Scan(context.Background(), w, r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range s.Hidden() {
		got = append(got, h.Path)
	}
	if want := []string{".env", "b/server.key", "own.pem", "tls/my.txt"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each pattern of the list matches a name made of it.
func TestEachPatternMatches(t *testing.T) {
	rules := DefaultRules()
	for _, r := range rules.List() {
		if r.Tier != Deny && r.Tier != Flag || r.Where == InGit {
			continue
		}
		look, rule := rules.Look(), (*Rule)(nil)
		parts := strings.Split(strings.ReplaceAll(r.Pattern, "*", "x"), "/")
		for i, part := range parts {
			if rule, look = look.Match(strings.Join(parts[:i+1], "/"), part, i < len(parts)-1 || r.Dir, false); rule != nil && rule.Tier == Deny {
				break
			}
		}
		if rule == nil || rule.Tier != Deny && r.Tier == Deny {
			t.Errorf("%q (%s): %+v", r.Pattern, r.Tier, rule)
		}
	}
}

func TestGlobMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "ab", false}, {"*", "a", true}, {"*", "", true},
		{"*.c", "a.c", true}, {"*.c", ".c", true}, {"*.c", "c", false}, {"*.c", "a.cc", false}, {"a*", "a", true}, {"a*", "ba", false},
		{"a*c", "abc", true}, {"a*c", "ac", true}, {"a*c", "a", false}, {"a*ca", "aca", true}, {"a*aa", "aa", false},
		{"a*b*c", "abc", true}, {"a*b*c", "axbyc", true}, {"a*b*c", "acb", false}, {"a*b*c", "ac", false}, {"**a", "xa", true},
	} {
		if got := globMatch(tt.pattern, []byte(tt.name)); got != tt.want {
			t.Errorf("%q of %q: %v", tt.name, tt.pattern, got)
		}
	}
}

func TestCleanPattern(t *testing.T) {
	for p, want := range map[string]string{"a": "a", "/a": "a", "a/": "a", "a/**": "a", "./a": "a", "a/b": "a/b", "*.x": "*.x", "/a/**/": ""} {
		got, err := cleanPattern(p)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", p, got, err)
		}
	}
	for _, p := range []string{"", "/", ".", "./", "**", "/**", "..", "a/..", "../a", "a//b", "a/./b", "a/**/b", "**/a", "a\x00", "a\nb"} {
		if got, err := cleanPattern(p); err == nil {
			t.Errorf("%q: %q", p, got)
		}
	}
}

// A user's additions take precedence over the list, and a removal applies only to the
// place that the user named.
func TestRulesOfAUser(t *testing.T) {
	r, err := RulesWith(Changes{Protect: []string{"Makefile", "*.sublime-build", "*.sublime-build"}, Unprotect: []string{".git/HOOKS", ".vscode", "hooks", "a/.envrc"}})
	must(t, err)
	for path, want := range map[string]Tier{
		"Makefile": Deny, "x.sublime-build": Deny, "go.mod": Flag, ".vscode/x": "", ".envrc": Deny, "a/.envrc": "", "a/.envrc/x": "", "b/a/.envrc": Deny,
		".git/hooks/x": "", ".git/config": Deny, "hooks/.envrc": "",
	} {
		got := Tier("")
		if rule := r.Find(path); rule != nil {
			got = rule.Tier
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, e := range r.List() {
		if e.Pattern == ".vscode" || e.Pattern == "hooks" && e.Where == InGit {
			t.Errorf("listed although it was taken away: %+v", e)
		}
	}
	if same, err := RulesWith(Changes{}); err != nil || len(same.List()) != len(DefaultRules().List()) {
		t.Errorf("without changes: %v", err)
	}
	for _, c := range []Changes{{Unprotect: []string{".."}}, {Hide: []string{".."}}, {Show: []string{".."}}} {
		if _, err := RulesWith(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// Of the rules for a secret the user's count before the list's, and an exception
// before what it is taken from.
func TestSecretRuleOf(t *testing.T) {
	r, err := RulesWith(Changes{Hide: []string{"mine", ".env.example", "/tls/*.txt", "both"}, Show: []string{".env.local", ".env", "both", "/tls/ok.txt"}})
	must(t, err)
	for at, want := range map[string]string{
		"a/mine": "hide own", "a/.env.example": "hide own", "a/.env": "show own", ".env.local": "show own", ".env.other": "hide list", "both": "show own",
		"tls/a.txt": "hide own", "tls/ok.txt": "show own", "x/tls/a.txt": "", "README": "",
	} {
		got := ""
		if rule := r.secretRuleOf([]byte(at[strings.LastIndexByte(at, '/')+1:]), func() string { return at }); rule != nil {
			got = string(rule.Tier) + map[bool]string{true: " own", false: " list"}[rule.Ref == ""]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	list := DefaultRules()
	if rule := list.secretRuleOf([]byte(".env.example"), func() string { return "" }); rule == nil || rule.Tier != Show {
		t.Errorf("an example of a secret: %+v", rule)
	}
}

// A directory that the user names is hidden as a whole; the list names files. What a
// repository tracks is hidden only if the user named it.
func TestHiddenDirectoriesAndTrackedFiles(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"mine/.env", "x/.env/file", "tracked/.env", "tracked/token", "tracked/sub/.env", "free/.env"} {
		write(t, w, name, "A=1")
	}
	for _, name := range []string{"tracked", "free"} {
		write(t, w, name+"/.git/HEAD", "ref: refs/heads/main\n")
		mkdir(t, w+"/"+name+"/.git/objects")
		mkdir(t, w+"/"+name+"/.git/refs")
	}
	write(t, w, "tracked/.git/index", string(indexOf(20, "", ".env", "sub/.env", "token")))
	write(t, w, "free/.git/index", string(indexOf(20, "", ".env"))[:50])
	r, err := RulesWith(Changes{Hide: []string{"mine", "token"}})
	must(t, err)
	s, err := Scan(t.Context(), w, r)
	must(t, err)
	var got []string
	for _, h := range s.Hidden() {
		got = append(got, h.Path)
		if h.IsDir != (h.Path == "mine") {
			t.Errorf("%+v", h)
		}
	}
	if want := []string{"free/.env", "mine", "tracked/token"}; !slices.Equal(got, want) {
		t.Errorf("hidden %q, want %q", got, want)
	}
	if got := s.trees[0].secrets(&r); !maps.Equal(got, map[string]bool{"free/.env": true}) {
		t.Errorf("of the list: %v", got)
	}
}

// A name that was written by another program is refused if it cannot be what
// MarshalText makes.
func TestBadNames(t *testing.T) {
	for _, text := range []string{`\`, `a\`, `\x`, `\x1`, `\xzz`, `\q`, `\X41`} {
		var n Name
		if err := n.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %q", text, n)
		}
	}
}

// Rows that lie below another are dropped, and of two for one path the listed name
// stays.
func TestTidy(t *testing.T) {
	const folder, file = unix.S_IFDIR, unix.S_IFREG
	tr := &tree{
		Rows: []row{{Path: "d/e/f", Mode: file}, {Path: "b", Mode: file, Linked: true}, {Path: "d", Mode: folder}, {Path: "b", Mode: file}, {Path: "a/x", Mode: file}, {Path: "d2/x", Mode: file},
			{Path: "a", Mode: file}, {Path: "d", Mode: folder, Linked: true}},
		Marks: []mark{{Path: "z"}, {Path: "a"}}, Repos: []Name{"r", "q"},
	}
	tr.tidy()
	var got []string
	for _, r := range tr.Rows {
		got = append(got, string(r.Path))
		if r.Linked {
			t.Errorf("a hard link has the row of %s", r.Path)
		}
	}
	if want := []string{"a", "b", "d", "a/x", "d2/x"}; !slices.Equal(got, want) || tr.Marks[0].Path != "a" || tr.Repos[0] != "q" {
		t.Errorf("rows %q, marks %+v, repositories %q", got, tr.Marks, tr.Repos)
	}
}

// More than can be looked after is an error that says how to have less of it.
func TestLimitsOfASnapshot(t *testing.T) {
	rows := func(n int, linked bool) (list []row) {
		for range n {
			list = append(list, row{Linked: linked})
		}
		return list
	}
	for _, tt := range []struct {
		tree *tree
		what string
	}{
		{&tree{Rows: rows(MaxProtected, false), Hidden: rows(MaxProtected, false)}, ""},
		{&tree{Rows: rows(MaxProtected+1, false)}, "protected paths"},
		{&tree{Hidden: rows(MaxProtected+1, false)}, "secrets and sockets"},
		{&tree{Rows: rows(MaxHardLinks, true)}, ""},
		{&tree{Rows: rows(MaxHardLinks+1, true)}, "hard links"},
	} {
		err := (&Snapshot{trees: []*tree{tt.tree}}).check()
		var limit *LimitError
		if errors.As(err, &limit) != (tt.what != "") || limit != nil && (!strings.HasPrefix(limit.What, tt.what) || limit.Hint() == "" || (limit.Lifted != "") != (tt.what == "hard links")) {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
	for _, text := range []string{"", "{}", `{"Version": 2, "Trees": [{}]}`, `{"Version": 1}`, `{"Version": 1, "Trees": []}`} {
		if _, err := Load(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a snapshot", text)
		}
	}
}
