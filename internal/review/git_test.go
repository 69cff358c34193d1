//go:build linux

package review

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/testenv"
)

// git runs git without any user's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// copied makes what the run has a copy of the workspace, and the lists of both.
// What is changed then is changed at another time.
func (f *field) copied() {
	f.t.Helper()
	f.listed()
	time.Sleep(40 * time.Millisecond) // four ticks of the clock of inodes, at the slowest
}

func (f *field) listed() {
	f.t.Helper()
	upper := f.dir + "/upper"
	if _, err := workspace.CopyTree(f.t.Context(), f.ws, upper, 0); err != nil {
		f.t.Fatal(err)
	}
	for name, root := range map[string]string{workspace.StartFile: f.ws, workspace.CopyFile: upper} {
		w, err := os.Create(f.dir + "/" + name)
		if err == nil {
			err = workspace.WriteFacts(f.t.Context(), root, time.Now().UnixNano(), w)
		}
		if err != nil {
			f.t.Fatal(err)
		}
		w.Close()
	}
}

func gitField(t *testing.T) (*field, string) {
	testenv.Need(t, testenv.Git, nil)
	f := newField(t, Copy)
	git(t, f.ws, "init", "-q", "-b", "main")
	f.make(f.ws, "a=1\n", "b=1\n")
	git(t, f.ws, "add", ".")
	git(t, f.ws, "commit", "-qm", "first")
	f.copied()
	return f, f.dir + "/upper"
}

func TestHistoryOfGit(t *testing.T) {
	f, up := gitField(t)
	f.make(up, "a=2\n", "c=3\n")
	git(t, up, "add", ".")
	git(t, up, "commit", "-qm", "second\x1b[31m")
	git(t, up, "rm", "-q", "b")
	git(t, up, "commit", "-qm", "third")
	git(t, up, "branch", "side")
	git(t, up, "config", "core.hooksPath", "/tmp/x")
	f.make(up, "0755 .git/hooks/pre-commit=#!/bin/sh\n")
	s := f.collect()
	want(t, lines(s),
		`history ".git" dir→dir [git]`,
		`modified ".git/config" [config] [git]`,
		`added ".git/hooks/pre-commit" [hooks] [git] [program]`,
		`modified "a"`, `deleted "b" file→none`, `added "c"`)
	h := s.Find(".git").History
	if h.Branch != "main" || len(h.Commits) != 2 || h.Commits[0].Subject != "third" || h.More || len(h.Refs) != 2 || h.Commits[0].Author != "A <a@example.org>" {
		t.Errorf("%+v", h)
	}
	r := f.apply(s, Options{Safe: true})
	if len(r.Applied) != 3 {
		t.Errorf("%+v", r)
	}
	if err := s.Decide(s.Find(".git"), Accept); err != nil {
		t.Fatal(err)
	}
	r = f.apply(s, Options{})
	if len(r.Refused)+len(r.Conflicts) > 0 {
		t.Errorf("%+v", r)
	}
	if log := git(t, f.ws, "log", "--format=%s"); strings.Count(log, "\n") != 3 {
		t.Errorf("log: %q", log)
	}
	if st := git(t, f.ws, "status", "--porcelain"); st != "" {
		t.Errorf("status: %q", st)
	}
	git(t, f.ws, "fsck", "--full", "--strict")
	if _, err := os.Lstat(f.ws + "/.git/index.lock"); err == nil {
		t.Error("the lock is still there")
	}
	if out := git(t, f.ws, "config", "--get-all", "core.bare"); out != "false\n" {
		t.Errorf("config: %q", out)
	}
	s.Close()
	s = f.collect()
	if c := s.Find(".git"); c == nil || !c.Applied {
		t.Errorf("looked at again:\n%s", strings.Join(lines(s), "\n"))
	}
}

func TestHistoryConflicts(t *testing.T) {
	f, up := gitField(t)
	f.make(up, "a=2\n")
	git(t, up, "commit", "-qam", "of the run")
	s := f.collect()
	if err := s.Decide(s.Find(".git"), Accept); err != nil {
		t.Fatal(err)
	}
	f.make(f.ws, ".git/index.lock=")
	before := tree(t, f.ws)
	r := f.apply(s, Options{})
	want(t, tree(t, f.ws), before...)
	if len(r.Conflicts) != 1 || !strings.Contains(r.Conflicts[0].Why, "git is at work") {
		t.Errorf("with a lock: %+v", r)
	}
	if left, err := os.ReadDir(f.dir + "/ready"); err != nil || len(left) > 0 {
		t.Errorf("with a lock, left behind: %v, %v", left, err)
	}
	os.Remove(f.ws + "/.git/index.lock")
	f.make(f.ws, "a=3\n")
	git(t, f.ws, "commit", "-qam", "of the user")
	before = tree(t, f.ws)
	r = f.apply(s, Options{})
	after := slices.DeleteFunc(tree(t, f.ws), func(l string) bool { return strings.HasSuffix(l, "/") })
	before = slices.DeleteFunc(before, func(l string) bool { return strings.HasSuffix(l, "/") })
	want(t, after, before...)
	if len(r.Conflicts) != 1 {
		t.Errorf("with a commit of the user: %+v", r)
	}
}

