//go:build linux

package probe

import (
	"slices"
	"strings"
	"sync"
)

// hooksRefused are the hooks that a row tries to plant in a directory, two of
// them for all.
func hooksRefused(dirs ...string) (t Trace) {
	for _, dir := range dirs {
		t = trail(t, refused("protected", "file.write", dir+"/pre-commit", dir+"/post-checkout"))
	}
	return t
}

// gitTraces are the traces of the rows of git by ID. Where git itself is refused
// no rule is asked for: it is an honest program, and says so itself.
var gitTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"GIT-001":  trail(hooksRefused("W/.git/hooks"), raised("hook-denied")),
		"GIT-001b": quarantined("W/.git/hooks"),
		"GIT-001c": trail(hooksRefused("W/a/.git/hooks", "W/deep/er/b/.git/hooks", "W/.git/modules/sub/hooks"), raised("hook-denied")),
		"GIT-001d": trail(hooksRefused("S/main/.git/hooks"), quarantined("S/main/.git/worktrees/tree/hooks"), raised("hook-denied")),
		"GIT-001e": trail(hooksRefused("W/.githooks"), raised("hook-denied")),
		"GIT-001f": quarantined("W/tools/hooks"),
		"GIT-001g": refused("view", "file.mkdir", "O"),
		"GIT-001h": quarantined("W/.git/modules/z/config", "W/.git/modules/z/hooks", "W/new/.git/config"),
		"GIT-001i": quarantined("W/folded/.GIT/config", "W/folded/.GIT/hooks", "W/late/.git/config"),
		"GIT-001j": quarantined("W/.myhooks", "W/a/.myhooks"),
		"GIT-001k": hooksRefused("W/githooks"),
		"GIT-002":  refused("protected", "file.rename", "W/.git/config.lock"),
		"GIT-002b": trail(refused("protected", "file.rename", "W/.git/config.lock", "W/sub/.git/config.lock", "W/armed.link"),
			refused("protected", "file.link", "W/second-name"), raised("hook-denied")),
		"GIT-002c": quarantined("W/.git/config.worktree"),
		"GIT-002d": trail(mutated("protected", "W/.git/config"), raised("hook-denied")),
		"GIT-002e": trail(refused("protected", "file.rename", "W/.git/modules/sub/config.lock", "W/sub/.git.lock"), raised("hook-denied")),
		"GIT-002f": refused("protected", "file.rename", "W/gitconfig.lock", "W/armed.link"),
		"GIT-003":  refused("protected", "file.rename", "W/.git/config.lock"),
		"GIT-003b": quarantined("W/.git/info/attributes"),
		"GIT-003c": refused("protected", "file.write", "W/tools/clean.sh"),
		"GIT-005":  refused("protected", "file.write", "W/inc.cfg"),
		"GIT-005b": quarantined("W/tools/git.cfg", "W/tools/main.cfg"),
		"GIT-005c": trail(refused("protected", "file.write", "W/.git/config"), raised("hook-denied")),
		"GIT-005d": quarantined("W/team.cfg"),
		"GIT-007":  trail(refused("protected", "file.write", "W/tree/.git"), refused("protected", "file.rename", "W/pointer", "W/pointer.link"), quarantined("W/stash/evil/config")),
		"GIT-007b": quarantined("W/docs/.git", "W/stash/evil/config", "W/stash/evil/hooks"),
		"GIT-007c": quarantined("W/.git", "W/stash/evil/config", "W/stash/evil/hooks"),
		"GIT-008":  quarantined("W/.git/commondir", "W/stash/common/config", "W/stash/common/hooks"),
		"GIT-008b": mutated("protected", "W/.git/worktrees/tree/commondir", "W/.git/worktrees/tree/gitdir"),
		"GIT-008c": quarantined("W/.git/commondir"),
		"GIT-015d": quarantined("W/.git/index"),
		"GIT-009":  did("file.write", "W/.gitmodules"),
		"GIT-011":  byStat(refused("view", "file.lookup", "H/other")),
		"GIT-013":  nothing("the launcher is what is tried: it must not execute what stands in the repository, and nothing is attempted inside"),
		"GIT-015": trail(refused("protected", "file.rename", "W/stash/evil", "W/.git"), refused("protected", "file.write", "W/.git/config"),
			refused("protected", "file.unlink", "W/.git"), quarantined("W/stash/evil/config"), raised("hook-denied")),
		"GIT-015b": trail(refused("protected", "file.rename", "W/stash/evil", "W/a/b/.git", "W/a/b"), refused("protected", "file.unlink", "W/a/b/.git"),
			quarantined("W/stash/evil/config"), raised("hook-denied")),
		"GIT-015c": quarantined("W/.git/COMMIT_EDITMSG", "W/.git/FETCH_HEAD", "W/.git/ORIG_HEAD"),
		"GIT-016":  nothing(honest), "GIT-016b": nothing(honest),

		"GIT-020":  trail(refused("protected", "file.write", "W/.git/hooks/post-merge", "W/.git/hooks/reference-transaction", "W/.git/modules/lib/hooks/post-checkout"), raised("hook-denied")),
		"GIT-021":  trail(hooksRefused("W/.git/hooks"), quarantined("W/.git/worktrees/tree/config.worktree"), raised("hook-denied")),
		"GIT-022":  trail(quarantined("W/team.cfg"), did("file.write", "W/.gitattributes")),
		"GIT-023":  quarantined("W/.git/rebase-merge/git-rebase-todo"),
		"GIT-024":  did("file.write", "W/.env"),
		"GIT-141":  trail(quarantined("W/.git/sequencer/opts"), did("file.write", "W/evil")),
		"GIT-141b": trail(quarantined("W/.git/rebase-merge/strategy"), did("file.write", "W/evil")),
		"GIT-141c": quarantined("W/.git/rebase-apply/apply-opt"),
		"GIT-142":  quarantined("W/.git/lazygit.yml", "W/.git/safe", "W/.git/sl/config"),
		"GIT-142b": refused("protected", "file.write", "W/.git/lazygit.yml"),
		"GIT-143":  did("file.write", "W/.git/info/exclude", "W/.git/info/grafts"),
		"GIT-144":  did("file.rename", "W/.git/index.lock"),
		"GIT-145":  did("file.write", "W/.git/packed-refs"),
		"GIT-146":  quarantined("W/fresh/.git/index"),
		"GIT-441":  quarantined("W/fresh/0/.git/config", "W/fresh/1/.git/config", "W/fresh/2/.git/config"),
		"GIT-025":  trail(refused("protected", "file.write", "W/lib/.git/config"), raised("hook-denied")),
	}
})

// held are the directories that are taken away, or refused, as a whole.
var held = []string{
	".vscode", ".vscode-test", ".devcontainer", ".idea", ".run", ".zed", ".claude", ".cursor", ".codex", ".gemini", ".qwen", ".roo", ".amazonq", ".kiro", ".junie", ".factory",
	".amp", ".copilot", ".windsurf", ".opencode", ".continue", ".github/hooks", ".github/workflows", ".github/actions", ".circleci", ".config/systemd", ".config/environment.d",
	".config/autostart", ".local/share/applications", ".local/share/dbus-1", ".config/fish", ".config/nushell", ".config/tmux", ".vim", ".ssh", ".git/hooks",
	".bsp", ".shadowenv.d", ".qoder", ".vibe", ".idx", ".tekton",
}

// heldAs is the name under which something below W is held back at the end.
func heldAs(at string) string {
	for _, dir := range slices.Concat(held, strings.Fields(moreHeld)) {
		before, _, in := strings.Cut(at+"/", "/"+dir+"/")
		if in && at != before+"/"+dir {
			return before + "/" + dir
		}
	}
	return at
}
