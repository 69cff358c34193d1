//go:build linux

package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func settled(t testing.TB, s *Snapshot) Report {
	t.Helper()
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Load(&b) // every test goes through the journal too
	if err != nil {
		t.Fatal(err)
	}
	r, err := again.Settle(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// quarantines are runs, and what of theirs is taken out of the tree.
var quarantines = []struct {
	name   string
	before func(t *testing.T, w string)
	during func(t *testing.T, w string)
	want   []string // what is quarantined, no more and no less
}{
	{"nothing when nothing was done", func(t *testing.T, w string) { repo(t, w); write(t, w, ".vscode/x", "") }, nil, nil},
	{"a directory as a whole when it was not there", nil, func(t *testing.T, w string) {
		write(t, w, "sub/.vscode/tasks.json", "{}")
		write(t, w, "x/.config/fish/config.fish", "")
		write(t, w, "x/.config/harmless", "")
	}, []string{"sub/.vscode", "x/.config/fish"}},
	{"links, sockets and pipes under a listed name", nil, func(t *testing.T, w string) {
		link(t, "/etc/passwd", w, "CLAUDE.md")
		link(t, "gh", w, ".github")
		if err := unix.Mkfifo(w+"/.envrc", 0o600); err != nil {
			t.Fatal(err)
		}
	}, []string{".envrc", ".github", "CLAUDE.md"}},
	{"not a new repository as git makes it, with a clone, a worktree and a submodule", nil, func(t *testing.T, w string) {
		repo(t, w+"/a")
		git(t, w, "clone", "-q", "a", "b")
		git(t, w, "clone", "-q", "--bare", "a", "c")
		git(t, w+"/b", "worktree", "add", "-q", "../tree")
		git(t, w+"/b", "submodule", "--quiet", "add", "../a", "dep")
		git(t, w+"/b", "branch", "AGENTS.md")
	}, nil},
	{"a hook in a new repository, and not the rest", nil, func(t *testing.T, w string) {
		repo(t, w+"/a")
		write(t, w, "a/.git/hooks/pre-commit", "#!/bin/sh\n")
	}, []string{"a/.git/hooks"}},
	{"a config that names a program", nil, func(t *testing.T, w string) {
		repo(t, w+"/a")
		git(t, w+"/a", "config", "core.fsmonitor", "touch x")
	}, []string{"a/.git/config"}},
	{"a config made in a repository that had none", func(t *testing.T, w string) {
		repo(t, w)
		if err := os.Remove(w + "/.git/config"); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, w string) { write(t, w, ".git/config", "[alias]\n\tst = !x\n") }, []string{".git/config"}},
	{"a directory that became a repository", func(t *testing.T, w string) {
		write(t, w, "d/config", "[core]\n\tsshCommand = x\n")
		write(t, w, "d/hooks/pre-push", "x")
	}, func(t *testing.T, w string) {
		write(t, w, "d/HEAD", "ref: refs/heads/main\n")
		mkdir(t, w+"/d/objects")
		mkdir(t, w+"/d/refs")
	}, []string{"d/config", "d/hooks"}},
	{"a pointer that leads out", nil, func(t *testing.T, w string) {
		write(t, w, "a/.git", "gitdir: /tmp\n")
		write(t, w, "b/.git", "gitdir: ../nowhere\n")
		link(t, "/tmp", w, "c/.git")
	}, []string{"a/.git", "b/.git", "c/.git"}},
	{"a common directory that leads out", nil, func(t *testing.T, w string) {
		write(t, w, "g/HEAD", "ref: refs/heads/main\n")
		write(t, w, "g/commondir", "/tmp\n")
	}, []string{"g/commondir"}},
	{"what was replaced on the host during the run", func(t *testing.T, w string) {
		write(t, w, ".npmrc", "a")
	}, func(t *testing.T, w string) {
		write(t, w, "new", "b")
		if err := os.Rename(w+"/new", w+"/.npmrc"); err != nil {
			t.Fatal(err)
		}
	}, []string{".npmrc"}},
	{"not a config that the user extended on the host, whatever was in it before", func(t *testing.T, w string) {
		repo(t, w)
		git(t, w, "config", "alias.st", "!status")
	}, func(t *testing.T, w string) { git(t, w, "config", "remote.x.url", "https://example.org/x") }, nil},
	{"a config that was given a command on top of what it had", func(t *testing.T, w string) {
		repo(t, w)
		git(t, w, "config", "alias.st", "!status")
	}, func(t *testing.T, w string) { git(t, w, "config", "--add", "alias.st", "!other") }, []string{".git/config"}},
	{"what hides in a directory that was made unreadable and unwritable", nil, func(t *testing.T, w string) {
		write(t, w, "x/y/.envrc", "")
		chmod(t, w+"/x/y/.envrc", 0)
		chmod(t, w+"/x/y", 0o000)
		chmod(t, w+"/x", 0o555)
	}, []string{"x/y/.envrc"}},
	{"not what lies in dependencies, but a repository's hook there", nil, func(t *testing.T, w string) {
		write(t, w, "node_modules/a/.editorconfig", "")
		repo(t, w+"/node_modules/b")
		write(t, w, "node_modules/b/.git/hooks/pre-commit", "")
	}, []string{"node_modules/b/.git/hooks"}},
	{"links among what git writes to, in old and in new repositories", func(t *testing.T, w string) {
		repo(t, w)
		link(t, "../README", w, ".git/from-before")
		link(t, "../README", w, ".git/replaced")
	}, func(t *testing.T, w string) {
		if err := os.Remove(w + "/.git/replaced"); err != nil {
			t.Fatal(err)
		}
		link(t, "/outside", w, ".git/replaced")
		link(t, "/outside", w, ".git/packed-refs")
		link(t, "../../x", w, ".git/logs/new")
		git(t, w, "init", "-q", "--bare", "bare")
		link(t, "/outside", w, "bare/refs/heads/x")
	}, []string{".git/logs/new", ".git/packed-refs", ".git/replaced", "bare/refs/heads/x"}},
	{"where git fetches from by a name that the configuration does not have", func(t *testing.T, w string) { repo(t, w); write(t, w, ".git/branches/old", "x") }, func(t *testing.T, w string) {
		write(t, w, ".git/remotes/origin", "URL: x\n")
		write(t, w, ".git/branches/up", "x")
		mkdir(t, w+"/.git/modules/x/branches")
	}, []string{".git/branches/up", ".git/remotes/origin"}},
	{"look-alikes", nil, func(t *testing.T, w string) {
		write(t, w, ".Git/hooks/post-checkout", "")
		write(t, w, "x/.GIT /config", "[core]\n\tpager = x\n")
	}, []string{".Git/hooks", "x/.GIT /config"}},
}

func TestSettleQuarantines(t *testing.T) {
	for _, tt := range quarantines {
		t.Run(tt.name, func(t *testing.T) {
			w := tempRoot(t)
			if tt.before != nil {
				tt.before(t, w)
			}
			s := scanned(t, w)
			if tt.during != nil {
				tt.during(t, w)
			}
			r := settled(t, s)
			var got []string
			for _, q := range r.Quarantined {
				rel, _ := filepath.Rel(w, string(q.Path))
				got = append(got, rel)
				if _, err := os.Lstat(string(q.Path)); err == nil {
					t.Errorf("%s is still there", q.Path)
				}
				if _, err := os.Lstat(string(q.Held)); err != nil {
					t.Errorf("%s is not held: %v", q.Path, err)
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(string(q.Held)), "../manifest.json")); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("quarantined %q, want %q\n%+v", got, tt.want, r.Quarantined)
			}
		})
	}
}

func chmod(t testing.TB, p string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if st, err := os.Lstat(p); err == nil && st.Mode()&os.ModeSymlink == 0 {
			os.Chmod(p, mode|0o700)
		}
	})
}