// Git would take an object with a wrong name for what the name says, now or when the
// object that should have that name is written.
func TestObjectsThatLie(t *testing.T) {
	f, up := gitField(t)
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	fmt.Fprintf(z, "blob 4\x00evil")
	z.Close()
	f.make(up, ".git/objects/ab/"+strings.Repeat("cd", 19)+"="+b.String())
	s := f.collect()
	if err := s.Decide(s.Find(".git"), Accept); err != nil {
		t.Fatal(err)
	}
	r := f.apply(s, Options{})
	if len(r.Refused) != 1 || !strings.Contains(r.Refused[0].Why, "does not match its name") {
		t.Errorf("%+v", r)
	}
}

// An index with a name that git never puts there is not applied, wherever it is;
// what else the run did in the repository is.
func TestPoisonedIndex(t *testing.T) {
	f, up := gitField(t)
	entry := append(append(make([]byte, 60), 0, 20), ".git/hooks/post-push\x00\x00\x00\x00\x00\x00"...)
	index := string(append(append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), entry...), make([]byte, 20)...))
	git(t, up, "commit", "-q", "--allow-empty", "-m", "second")
	git(t, up, "init", "-q", "--bare", "other.git")
	for _, at := range []string{"/.git/index", "/.git/sharedindex.1", "/other.git/index"} {
		if err := os.WriteFile(up+at, []byte(index), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := f.collect()
	for _, p := range []string{".git/index", ".git/sharedindex.1", "other.git/index"} {
		c := s.Find(p)
		if c == nil || !strings.Contains(c.Cannot, `".git/hooks/post-push"`) || !c.Flagged() {
			t.Errorf("%s: %+v", p, c)
		}
	}
	if c := s.Find(".git"); c == nil || c.Cannot != "" {
		t.Errorf("history: %+v", c)
	}
}

// A new name in the index of a secret or of a file that a host obeys is a flag of the
// history; a name that the index had before, or that is in the workspace, is not.
func TestIndexNames(t *testing.T) {
	testenv.Need(t, testenv.Git, nil)
	f := newField(t, Copy)
	git(t, f.ws, "init", "-q", "-b", "main")
	f.make(f.ws, "a=1\n", ".env.prod=tracked\n", "AGENTS.md=tracked\n", ".cursorrules=not tracked\n", "sub/.gitignore=\n")
	git(t, f.ws, "add", "a", ".env.prod", "AGENTS.md", "sub")
	git(t, f.ws, "commit", "-qm", "first")
	git(t, f.ws, "worktree", "add", "-q", "tree")
	f.make(f.ws, "sub/.env=A=1\n", "cert.pem=public\n", "key.pem=PRIVATE KEY\n", "tree/.env=B=1\n", "AGENTS.md=changed\n")
	f.copied()
	up := f.dir + "/upper"
	f.make(up, ".env.new=made inside\n")
	git(t, up, "add", "-f", ".cursorrules", ".env.new")
	blob := strings.TrimSpace(git(t, up, "hash-object", "-w", "a"))
	for _, n := range []string{"sub/.env", "cert.pem", "key.pem", ".vscode/tasks.json"} {
		git(t, up, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+n)
	}
	cmd := exec.Command("git", "-C", up, "update-index", "--add", "--cacheinfo", "100644,"+blob+",.env")
	cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+up+"/.git/worktrees/tree/index")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := f.collect()
	reasons := func(path string) (out []string) {
		c := s.Find(path)
		if c == nil || c.Cannot != "" {
			t.Fatalf("%s: %+v", path, c)
		}
		for _, fl := range c.Flags {
			if strings.Contains(fl.Reason, "index") {
				if hidden := strings.Contains(fl.Reason, "which was hidden"); hidden != (fl.Rule != ".vscode") {
					t.Errorf("%s: %s", fl.Rule, fl.Reason)
				}
				out = append(out, fl.Rule+" "+strings.SplitN(fl.Reason, `"`, 3)[1])
			}
		}
		return out
	}
	want(t, reasons(".git"), "*.pem key.pem", ".env sub/.env", ".vscode .vscode")
	want(t, reasons(".git/worktrees/tree/index"), ".env tree/.env")
}

