//go:build linux

package workspace

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// corpus are configurations on which readers might differ.
var corpus = []string{
	"",
	"[core]\n\tbare = false\n\trepositoryformatversion = 0\n",
	"\ufeff[core]\r\n\tbare = true\r\n",
	"[core] bare = true",
	"[core]bare",
	"[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
	"[remote \"o\\\"r\\\\i\"] url = a # c\n",
	"[user]\n\tname = \"A # B ; C\" ; d\n\temail = a\\\nb\n",
	"[user]\n\tname = a \"  b \" c   \n",
	"[user]\n\tname = a\tb\n",
	"[user]\n\tname = a\\\n[alias]\n\tx = !y\n",
	"[user]\n\tname = a\\\\\n[alias]\n\tx = !y\n",
	"[user]\n\tname = a # \\\n[alias]\n\tx = !y\n",
	"[user]\n\tname = \"a\n",
	"[user]\n\tname = a\\q\n",
	"[user]\r\tname = x\n",
	"[user]\n\tname = x\r[alias]\n\tx = !y\n",
	"[user]\x00name = x\n",
	"# c\\\n[alias] x = !y\n",
	"; [alias]\n[core] bare\n",
	"[core]\n[alias]x=!y\n",
	"[core][alias]x=!y\n",
	"[core \"a]\nb\"]\nx=1\n",
	"[core \"a\\\nb\"]\nx=1\n",
	"[core.Sub]\n\tx = 1\n",
	"[core.Sub \"a\"]\n\tx = 1\n",
	"[ core]\nx=1\n",
	"[core ]\nx=1\n",
	"[core \"a\" ]\nx=1\n",
	"[]\nx=1\n",
	"[\"a\"]\nx=1\n",
	"x=1\n",
	"[core]\n1x=1\n",
	"[core]\nx_y=1\n",
	"[core]\nx y=1\n",
	"[core]\nx\t =\t 1\n",
	"[core]\nX-Y=1\n",
	"[core]\n\tbare = false\n\x0b[alias]\n",
	"[core]\n\tbare = false\n\xff\n",
	"[core]\n\tbare = \xff\n",
	"[CORE]\n\tBARE = Yes\n",
	"[user]\n\tname = a\\tb\\nc\\bd\n",
	"[branch \"x\"]\n\tmerge = refs/heads/x\n\tremote = .\n",
	"[include]\n\tpath = x\n",
	"[core]\n\tworktree = ../../..\n",
}

