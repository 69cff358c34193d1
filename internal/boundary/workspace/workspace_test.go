//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs git in dir with no configuration but the repository's own.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// repo makes a repository with one commit.
func repo(t testing.TB, dir string) {
	t.Helper()
	mkdir(t, dir)
	git(t, dir, "init", "-q")
	write(t, dir, "README", "x")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
}

func mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, root, name, text string) {
	t.Helper()
	p := filepath.Join(root, name)
	mkdir(t, filepath.Dir(p))
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, root, name string) {
	t.Helper()
	p := filepath.Join(root, name)
	mkdir(t, filepath.Dir(p))
	if err := os.Symlink(target, p); err != nil {
		t.Fatal(err)
	}
}

// tempRoot is a temporary directory with no link on the way to it.
func tempRoot(t testing.TB) string {
	t.Helper()
	p, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func scanned(t testing.TB, root string, options ...Option) *Snapshot {
	t.Helper()
	s, err := Scan(context.Background(), root, DefaultRules(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rowPaths are the paths of the protected rows; those outside the workspace in full.
func rowPaths(s *Snapshot) []string {
	var out []string
	for _, p := range s.Protected() {
		out = append(out, filepath.Join(p.Root, p.Path))
	}
	return out
}

// finds are trees, and what in them is protected.
var finds = []struct {
	name string
	make func(t *testing.T, w string)
	want []string // paths that are protected
	free []string // paths that are not, and not below one that is
}{
	{"a repository's config and hooks, while the rest stays writable", func(t *testing.T, w string) {
		repo(t, w)
		write(t, w, ".git/info/attributes", "")
	}, []string{".git/config", ".git/hooks", ".git/info/attributes"}, []string{".git/HEAD", ".git/objects", ".git/index", ".git/info/exclude"}},
	{"a nested repository that .gitignore hides", func(t *testing.T, w string) {
		repo(t, w)
		write(t, w, ".gitignore", "*\n")
		repo(t, w+"/a/b")
	}, []string{".git/config", "a/b/.git/config", "a/b/.git/hooks"}, nil},
	{"a bare repository under any name", func(t *testing.T, w string) {
		mkdir(t, w)
		git(t, w, "init", "-q", "--bare", "store")
	}, []string{"store/config", "store/hooks"}, []string{"store/objects"}},
	{"a worktree's pointer and its directory in the repository", func(t *testing.T, w string) {
		repo(t, w+"/main")
		git(t, w+"/main", "worktree", "add", "-q", "../tree")
	}, []string{"tree/.git", "main/.git/worktrees/tree/commondir", "main/.git/worktrees/tree/gitdir"}, []string{"main/.git/worktrees/tree/HEAD"}},
	{"a submodule's pointer, config and hooks", func(t *testing.T, w string) {
		repo(t, w+"/lib")
		repo(t, w+"/main")
		git(t, w+"/main", "submodule", "--quiet", "add", "../lib", "dep")
	}, []string{"main/dep/.git", "main/.git/modules/dep/config", "main/.git/modules/dep/hooks"}, nil},
	{"look-alike spellings", func(t *testing.T, w string) {
		write(t, w, ".VSCode/tasks.json", "")
		write(t, w, "a/.g\u200cit/config", "")
		write(t, w, "b/GIT~1/config", "")
		write(t, w, "c/.git. ./config", "")
		write(t, w, "d/.git::$INDEX_ALLOCATION/config", "")
		write(t, w, "e/Claude.MD", "")
		write(t, w, "f/.vſcode/x", "")
	}, []string{".VSCode", "a/.g\u200cit/config", "b/GIT~1/config", "c/.git. ./config", "d/.git::$INDEX_ALLOCATION/config", "e/Claude.MD", "f/.vſcode"}, nil},
	{"names of several components", func(t *testing.T, w string) {
		write(t, w, ".github/workflows/ci.yml", "")
		write(t, w, ".github/CODEOWNERS", "")
		write(t, w, "x/.config/fish/config.fish", "")
		write(t, w, "x/.config/other", "")
	}, []string{".github/workflows", "x/.config/fish"}, []string{".github/CODEOWNERS", "x/.config/other"}},
	{"globs", func(t *testing.T, w string) {
		write(t, w, "a.code-workspace", "")
		write(t, w, "azure-pipelines.release.yaml", "")
		write(t, w, "lefthook.toml", "")
	}, []string{"a.code-workspace", "azure-pipelines.release.yaml", "lefthook.toml"}, nil},
	{"a link under a protected name, each link on its way and its end", func(t *testing.T, w string) {
		write(t, w, "real/tasks.json", "")
		link(t, "../hop", w, "sub/.vscode")
		link(t, "real", w, "hop")
	}, []string{"sub/.vscode", "hop", "real"}, nil},
	{"a hooks directory that is a link", func(t *testing.T, w string) {
		repo(t, w)
		if err := os.RemoveAll(w + "/.git/hooks"); err != nil {
			t.Fatal(err)
		}
		write(t, w, "tracked/pre-commit", "")
		link(t, "../tracked", w, ".git/hooks")
	}, []string{".git/hooks", "tracked"}, nil},
	{"the end of a link inside a protected directory", func(t *testing.T, w string) {
		write(t, w, "scripts/hook.sh", "")
		link(t, w+"/scripts/hook.sh", w, ".husky/pre-commit")
	}, []string{".husky", "scripts/hook.sh"}, []string{"scripts"}},
	{"a link that puts a whole directory into place", func(t *testing.T, w string) {
		write(t, w, "stuff/config.toml", "")
		link(t, "stuff", w, ".cargo")
	}, []string{".cargo", "stuff"}, nil},
	{"the target of core.hooksPath and of include.path", func(t *testing.T, w string) {
		repo(t, w)
		write(t, w, "tools/hooks/pre-commit", "")
		write(t, w, "inc.cfg", "")
		git(t, w, "config", "core.hooksPath", "tools/hooks")
		git(t, w, "config", "include.path", "../inc.cfg")
	}, []string{"tools/hooks", "inc.cfg"}, []string{"tools"}},
	{"what an included file names", func(t *testing.T, w string) {
		repo(t, w)
		write(t, w, "inc/a.cfg", "[include]\n\tpath = b.cfg\n")
		write(t, w, "inc/b.cfg", "[core]\n\thooksPath = deep/hooks\n[include]\n\tpath = a.cfg\n")
		write(t, w, "deep/hooks/pre-push", "")
		git(t, w, "config", "includeIf.gitdir:"+w+"/.path", "../inc/a.cfg")
	}, []string{"inc/a.cfg", "inc/b.cfg", "deep/hooks"}, nil},
	{"what the settings of agents name in a command", func(t *testing.T, w string) {
		for _, f := range []string{"scripts/lint.sh", "tools/server", "server.js", "src/main.ts", "p/hook.py", "p/deep/key.sh", "docs/read.md", "n.sh", "p/run"} {
			write(t, w, f, "")
		}
		write(t, w, ".claude/settings.json", `{"permissions": {"allow": ["Edit(src/main.ts)"]}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/scripts/lint.sh --fix"}]}]}}`)
		write(t, w, ".mcp.json", `{"mcpServers": {"a": {"command": "./tools/server"}, "b": {"command": "node", "args": ["server.js", "docs"]}}}`)
		write(t, w, "p/.codex/config.toml", "model = \"docs/read.md\"\nnotify = [\"python3\", \"hook.py\"]\n")
		write(t, w, "p/.claude/settings.local.json", `{"apiKeyHelper": "sh deep/key.sh"}`)
		write(t, w, "p/.claude/settings.json", `{"statusLine": {"type": "command", "command": "bash -e -u run"}}`)
		write(t, w, ".cursor/mcp.json", "{ \"command\": \"./n.sh\", } // with a comma and a comment")
	}, []string{"scripts/lint.sh", "tools/server", "server.js", "p/hook.py", "p/deep/key.sh", "n.sh", "p/run"}, []string{"src/main.ts", "docs/read.md", "docs"}},
	{"names of branches are not names of files", func(t *testing.T, w string) {
		repo(t, w)
		git(t, w, "branch", "CLAUDE.md")
		git(t, w, "branch", "x/AGENTS.md")
	}, []string{".git/config"}, []string{".git/refs/heads/CLAUDE.md", ".git/logs/refs/heads/CLAUDE.md"}},
	{"dependencies are left replaceable but for repositories", func(t *testing.T, w string) {
		write(t, w, "node_modules/a/.editorconfig", "")
		write(t, w, "node_modules/a/.vscode/settings.json", "")
		repo(t, w+"/node_modules/b")
	}, []string{"node_modules/b/.git/config"}, []string{"node_modules/a/.editorconfig", "node_modules/a/.vscode"}},
	{"names that are not text", func(t *testing.T, w string) {
		write(t, w, "a\nb/\xff\xfe/.envrc", "")
	}, []string{"a\nb/\xff\xfe/.envrc"}, nil},
}

func TestScanFinds(t *testing.T) {
	for _, tt := range finds {
		t.Run(tt.name, func(t *testing.T) {
			w := tempRoot(t)
			tt.make(t, w)
			got := rowPaths(scanned(t, w))
			for _, p := range tt.want {
				if !slices.Contains(got, p) {
					t.Errorf("%q is not protected; got %q", p, got)
				}
			}
			for _, p := range tt.free {
				for _, g := range got {
					if p == g || strings.HasPrefix(p, g+"/") {
						t.Errorf("%q is protected by %q", p, g)
					}
				}
			}
		})
	}
}

func TestScanGlobalHooksPath(t *testing.T) {
	w := tempRoot(t)
	repo(t, w)
	write(t, w, "my/hooks/x", "")
	write(t, w, "abs/x", "")
	s := scanned(t, w,
		GitConfig("/home/x/.gitconfig", "/home/x", []byte("[core]\n\thooksPath = my/hooks\n")),
		GitConfig("/etc/gitconfig", "", []byte("[include]\n\tpath = "+w+"/abs\n")),
		GitConfig(w+"/h/.gitconfig", w, []byte("[core]\n\thooksPath = ~/later\n")))
	for _, p := range []string{"my/hooks", "abs"} {
		if !slices.Contains(rowPaths(s), p) {
			t.Errorf("%s is not protected: %q", p, rowPaths(s))
		}
	}
	write(t, w, "later/pre-commit", "")
	if r := settled(t, s); len(r.Quarantined) != 1 || string(r.Quarantined[0].Path) != w+"/later" {
		t.Errorf("a hooks directory that was absent: %+v", r)
	}

	s = scanned(t, w, GitConfig("/etc/gitconfig", "", []byte("[core]\n\thooksPath = no/such/dir\n")))
	write(t, w, "evil/such/dir/pre-commit", "")
	link(t, "evil", w, "no")
	if r := settled(t, s); len(r.Quarantined) != 1 || string(r.Quarantined[0].Path) != w+"/no" {
		t.Errorf("a link on the way to an absent hooks directory: %+v", r)
	}
}

func TestScanWorktreeOfRepositoryOutside(t *testing.T) {
	base := tempRoot(t)
	repo(t, base+"/main")
	git(t, base+"/main", "worktree", "add", "-q", "../w")
	s := scanned(t, base+"/w")
	if e := s.External(); len(e) != 1 || e[0].Path != base+"/main/.git" {
		t.Fatalf("External = %+v, warnings %q", e, s.Warnings)
	}
	for _, p := range []string{".git", base + "/main/.git/config", base + "/main/.git/hooks", base + "/main/.git/worktrees/w/gitdir"} {
		if !slices.Contains(rowPaths(s), p) {
			t.Errorf("%s is not protected: %q", p, rowPaths(s))
		}
	}

	// A pointer that its target does not return shows nothing.
	mkdir(t, base+"/evil")
	write(t, base, "evil/.git", "gitdir: "+base+"/main/.git/worktrees/w\n")
	s = scanned(t, base+"/evil")
	if len(s.External()) != 0 || len(s.Warnings) == 0 {
		t.Errorf("a forged pointer exposes %+v, warnings %q", s.External(), s.Warnings)
	}
	mkdir(t, base+"/evil2")
	write(t, base, "evil2/.git", "gitdir: "+base+"/main/.git\n")
	if s = scanned(t, base+"/evil2"); len(s.External()) != 0 {
		t.Errorf("a forged pointer to a repository exposes %+v", s.External())
	}
}

func TestScanSubmoduleOfRepositoryOutside(t *testing.T) {
	base := tempRoot(t)
	repo(t, base+"/lib")
	repo(t, base+"/main")
	git(t, base+"/main", "submodule", "--quiet", "add", "../lib", "dep")
	s := scanned(t, base+"/main/dep")
	if e := s.External(); len(e) != 1 || e[0].Path != base+"/main/.git/modules/dep" {
		t.Fatalf("External = %+v, warnings %q", e, s.Warnings)
	}
}

func TestScanHardLinks(t *testing.T) {
	base := tempRoot(t)
	w := base + "/w"
	write(t, base, "canary", "x")
	write(t, w, "inside", "x")
	write(t, w, ".npmrc", "x")
	for _, l := range [][2]string{{base + "/canary", w + "/leak"}, {w + "/inside", w + "/also"}, {w + "/.npmrc", w + "/alias"}} {
		if err := os.Link(l[0], l[1]); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, p := range scanned(t, w).HardLinks() {
		got = append(got, p.Path)
	}
	if want := []string{"alias", "leak"}; !slices.Equal(got, want) {
		t.Errorf("HardLinks = %q, want %q", got, want)
	}
}

// A store's tree of links becomes a few rows, and git's object directories stay
// writable.
func TestScanManyHardLinks(t *testing.T) {
	base := tempRoot(t)
	w := base + "/w"
	for i := range 400 {
		name := fmt.Sprintf("p%d/lib/%d.js", i%20, i)
		write(t, base, "store/"+name, "x")
		p := filepath.Join(w, "node_modules/.store", name)
		mkdir(t, filepath.Dir(p))
		if err := os.Link(filepath.Join(base, "store", name), p); err != nil {
			t.Fatal(err)
		}
	}
	write(t, w, "node_modules/.store/p3/own", "x")
	repo(t, base+"/origin")
	git(t, w, "clone", "-q", "../origin", "clone")
	s := scanned(t, w)
	got := map[string]bool{}
	for _, p := range s.HardLinks() {
		got[p.Path] = true
		if strings.HasPrefix(p.Path, "clone/.git/objects/") && p.IsDir {
			t.Errorf("%s cannot be written to", p.Path)
		}
	}
	if len(got) > 30 || !got["node_modules/.store/p3/lib"] || !got["node_modules/.store/p4"] {
		t.Errorf("%d rows: %v", len(got), got)
	}
}

// A directory that cannot be read is read-only, until a scan has seen it.
func TestScanClosedDirectory(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "x/.git/hooks/pre-commit", "")
	chmod(t, w+"/x", 0)
	s := scanned(t, w)
	want := []string{"x"}
	if os.Geteuid() == 0 {
		want = []string{"x/.git/hooks"} // nothing is unreadable to root
	} else if len(s.Warnings) != 1 {
		t.Errorf("warnings %q", s.Warnings)
	}
	if got := rowPaths(s); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	chmod(t, w+"/x", 0o755)
	if r := settled(t, s); len(r.Quarantined) != 0 {
		t.Errorf("quarantined what was there: %+v", r.Quarantined)
	}
}

func TestScanLimits(t *testing.T) {
	w := tempRoot(t)
	for i := range MaxProtected + 1 {
		write(t, w, fmt.Sprintf("d%d/.envrc", i), "")
	}
	_, err := Scan(context.Background(), w, DefaultRules())
	var limit *LimitError
	if !errors.As(err, &limit) || !strings.Contains(limit.Hint(), "workspace.unprotect") {
		t.Errorf("err = %v", err)
	}
}
