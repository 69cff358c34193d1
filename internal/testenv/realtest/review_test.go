package realtest

import (
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// everydayTools is a script of everyday commands in a workspace. It ends at the
// first command that fails.
const everydayTools = `
git status --short
git checkout -q side; git checkout -q main
echo z >> src/a; git stash -q; git stash pop -q; git commit -qam z
git mv src/a src/b; git commit -qm moved
mv src dir; git add -A; git commit -qm 'a directory'
git checkout -q side; echo s > side; git add side; git commit -qm s; git rebase -q main
git worktree add -q wt main; git worktree remove --force wt
git branch -m side other; git pack-refs --all; git gc -q --prune=now
git reset -q --hard HEAD~1; git fsck; git clean -fdq`

// reviewTools runs them in a view, and checks that the workspace is unchanged.
func reviewTools(policy string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Parallel()
		p := newFixture(t, root, testenv.Git)
		p.write(map[string]string{"src/a": "a\n", "src/sub/c": "c\n", "review.yaml": policy})
		p.bare(`
			mv review.yaml ../home/review.yaml
			git init -q -b main .
			git config user.name somebody; git config user.email somebody@example.org
			git add .; git commit -qm one; git branch side; echo 2 >> src/a; git commit -qam two`)
		const state = "git log --all --format=%H; git fsck; find . -type f -printf '%P %m %s %T@ %i\\n' | sort | sha256sum"
		before := p.bare(state)
		p.inside(everydayTools, "--policy", p.home+"/review.yaml")
		if after := p.bare(state); after != before {
			t.Errorf("the workspace was\n%s\nand is\n%s", before, after)
		}
	}
}

// jobWithOutput builds from a read-only source.
func jobWithOutput(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Go)
	p.write(map[string]string{"go.mod": "module example.org/job\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() { println(\"built\") }\n"})
	before := p.bare("find . -printf '%P %m %s %T@\\n' | sort")
	p.inside(`
		export GOCACHE="$HOLDFAST_SCRATCH/go-build" TMPDIR="$HOLDFAST_SCRATCH" GOFLAGS=-mod=mod
		go build -o "$HOLDFAST_OUTPUT/" .
		! touch new 2>/dev/null`, "--profile", "ci", "--output", filepath.Join(filepath.Dir(p.home), "dist"))
	p.bare("../dist/job")
	if after := p.bare("find . -printf '%P %m %s %T@\\n' | sort"); after != before {
		t.Errorf("the source was\n%s\nand is\n%s", before, after)
	}
}