// same compares our reading of data with git's. Where we call a configuration
// ordinary, both must be equal.
func same(t *testing.T, data []byte) {
	c, err := parseConfig(data)
	if err != nil || c.unusual {
		return // never inert
	}
	f := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(f, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "config", "--no-includes", "--list", "-z", "-f", f)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent"}
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return // git refuses it: nothing in it has any effect
	}
	var want, got []string
	if len(out) > 0 {
		want = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	for _, s := range c.settings {
		line := s.name()
		if !s.bare {
			line += "\n" + s.value
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwe read  %q\ngit reads %q", data, got, want)
	}
}

func TestConfigReadsAsGitDoes(t *testing.T) {
	for _, c := range corpus {
		same(t, []byte(c))
		same(t, append([]byte("[core]\n\tbare = false\n"), c...))
		same(t, []byte(strings.ReplaceAll(c, "\n", "\r\n")))
	}
}

// The settings of a configuration, and its syntax that git itself never writes.
func TestParseConfig(t *testing.T) {
	for _, tt := range []struct {
		config  string
		want    string // name, "=" and value of each setting; "error"
		unusual bool
	}{
		{"", "", false},
		{"\ufeff# x\n; [y]\n \t\n", "", false},
		{"[a]\r\n\tb = c\r\n", "a.b=c|", false},
		{"[a]\n\tb = c\r", "a.b=c|", true},
		{"[a]\n\tb = c\rd\n", "a.b=c\rd|", true},
		{"[a]\n\tb = c\x7f\n", "a.b=c\x7f|", true},
		{"[A \"B\"]\n\tC-1 = D\n", "a.B.c-1=D|", false},
		{"[a \t\"b\\\"c\\\\\"] d=1\n", "a.b\"c\\.d=1|", false},
		{"[a \"b\"]x=1\n[c]y=2\n", "a.b.x=1|c.y=2|", false},
		{"[a.B]\n\tc = d\n", "a.b.c=d|", true},
		{"[a]\nb\n", "a.b|", false},
		{"[a]\nb  \n", "a.b|", false},
		{"[a]\nb", "a.b|", false},
		{"[a]b=c # d\n", "a.b=c|", false},
		{"[a]b=c;d\n", "a.b=c|", false},
		{"[a]b=\"c # d\"\n", "a.b=c # d|", false},
		{"[a]b= \t c  d \t \ne\n", "a.b=c  d|a.e|", true},
		{"[a]b=\t c  d  \n", "a.b=c  d|", false},
		{"[a]b=\"  c  \"\n", "a.b=  c  |", false},
		{"[a]b=c\td\n", "a.b=c\td|", true},
		{"[a]b=c\\\nd\n", "a.b=cd|", true},
		{"[a]b=\\t\n", "a.b=\t|", true},
		{"[a]b=\\n\n", "a.b=\n|", true},
		{"[a]b=\\b\n", "a.b=\b|", true},
		{"[a]b=\\\\\\\"\n", "a.b=\\\"|", false},
		{"b=c\n", ".b=c|", true},
		{"[a]b=\\q\n", "error", false},
		{"[a]b=\"c\n", "error", false},
		{"[a", "error", false},
		{"[a\n]", "error", false},
		{"[]b=c\n", "error", false},
		{"[ \"a\"]b=c\n", "error", false},
		{"[a b]", "error", false},
		{"[a \"b\" ]", "error", false},
		{"[a \"b\"", "error", false},
		{"[a \"b\nc\"]", "error", false},
		{"[a \"b\\\nc\"]", "error", false},
		{"[a!]", "error", false},
		{"[a]1=c\n", "error", false},
		{"[a]b_c=d\n", "error", false},
		{"[a]b c\n", "error", false},
	} {
		c, err := parseConfig([]byte(tt.config))
		got := ""
		for _, s := range c.settings {
			if got += s.name(); !s.bare {
				got += "=" + s.value
			}
			got += "|"
		}
		if err != nil {
			got = "error"
		}
		if got != tt.want || c.unusual != tt.unusual {
			t.Errorf("%q: %q, unusual %t", tt.config, got, c.unusual)
		}
	}
	if _, err := parseConfig(bytes.Repeat([]byte("\n"), MaxConfig)); err != nil {
		t.Errorf("the largest one that is read: %v", err)
	}
	if _, err := parseConfig(bytes.Repeat([]byte("\n"), MaxConfig+1)); err == nil {
		t.Error("a larger one is read")
	}
}

// The values that harmless settings may have.
func TestHarmlessValues(t *testing.T) {
	long := strings.Repeat("x", 2049)
	for _, tt := range []struct {
		kind     string
		accepts  func(string) bool
		yes, not []string
	}{
		{"a boolean", boolean, []string{"true", "YES", "on", "1", "false", "No", "off", "0", ""}, []string{"2", "truer", "maybe"}},
		{"false", isFalse, []string{"FALSE", "no", "off", "0", ""}, []string{"true", "yes", "1", "x"}},
		{"a word or a boolean", words("keep", "warn"), []string{"keep", "WARN", "true", "no"}, []string{"keeps", "x", "2"}},
		{"text", text, []string{"", "José O'", long[:255]}[:1], []string{long[:256], "a`b", "$x", "a\x1b", "a\x7f", "it's", "a\nb"}},
		{"a name", text, []string{"José", "A. U. Thor", long[:255]}, nil},
		{"an address", harmlessURL,
			[]string{"https://example.org/x.git", "ssh://u@h:22/x", "git@h:a/b", "../a b", "/srv/x", "file:///srv/x", long[:2048]},
			[]string{"", "ext::sh -c x", "-x", long, "foo://x", "https://-x/y", "https://u@-x/y", "ssh://a b", "a@-h:x", "a;b", "h:$(x)"}},
	} {
		for _, v := range tt.yes {
			if !tt.accepts(v) {
				t.Errorf("%s: %.30q is refused", tt.kind, v)
			}
		}
		for _, v := range tt.not {
			if tt.accepts(v) {
				t.Errorf("%s: %.30q is accepted", tt.kind, v)
			}
		}
	}
}

// A setting that was there before the run stays, whatever it says; one without a
// value counts as true.
func TestRefuse(t *testing.T) {
	inside := func(v string) bool { return v == "in" }
	for _, tt := range []struct {
		s  setting
		ok bool
	}{
		{setting{section: "core", key: "worktree", value: "in"}, true},
		{setting{section: "core", key: "worktree", value: "out"}, false},
		{setting{section: "core", key: "worktree", value: "in", bare: true}, false},
		{setting{section: "core", key: "worktree", value: "in", sub: "x", hasSub: true}, false},
		{setting{section: "user", key: "worktree", value: "in"}, false},
		{setting{section: "core", key: "bare", bare: true}, true},
		{setting{section: "core", key: "compression", bare: true}, false},
		{setting{section: "core", key: "bare", value: "x"}, false},
		{setting{section: "remote", sub: "a", hasSub: true, key: "prune", value: "1"}, true},
		{setting{section: "remote", key: "prune", value: "1"}, false},
		{setting{section: "remote", sub: "a$b", hasSub: true, key: "prune", value: "1"}, false},
		{setting{section: "alias", key: "x", value: "y"}, false},
	} {
		if why := refusal(tt.s, inside); (why == "") != tt.ok {
			t.Errorf("%+v: %q", tt.s, why)
		}
	}
	const alias = "[alias]\n\tx = y\n"
	if why := configHarm([]byte(alias), inside, func(s setting) bool { return s.key == "x" }); why != "" {
		t.Errorf("an alias that was there: %s", why)
	}
}

func FuzzConfig(f *testing.F) {
	for _, c := range corpus {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("=")) && len(data) < 4096 {
			same(t, data)
		}
	})
}

