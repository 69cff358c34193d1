//go:build linux

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// userWorld is a home with files; none of the machine's variables leads elsewhere.
func userWorld(t *testing.T, files map[string]string) (home string) {
	home = t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"} {
		t.Setenv(name, "")
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOME", home)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// TestUserGit compares what a run gets with what git would read.
func TestUserGit(t *testing.T) {
	testenv.Need(t, testenv.Git, nil)
	for _, row := range []struct {
		name  string
		files map[string]string
		want  []string // settings, as git prints them
	}{
		{"nothing", nil, nil},
		{"what is harmless, and nothing else", map[string]string{".gitconfig": "[user]\nname = A \"B\\\"\\\\ ;#\"\nemail = a@x\nsigningkey = k\n[core]\neditor = vi\nautocrlf = input\n[alias]\nx = !y\n[init]\ndefaultBranch = trunk\ntemplateDir = ~/t\n"},
			[]string{"core.autocrlf\ninput", "init.defaultbranch\ntrunk", "user.email\na@x", "user.name\nA B\"\\ ;#"}},
		{"the home's file over that below .config", map[string]string{".config/git/config": "[user]\nname = x\nemail = x@x\n", ".gitconfig": "[user]\nname = y\n"},
			[]string{"user.email\nx@x", "user.name\ny"}},
		{"what is included, also by the place of the workspace", map[string]string{
			".gitconfig": "[include]\npath = a.inc\n[includeIf \"gitdir:~/work/\"]\npath = ~/w.inc\n[includeIf \"gitdir:~/play/\"]\npath = ~/p.inc\n[includeIf \"gitdir/i:**/WORK/**\"]\npath = i.inc\n[includeIf \"onbranch:**\"]\npath = p.inc\n[includeIf \"hasconfig:remote.*.url:**\"]\npath = p.inc\n",
			"a.inc":      "[push]\ndefault = current\n", "w.inc": "[user]\nname = w\n", "p.inc": "[user]\nname = p\n", "i.inc": "[pull]\nff = only\n"},
			[]string{"pull.ff\nonly", "push.default\ncurrent", "user.name\nw"}},
		{"values that are none", map[string]string{".gitconfig": "[user]\nname = \"a\\nb\"\nemail = \"\\t\"\n[push]\ndefault = $(x)\n[pull]\nrebase\n[init]\ndefaultBranch = -x\n"},
			[]string{"pull.rebase\ntrue"}},
		{"a file of the workspace, itself and by a link", map[string]string{".gitconfig": "[include]\npath = ~/work/repo/team.inc\n[include]\npath = ~/linked\n[user]\nname = own\n", "work/repo/team.inc": "[user]\nname = theirs\n"},
			[]string{"user.name\nown"}},
		{"a file that git refuses", map[string]string{".gitconfig": "[user\nname = x\n"}, nil},
		{"files that include each other", map[string]string{".gitconfig": "[include]\npath = ~/.gitconfig\n[user]\nname = x\n"}, []string{"user.name\nx"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			home := userWorld(t, row.files)
			if err := os.Symlink("work/repo/team.inc", home+"/linked"); err != nil {
				t.Fatal(err)
			}
			got := gitList(t, ReadUserGit(home, []string{home + "/work/repo"}).Config)
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("git reads %q, want %q", got, row.want)
			}
		})
	}
}

