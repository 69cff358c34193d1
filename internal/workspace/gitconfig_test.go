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
		if why := inert([]byte(tt.config), inside, func(setting) bool { return false }); (why == "") != tt.ok {
			t.Errorf("%s: %q", tt.name, why)
		}
	}
}