func TestInert(t *testing.T) {
	inside := func(v string) bool { return !strings.HasPrefix(v, "/") }
	tests := []struct {
		name, config string
		ok           bool
	}{
		{"empty", "", true},
		{"what git init writes", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", true},
		{"what git clone writes", "[remote \"origin\"]\n\turl = /srv/a b/repo\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", true},
		{"an scp-like address", "[remote \"o\"]\n\turl = git@github.com:a/b.git\n", true},
		{"an ssh address", "[remote \"o\"]\n\turl = ssh://git@example.org:22/a/b.git\n", true},
		{"a name", "[user]\n\tname = Jos\u00e9 O. Example\n\temail = a@example.org\n", true},
		{"a worktree inside", "[core]\n\tworktree = ../../../dep\n", true},
		{"a worktree outside", "[core]\n\tworktree = /home/x\n", false},
		{"an alias", "[alias]\n\tst = !x\n", false},
		{"an unknown key", "[foo]\n\tbar = 1\n", false},
		{"hooks elsewhere", "[core]\n\thooksPath = x\n", false},
		{"a monitor", "[core]\n\tfsmonitor = x\n", false},
		{"no monitor", "[core]\n\tfsmonitor = false\n", true},
		{"an external transport", "[remote \"o\"]\n\turl = ext::sh -c x\n", false},
		{"a helper transport", "[remote \"o\"]\n\turl = foo://x\n", false},
		{"an option for an address", "[remote \"o\"]\n\turl = -upload-pack=x\n", false},
		{"an option for a host", "[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n", false},
		{"an option for a host after a user", "[remote \"o\"]\n\turl = a@-oProxyCommand=x:y\n", false},
		{"a remote that is asked for missing objects", "[remote \"o\"]\n\tpromisor\n", false},
		{"the same by a filter", "[remote \"o\"]\n\tpartialclonefilter = blob:none\n", false},
		{"the same by the extension", "[extensions]\n\tpartialclone = o\n", false},
		{"a remote that is not asked", "[remote \"o\"]\n\tpromisor = false\n", true},
		{"a program for a remote", "[remote \"o\"]\n\tuploadpack = x\n", false},
		{"a helper for a remote", "[remote \"o\"]\n\tvcs = x\n", false},
		{"a command in a name", "[user]\n\temail = $(touch x)\n", false},
		{"a command to update submodules", "[submodule \"x\"]\n\tupdate = !x\n", false},
		{"an include", "[include]\n\tpath = x\n", false},
		{"a rewritten address", "[url \"x\"]\n\tinsteadOf = y\n", false},
		{"an escape sequence", "[user]\n\tname = a\x1b[2J\n", false},
		{"joined lines", "[user]\n\tname = a\\\nb\n", false},
		{"the old form of a subsection", "[remote.origin]\n\turl = x\n", false},
		{"no configuration at all", "\x7fELF", false},
	}
	for _, tt := range tests {
		if why := configHarm([]byte(tt.config), inside, func(setting) bool { return false }); (why == "") != tt.ok {
			t.Errorf("%s: %q", tt.name, why)
		}
	}
}
