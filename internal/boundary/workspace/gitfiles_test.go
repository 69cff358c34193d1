//go:build linux

package workspace

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// decided is a row of gitfiles.tsv.
type decided struct{ path, decision, source, what string }

func gitFileTable(t *testing.T) []decided {
	t.Helper()
	var table []decided
	for _, line := range dataLines(t, "gitfiles.tsv") {
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			t.Fatalf("%q has not four fields", line)
		}
		table = append(table, decided{f[0], f[1], f[2], f[3]})
	}
	return table
}

func dataLines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// decision finds the row for a path in a git directory; nil for none.
func decision(table []decided, path string) *decided {
	for i := range table {
		if globMatch(table[i].path, []byte(path)) {
			return &table[i]
		}
	}
	return nil
}

// gitRuleOf finds the rule of the list for a file of a git directory.
func gitRuleOf(path string) (*Rule, bool) {
	rules := DefaultRules()
	look := rules.Look().Repository()
	parts := strings.Split(path, "/")
	inTree := false
	for i, part := range parts {
		var r *Rule
		r, look = look.Match(strings.Join(parts[:i+1], "/"), part, i < len(parts)-1, false)
		if r != nil && r.Where == InGit {
			if i == len(parts)-1 || r.Tier == Deny {
				return r, true
			}
			inTree = true
		}
	}
	return nil, inTree
}

// Each file that git's source names has a decision.
func TestGitFilesAreComplete(t *testing.T) {
	table := gitFileTable(t)
	for _, name := range dataLines(t, "testdata/git-names.txt") {
		if decision(table, name) == nil {
			t.Errorf("%q has no row in gitfiles.tsv", name)
		}
	}
}

// What the table decides is what the list of names does, and the other way round.
func TestGitFilesAreHeld(t *testing.T) {
	table := gitFileTable(t)
	want := map[string]func(r *Rule, inTree bool) bool{
		"read-only": func(r *Rule, _ bool) bool { return r != nil && r.Tier == Deny },
		"judged": func(r *Rule, _ bool) bool {
			return r != nil && r.Tier == Flag && r.Judged && stateHarm[r.Pattern] != nil
		},
		"listed":  func(r *Rule, inTree bool) bool { return inTree || r != nil && r.Tier == Flag && !r.Judged },
		"free":    func(r *Rule, inTree bool) bool { return r == nil && !inTree },
		"content": func(r *Rule, inTree bool) bool { return r == nil && !inTree },
	}
	judged := 0
	for _, d := range table {
		path := strings.ReplaceAll(d.path, "*", "x")
		path = strings.TrimPrefix(path, "worktrees/x/") // found by its shape, in a walk
		r, inTree := gitRuleOf(path)
		if check := want[d.decision]; check == nil || !check(r, inTree) {
			t.Errorf("%s is %q in gitfiles.tsv, and the list has %+v, in a tree: %t", d.path, d.decision, r, inTree)
		}
		if d.decision == "judged" {
			judged++
		}
	}
	if judged != len(stateHarm) {
		t.Errorf("%d files are judged by the table, and there are %d judges", judged, len(stateHarm))
	}
	for _, r := range DefaultRules().List() {
		if r.Where == InGit && decision(table, strings.ReplaceAll(r.Pattern, "*", "x")) == nil && decision(table, r.Pattern+"/x") == nil {
			t.Errorf("%q is in the list and not in gitfiles.tsv", r.Pattern)
		}
	}
}

// gitOperations are scripts that leave behind what git writes: finished
// operations, and those that a conflict stops.
var gitOperations = []string{
	"git stash -q; git stash pop -q; git tag v1; git notes add -m n; git gc -q; git commit-graph write --split; git multi-pack-index write; git update-server-info; git pack-refs --all",
	"git merge -q side", "git merge -q --squash side", "git merge --autostash side", "git cherry-pick side", "git cherry-pick -X theirs -S side~1 side", "git revert --no-edit HEAD~1",
	"git rebase -q side", "git rebase -q --apply side", "git rebase -i side", "git rebase -q -s resolve -X ours side", "git rebase --rebase-merges --autostash side",
	"git format-patch -q -1 side --stdout >p; git am -3 --whitespace=fix --directory=sub p; git am --abort; git am --reject p",
	"git bisect start; git bisect bad; git bisect good HEAD~1", "git bisect start -- file; git bisect bad",
	"git config rerere.enabled true; git merge side; echo ok >file; git commit -qam merged; git reset -q --hard HEAD~1; git merge side",
	"git worktree add -q ../wt-$$ side; git -C ../wt-$$ rebase main; git worktree lock --reason why ../wt-$$; rm -rf ../wt-$$",
	"git sparse-checkout set sub; git replace HEAD HEAD~1; git update-index --assume-unchanged file; git update-index --split-index",
	"git clone -q --depth 1 file://$PWD ../shallow-$$; cp -r ../shallow-$$/.git .git/modules; rm -rf ../shallow-$$; git fsck --lost-found; git maintenance run -q --task=incremental-repack",
	"git fast-import --export-marks=.git/info/fast-import/marks </dev/null; git commit --amend --no-edit -q; GIT_EDITOR=true git branch --edit-description; GIT_EDITOR=true git commit -q --allow-empty",
}

// Each file that git leaves behind has a decision, and none of what it wrote at the
// bidding of its user's arguments is held back.
func TestGitLeavesWhatIsDecided(t *testing.T) {
	table := gitFileTable(t)
	blank := t.TempDir()
	conflicting(t, blank)
	for _, script := range gitOperations {
		w := tempRoot(t)
		if err := os.CopyFS(w+"/repo", os.DirFS(blank)); err != nil {
			t.Fatal(err)
		}
		s := scanned(t, w)
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = w + "/repo"
		cmd.Env = append(gitEnviron(blank), "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true")
		out, _ := cmd.CombinedOutput() // many are stopped by a conflict: that is the point
		for _, name := range gitDirFiles(t, w+"/repo/.git") {
			if decision(table, name) == nil {
				t.Errorf("%s: %s has no row in gitfiles.tsv", script, name)
			}
		}
		for _, q := range settled(t, s).Quarantined {
			if strings.HasSuffix(string(q.Path), "/config") || strings.Contains(string(q.Path), "/modules") {
				continue
			}
			t.Errorf("%s: %s is held back: %s\n%s", script, q.Path, q.Why, out)
		}
	}
}

func gitEnviron(home string) []string {
	return append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a'b", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@d")
}

// conflicting makes a repository whose branches main and side cannot be merged.
func conflicting(t *testing.T, dir string) {
	t.Helper()
	script := `git init -q -b main . && echo 1 >file && mkdir sub && echo 1 >sub/file && git add . && git commit -qm first &&
		git switch -qc side && echo 2 >file && git commit -qam side && echo 3 >file && git commit -qam "side again" &&
		git switch -q main && echo 4 >file && git commit -qam main && echo 5 >file && git commit -qam "main again"`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = dir, gitEnviron(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func gitDirFiles(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