// What makes git do or show something is judged as in a run that writes to the
// workspace: files of an operation under way, marks of an index, replaced objects.
func TestGitStateAndView(t *testing.T) {
	f, upper := gitField(t)
	f.make(upper, ".git/sequencer/opts=[options]\n\tstrategy = a/../evil\n", ".git/rebase-apply/apply-opt=\n", ".git/worktrees/w/rebase-merge/git-rebase-todo=exec evil\n")
	git(t, upper, "replace", "HEAD", git(t, upper, "commit-tree", "-m", "x", "HEAD^{tree}")[:40])
	git(t, upper, "pack-refs", "--all")
	git(t, upper, "replace", "HEAD^{tree}", git(t, upper, "mktree", "--missing")[:40], "-f")
	tracked, _, _ := strings.Cut(git(t, upper, "ls-files"), "\n")
	git(t, upper, "update-index", "--skip-worktree", tracked)
	s := f.collect()
	for path, want := range map[string]bool{".git/sequencer/opts": true, ".git/rebase-apply/apply-opt": false, ".git/worktrees/w/rebase-merge/git-rebase-todo": true} {
		if c := s.Find(path); c == nil || (c.Cannot != "") != want {
			t.Errorf("%s: not applied: %+v", path, c)
		}
	}
	var flags []string
	for _, flag := range s.Find(".git").Flags {
		flags = append(flags, flag.Reason)
	}
	for _, want := range []string{"as skip-worktree, \"" + tracked, "1 more refs/replace", "packed-refs: "} {
		if !strings.Contains(strings.Join(flags, "\n"), want) {
			t.Errorf("no flag with %q: %q", want, flags)
		}
	}
}

// The lock of a repository is made where no run can write, and is compared with what
// is in place: a run that is alive may put its own there.
func TestLockOfGitIsExchanged(t *testing.T) {
	for name, swap := range map[string]bool{"left alone": false, "exchanged": true} {
		t.Run(name, func(t *testing.T) {
			f, upper := gitField(t)
			f.make(upper, "c=1\n")
			git(t, upper, "add", ".")
			git(t, upper, "commit", "-qm", "second")
			s := f.collect()
			f.acceptAll(s)
			lock := f.ws + "/.git/index.lock"
			hook := func(op string, done bool) error {
				if seen, _ := filepath.Glob(f.ws + "/.git/" + tempPrefix + "*"); len(seen) > 0 {
					t.Errorf("before %s, done %t: %q is prepared where a run can write", op, done, seen)
				}
				if _, err := os.Lstat(lock); swap && op == "rename" && done && err == nil {
					os.Remove(lock)
					return os.Symlink("../a", lock)
				}
				return nil
			}
			r := f.apply(s, Options{hook: hook})
			if conflict := slices.ContainsFunc(append(r.Refused, problems(r.Conflicts)...), func(p Problem) bool { return strings.Contains(p.Why, "index.lock") }); conflict != swap {
				t.Errorf("%+v", r)
			}
			if _, err := os.Lstat(lock); (err == nil) != swap {
				t.Errorf("the lock: %v", err)
			}
		})
	}
}

func problems(list []Conflict) (out []Problem) {
	for _, c := range list {
		out = append(out, Problem{c.Path, c.Why})
	}
	return out
}

// A list of reftables that names none replaces nothing, and no note of it says so.
func TestTablesThatReplaceNothing(t *testing.T) {
	f, up := gitField(t)
	f.make(up, ".git/reftable/tables.list=")
	s := f.collect()
	c := s.Find(".git/reftable/tables.list")
	if c == nil {
		t.Fatalf("the list is no change: %q", lines(s))
	}
	for _, flag := range c.Flags {
		if strings.Contains(flag.Reason, "refs/replace") {
			t.Errorf("flag %+v", flag)
		}
	}
}

// Two repositories are applied, one after the other.
func TestHistoriesOfTwo(t *testing.T) {
	testenv.Need(t, testenv.Git, nil)
	f := newField(t, Copy)
	for _, dir := range []string{f.ws, f.ws + "/sub"} {
		f.make(dir, "a=1\n")
		git(t, dir, "init", "-q", "-b", "main")
		git(t, dir, "add", "a")
		git(t, dir, "commit", "-qm", "first")
	}
	f.copied()
	for _, dir := range []string{"/upper", "/upper/sub"} {
		f.make(f.dir+dir, "b=1\n")
		git(t, f.dir+dir, "add", "b")
		git(t, f.dir+dir, "commit", "-qm", "second")
	}
	s := f.collect()
	f.acceptAll(s)
	if r := f.apply(s, Options{}); !r.Settled || len(r.Refused)+len(r.Conflicts) > 0 {
		t.Errorf("%+v", r)
	}
	for _, dir := range []string{f.ws, f.ws + "/sub"} {
		if log := git(t, dir, "log", "--format=%s"); log != "second\nfirst\n" {
			t.Errorf("%s: %q", dir, log)
		}
	}
}
