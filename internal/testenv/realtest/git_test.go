package realtest

import (
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// repository makes the repository r, with an identity, a hook and one commit,
// and the repository lib for a submodule.
func repository(t *testing.T, root string) *fixture {
	t.Helper()
	p := newFixture(t, root, testenv.Git)
	p.bare(`
		for r in r lib; do
			git init -q -b main $r
			git -C $r config user.name somebody
			git -C $r config user.email somebody@example.org
			echo one > $r/file
			git -C $r add file
			git -C $r commit -qm one
		done
		printf '#!/bin/sh\necho hook >> hooked\n' > r/.git/hooks/post-commit
		chmod +x r/.git/hooks/post-commit
		echo hooked > r/.git/info/exclude`)
	return p
}

func gitEverydayWork(t *testing.T, root string) {
	t.Parallel()
	p := repository(t, root)
	watched := []string{"r/.git/config", "r/.git/hooks/post-commit", "r/.git/info/exclude"}
	before := map[string]string{}
	for _, f := range watched {
		before[f] = p.read(f)
	}
	out := p.inside(`
		cd r
		git status --porcelain
		git branch side
		git switch -q side
		echo two >> file
		git commit -qam 'on side'
		git switch -q main
		echo other > other
		git add other
		git commit -qm 'on main'
		git merge -q -m merged side
		git switch -q -c third HEAD~1
		echo third > third
		git add third
		git commit -qm 'on third'
		git rebase -q main
		echo draft >> file
		git stash -q
		git stash list
		git stash pop -q
		git diff --stat
		git checkout -q file
		git tag v1
		git gc -q
		git fsck
		git log --format=%s`)
	contains(t, out, "stash@{0}", "1 file changed", "on third", "merged", "on side")
	// Outside, the result is intact.
	out = p.bare(`cd r; git fsck; git status --porcelain; git log --format=%s; git tag`)
	contains(t, out, "on third", "v1")
	if n := strings.Count(p.read("r/hooked"), "hook"); n < 3 {
		t.Errorf("the hook ran %d times", n)
	}
	for _, f := range watched {
		if p.read(f) != before[f] {
			t.Errorf("%s changed", f)
		}
	}
}

func gitNewRepositories(t *testing.T, root string) {
	t.Parallel()
	p := repository(t, root)
	p.inside(`
		git init -q -b main new
		cd new
		git config user.name somebody
		git config user.email somebody@example.org
		echo new > file
		git add file
		git commit -qm new
		cd ..
		git clone -q r copy
		cd copy
		git pull -q
		git log --format=%s`)
	contains(t, p.bare(`git -C new log --format=%s; git -C copy status; git -C copy remote get-url origin`), "new", "up to date", "/r")
}

func gitWorktree(t *testing.T, root string) {
	t.Parallel()
	p := repository(t, root)
	p.inside(`git -C r worktree add -q -b side ../tree`)
	// A later run and the host can use it.
	p.inside(`cd tree; echo more >> file; git commit -qam more; git status --porcelain; cd ../r; git worktree list; git merge -q side`)
	contains(t, p.bare(`git -C r worktree list; git -C r log --format=%s; git -C tree status`), "[side]", "more", "nothing to commit")
	// A worktree created and removed within one run leaves nothing to hold back.
	p.inside(`cd r; git worktree add -q -b brief ../brief; echo x > ../brief/x; git -C ../brief add x; git -C ../brief commit -qm brief; git worktree remove ../brief; git worktree prune; git branch -D brief`)
}

func gitSubmodule(t *testing.T, root string) {
	t.Parallel()
	p := repository(t, root)
	p.inside(`
		git init -q -b main super
		cd super
		git config user.name somebody
		git config user.email somebody@example.org
		git -c protocol.file.allow=always submodule --quiet add ../lib lib
		git commit -qm 'with lib'
		cd ..
		git -c protocol.file.allow=always clone -q --recurse-submodules super copy
		cat copy/lib/file`)
	p.inside(`
		cd lib
		echo newer > file
		git commit -qam newer
		cd ../copy
		git -C lib pull -q origin main
		grep -q newer lib/file
		git add lib
		git submodule status
		git submodule foreach git status --porcelain
		git -c user.name=somebody -c user.email=somebody@example.org commit -qm 'newer lib'`)
	contains(t, p.bare(`cd copy; git submodule status; git fsck; git -C lib log --format=%s`), " lib ", "newer")
}

// The configuration of an existing repository is a copy inside, in which a submodule becomes
// active, a remote is added and a branch renamed. The file itself stays.
func gitSubmoduleOfExistingRepository(t *testing.T, root string) {
	t.Parallel()
	p := repository(t, root)
	p.bare(`
		cd r
		git -c protocol.file.allow=always submodule --quiet add ../lib lib
		git commit -qm 'with lib'
		cd ..
		git clone -q r copy`)
	before := p.read("copy/.git/config")
	contains(t, p.inside(`
		cd copy
		git -c protocol.file.allow=always submodule --quiet update --init
		cat lib/file
		git status --porcelain
		git remote add other https://example.org/other.git
		git branch -m main renamed
		git checkout -q -b next --track renamed
		git branch -vv
		git remote -v`), "one", "other", "[renamed]")
	if after := p.read("copy/.git/config"); after != before {
		t.Errorf("the configuration is now %q", after)
	}
	contains(t, p.bare(`git -C copy branch; git -C copy submodule status`), "renamed", "lib")
}