// TestUserGitDirectory: conditions are about the git directory, under the names that git has
// for it; what cannot be decided is said.
func TestUserGitDirectory(t *testing.T) {
	testenv.Need(t, testenv.Git, nil)
	const config = "[user]\nemail = own@x\n[includeIf \"gitdir:~/work/\"]\npath = w.inc\n[includeIf \"gitdir:~/linked/\"]\npath = l.inc\n"
	home := userWorld(t, map[string]string{".gitconfig": config, "w.inc": "[user]\nemail = w@x\n", "l.inc": "[user]\nemail = l@x\n", "forged/sub/.git": "gitdir: HOME/work/repo/.git\n"})
	for _, argv := range [][]string{
		{"init", "-q", home + "/work/repo"}, {"init", "-q", home + "/data/repo"},
		{"-C", home + "/work/repo", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "one"},
		{"-C", home + "/work/repo", "worktree", "add", "-q", home + "/away"},
		{"-C", home + "/data/repo", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", home + "/work/repo", "sub"},
	} {
		if out, err := exec.Command("git", argv...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", argv, err, out)
		}
	}
	if err := os.Symlink("data", home+"/linked"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, tree, pwd, want string }{
		{"a repository", "work/repo", "", "w@x"},
		{"a worktree elsewhere", "away", "", "w@x"},
		{"the repository by its name", "data/repo", "data/repo", "own@x"},
		{"the repository by a link", "data/repo", "linked/repo", "l@x"},
		{"below it", "data/repo", "linked/repo/.git", "l@x"},
		{"a submodule", "data/repo/sub", "", "own@x"},
		{"a .git file that the other does not know of", "forged/sub", "", "own@x"},
	} {
		t.Setenv("PWD", filepath.Join(home, row.pwd))
		got := ReadUserGit(home, []string{filepath.Join(home, row.tree)})
		if list := gitList(t, got.Config); !slices.Equal(list, []string{"user.email\n" + row.want}) || got.Undecided != "" {
			t.Errorf("%s: %q, want %s", row.name, list, row.want)
		}
	}
	for condition, want := range map[string]string{"hasconfig:remote.*.url:**": "by includeIf hasconfig", "onbranch:main": "by includeIf onbranch", "gitdir:/x": "", "what:ever": ""} {
		if err := os.WriteFile(home+"/.gitconfig", []byte("[includeIf \""+condition+"\"]\npath = w.inc\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ReadUserGit(home, []string{home + "/work/repo"}).Undecided; got != want {
			t.Errorf("%s: %q is not known", condition, got)
		}
	}
	for text, want := range map[string]string{"[user]\nname = x\n": "in HOME/.gitconfig, which programs inside can change,", "[core]\neol = lf\n": "", "[user": ""} {
		home := userWorld(t, map[string]string{"dot/gitconfig": text})
		if err := os.Symlink("dot/gitconfig", home+"/.gitconfig"); err != nil {
			t.Fatal(err)
		}
		if got := ReadUserGit(home, []string{home + "/dot"}); got.Undecided != strings.ReplaceAll(want, "HOME", home) || len(got.Config) > 0 {
			t.Errorf("%q in the workspace: %q is not known, and %q is taken over", text, got.Undecided, got.Config)
		}
	}
}

// TestUserGitIgnores: the list of what is ignored is taken over as text, a file of any other
// kind is not.
func TestUserGitIgnores(t *testing.T) {
	for _, row := range []struct{ name, config, want string }{
		{"where git looks for it", "", "*.tmp\n"},
		{"where the settings say", "[core]\nexcludesFile = ~/mine\n", "*.mine\n"},
		{"a file that is not there", "[core]\nexcludesFile = ~/none\n", ""},
		{"what an included file says", "[include]\npath = inc\n", "*.tmp\n"},
		{"a file of the workspace", "[core]\nexcludesFile = ~/work/x\n", ""},
		{"a device", "[core]\nexcludesFile = /dev/zero\n", ""},
		{"a directory", "[core]\nexcludesFile = ~/.config\n", ""},
		{"a large file", "[core]\nexcludesFile = ~/large\n", ""},
		{"no text", "[core]\nexcludesFile = ~/binary\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			home := userWorld(t, map[string]string{".gitconfig": row.config, ".config/git/ignore": "*.tmp\n", "mine": "*.mine\n", "inc": "[core]\nexcludesFile = ~/mine\n", "work/x": "x\n", "binary": "a\x00b", "large": strings.Repeat("x\n", maxIgnore)})
			if got := string(ReadUserGit(home, []string{home + "/work"}).Ignore); got != row.want {
				t.Errorf("%.20q, want %q", got, row.want)
			}
		})
	}
}

// FuzzQuoteValue: git reads a value that was written as it was.
func FuzzQuoteValue(f *testing.F) {
	for _, seed := range []string{`a`, `a b`, `"`, `\`, `a\nb`, ` a `, `#`, `;x`, "a\"\\", "[core]", `\"`, "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !plain(value) {
			return
		}
		r := userGit{values: map[string]string{"user.name": value}}
		c, err := parseConfig(r.write())
		if err != nil || len(c.settings) != 1 || c.settings[0].value != value {
			t.Fatalf("%q was written as %q and read as %+v, %v", value, r.write(), c.settings, err)
		}
		if got := gitList(t, r.write()); got != nil && !slices.Equal(got, []string{"user.name\n" + value}) {
			t.Fatalf("git reads %q", got)
		}
	})
}
