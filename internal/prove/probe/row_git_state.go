//go:build linux

package probe

import (
	"errors"
	"os"
	"strings"

	"holdfast.dev/holdfast/internal/prove/replay"
)

// gitStateRows are about files of a repository that decide what git does next, or
// what it shows.
func gitStateRows() []Row {
	const mail = "From: a <a@probe.test>\nSubject: x\n\n---\ndiff --git a/tracked b/tracked\nindex {head}..{head} 100644\n--- a/tracked\n+++ b/tracked\n@@ -1 +1 @@\n-x\n+y\n"
	patches := []planted{plant("W/.git/rebase-apply/apply-opt", "'--build-fake-ancestor={O}/written'")}
	for _, f := range [][2]string{{"next", "1"}, {"last", "2"}, {"threeway", "f"}, {"quiet", "f"}, {"sign", "f"}, {"utf8", "f"}, {"keep", "f"}, {"messageid", "f"},
		{"scissors", "f"}, {"rerere-autoupdate", "f"}, {"applying", ""}, {"quoted-cr", ""}, {"abort-safety", ""}, {"0001", mail}, {"0002", mail}} {
		patches = append(patches, plant("W/.git/rebase-apply/"+f[0], f[1]))
	}
	shown := strings.Fields("info/exclude info/sparse-checkout info/grafts shallow refs/replace/0123456789012345678901234567890123456789 objects/info/alternates objects/info/commit-graph " +
		"rr-cache/0/postimage sequencer/todo MERGE_HEAD CHERRY_PICK_HEAD svn/.metadata lfs/objects/x")
	var at []string
	for _, dir := range []string{"W/.git/", "W/sub/.git/"} {
		for _, name := range shown {
			at = append(at, dir+name)
		}
	}
	return []Row{
		{ID: "GIT-141c", Title: "a human goes on with patches whose options name a file to be written", Refs: []string{"git-apply(1)", "builtin/am.c run_apply"},
			Setup: inGit(nil, "W"), Absent: []string{"O/written"}, Harmless: "what counts is what git writes",
			Drive: func(s *Session) {
				s.Run(Command{})
				s.Replay(replay.GitPatches)
			},
			Action: "replay-plant", Args: []string{plantsArg(patches)}},
		{ID: "GIT-142", Title: "settings of other programs are put into the repository", Refs: []string{"github.com/jesseduffield/lazygit docs/Config.md", "github.com/thoughtbot/dotfiles (.git/safe)"},
			Setup: inGit(nil, "W"), Harmless: takenAway, Absent: []string{"W/.git/lazygit.yml", "W/.git/safe", "W/.git/sl/config"},
			Action: "git-write", Args: []string{"path=W/.git/lazygit.yml\nW/.git/safe/x\nW/.git/sl/config", "text=customCommands: [{key: c, command: {trip}}]"}},
		{ID: "GIT-142b", Title: "the same, and they are there", Refs: []string{"github.com/jesseduffield/lazygit docs/Config.md"},
			Setup: func(w *World) error {
				return errors.Join(w.gitInit("W"), w.File("W/.git/lazygit.yml", "gui: {}\n"))
			},
			Keep: []string{"W/.git/lazygit.yml"}, Action: "git-write", Args: []string{"path=W/.git/lazygit.yml", "text=customCommands: [{key: c, command: {trip}}]"}},
		{ID: "GIT-143", Title: "what git leaves out, replaces or takes for granted is changed without a word", Refs: []string{"gitrepository-layout(5)", "git-replace(1)"},
			Setup: repositoriesOfAll, Oracle: named(nil, at...), Kind: Sandbox, Promise: "P3",
			Harmless: "it may be made, when the launcher names it at the end", Action: "write-names", Args: []string{"path=" + strings.Join(at, "\n")}},
	}
}

// gitViewRows are about what hides changes from git, or names of files.
func gitViewRows() []Row {
	packed := []string{"W/.git/packed-refs", "W/sub/.git/packed-refs"}
	return []Row{
		{ID: "GIT-144", Title: "git is told not to look at files, without a word", Refs: []string{"git-update-index(1) --assume-unchanged, --skip-worktree"},
			Setup: repositoriesOfAll, Oracle: named(nil, "W/.git/index", "W/sub/.git/index", "W/.git/worktrees/tree/index"), Kind: Sandbox, Promise: "P3",
			Harmless: "it may be done, when the launcher names it at the end", Action: "git-look-away", Args: []string{"path=W\nW/sub\nW/tree"}},
		{ID: "GIT-145", Title: "packed references put one object into the place of another, without a word", Refs: []string{"git-replace(1)", "git-pack-refs(1)"},
			Setup: repositoriesOfAll, Oracle: named(nil, packed...), Kind: Sandbox, Promise: "P3",
			Harmless: "it may be done, when the launcher names it at the end", Action: "git-write",
			Args: []string{"path=" + strings.Join(packed, "\n"), "text=0123456789012345678901234567890123456789 refs/replace/0123456789012345678901234567890123456788"}},
		{ID: "GIT-146", Title: "an index has other names when object names are longer, as the last line of the configuration has it", Refs: []string{"gitformat-index(5)", "git-config(1) extensions.objectFormat"},
			Files: map[string]string{"W/keep": ""}, Setup: func(w *World) error { return os.MkdirAll(w.Path("W"), 0o755) },
			Absent: []string{"O/written"}, Harmless: "what counts is what git writes",
			Drive: func(s *Session) {
				s.Run(Command{})
				s.Replay(replay.GitRestore.In(s.World.Path("W/fresh")))
			},
			Action: "git-two-lengths", Args: []string{"dir=W/fresh"}},
	}
}

// repositoriesOfAll makes a repository with another one and a worktree in it.
func repositoriesOfAll(w *World) error {
	err := inGit(nil, "W", "W/sub")(w)
	_, err2 := w.git(w.W, "worktree", "add", "-q", w.Path("W/tree"))
	return errors.Join(err, err2)
}

// gitStateReplays are operations that are put under way, and gone on with.
func gitStateReplays() []replayRow {
	return []replayRow{
		{id: "GIT-141", title: "a human goes on with a cherry-pick whose merge strategy is a program of the tree", refs: []string{"git-cherry-pick(1) --strategy", "sequencer.c populate_opts_cb"},
			setup: inGit(nil, "W"), programs: []replay.Program{replay.GitPick},
			plants: []planted{
				plant("W/.git/sequencer/opts", "[options]\n\tstrategy = a/../evil\n").inert("it names the program"),
				plant("W/.git/sequencer/todo", "pick {head} x\npick {head} x\n").inert("it makes the cherry-pick whole"),
				plant("W/.git/sequencer/head", "{head}\n").inert("it makes the cherry-pick whole"),
				plant("W/git-merge-a/x", "").inert("the name of the program leads through it"), plant("W/evil", sh)}},
		{id: "GIT-141b", title: "a human goes on with a rebase whose merge strategy is a program of the tree", refs: []string{"git-rebase(1) --strategy", "sequencer.c read_strategy_opts"},
			setup: inGit(nil, "W"), programs: []replay.Program{replay.GitContinue},
			plants: append(underWay("strategy", "a/../evil\n", "git-rebase-todo", "pick {head} x\n"), plant("W/git-merge-a/x", "").inert("the name of the program leads through it"), plant("W/evil", sh))},
	}
}