func TestSettleFlags(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "Makefile", "a")
	write(t, w, "package.json", "a")
	write(t, w, "same/package.json", "a")
	write(t, w, "go.mod", "a")
	write(t, w, "gradlew", "a")
	write(t, w, "node_modules/a/index.js", "a")
	s := scanned(t, w)
	write(t, w, "Makefile", "b")
	write(t, w, "same/package.json", "a")
	write(t, w, "sub/build.rs", "x")
	chmod(t, w+"/gradlew", 0o755)
	write(t, w, "node_modules/a/index.js", "b")
	write(t, w, "node_modules/b/index.js", "b")
	write(t, w, "tool", "")
	if err := unix.Chmod(w+"/tool", 0o4755); err != nil {
		t.Fatal(err)
	}
	link(t, "../../outside", w, "out")
	link(t, "Makefile", w, "in")
	if err := os.Remove(w + "/go.mod"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(w+"/sock", unix.S_IFSOCK|0o600, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range settled(t, s).Flagged {
		rel, _ := filepath.Rel(w, string(f.Path))
		got = append(got, rel+" "+string(f.Change))
		if f.Change == Changed && f.Files == 0 && (f.Before == "" || f.After == "" || f.Before == f.After) {
			t.Errorf("%s: sums %q and %q", rel, f.Before, f.After)
		}
	}
	want := []string{"Makefile changed", "go.mod removed", "gradlew mode", "node_modules changed",
		"out link-leaving-workspace", "sock socket", "sub/build.rs added", "tool setuid"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A tree that was made to hurt its reader.
func TestHostileTree(t *testing.T) {
	w := tempRoot(t)
	s := scanned(t, w)
	if err := unix.Mkfifo(w+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, ".", w, "loop")
	link(t, "/", w, "slash")
	write(t, w, ".npmrc", "")
	if err := os.Truncate(w+"/.npmrc", 1<<40); err != nil {
		t.Fatal(err)
	}
	write(t, w, "package.json", "")
	if err := os.Truncate(w+"/package.json", 1<<40); err != nil {
		t.Fatal(err)
	}
	deep(t, w, 3000, ".envrc")
	r := settled(t, s)
	if len(r.Quarantined) != 2 {
		t.Errorf("quarantined %d, want 2", len(r.Quarantined))
	}
	if again := settled(t, s); len(again.Quarantined) != 0 {
		t.Errorf("again: %+v", again.Quarantined)
	}

	next := scanned(t, w) // and as the start of another run
	if len(next.Warnings) != 1 || !strings.Contains(next.Warnings[0], "too deep") {
		t.Errorf("warnings %.300q", next.Warnings)
	}
	for _, p := range next.Protected() {
		if len(p.Path) > 4000 {
			t.Errorf("a path of %d bytes cannot be protected", len(p.Path))
		}
	}
	if r := settled(t, next); len(r.Quarantined) != 0 {
		t.Errorf("what was too deep from the start: %.300v", r.Quarantined)
	}
}

// Other runs go on in the same workspace while this one is scanned and settled.
func TestTreeChangesMeanwhile(t *testing.T) {
	w := tempRoot(t)
	for i := range 200 {
		write(t, w, fmt.Sprintf("d%d/e/f", i), "")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := fmt.Sprintf("%s/d%d", w, i%200)
			os.RemoveAll(d + "/e")
			os.Rename(d, d+"x")
			os.Symlink("/", d)
			os.Remove(d)
			os.MkdirAll(d+"/e/.vscode", 0o755)
			os.RemoveAll(d + "x")
		}
	})
	for range 20 {
		s, err := Scan(context.Background(), w, DefaultRules())
		if err == nil {
			_, err = s.Settle(context.Background(), t.TempDir())
		}
		if err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// deep makes n directories below each other, with a file at the end.
func deep(t *testing.T, w string, n int, file string) {
	t.Helper()
	fd, err := unix.Open(w, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := unix.Mkdirat(fd, "deeper", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "deeper", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	f, err := unix.Openat(fd, file, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(f)
}

// In the history of an agent no link out of it stays; others do.
func TestSettleEnclosed(t *testing.T) {
	w := tempRoot(t)
	link(t, "/etc", w, "was-there")
	mkdir(t, w+"/deep/er")
	time.Sleep(2 * clockSlack) // what is older was there
	s := scanned(t, w, enclosed())
	for name, target := range map[string]string{
		"memory": "/tmp/x", "a.jsonl": "../../.bashrc", "deep/er/up": "../..", "deep/round": "er/up/../../x",
		"node_modules/x": "/etc/passwd", "latest": "a.log", "deep/latest": "./../b.log", "whole": w + "/b.log", "beside": w + "-2/x",
	} {
		link(t, target, w, name)
	}
	r := settled(t, s)
	var got []string
	for _, q := range r.Quarantined {
		got = append(got, strings.TrimPrefix(string(q.Path), w+"/"))
		if q.Type != "link" || q.Link == "" {
			t.Errorf("%+v", q)
		}
	}
	if want := []string{"a.jsonl", "beside", "deep/round", "memory", "node_modules/x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Lstat(w + "/was-there"); err != nil {
		t.Error(err)
	}
}
