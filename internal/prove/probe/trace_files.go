//go:build linux

package probe

import "sync"

var linkTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"LNK-001":  trail(refused("view", "file.write", "W/l")),
		"LNK-001b": trail(refused("readonly", "file.write", "W/l")),
		"LNK-002":  trail(refused("view", "file.lookup", "W/k"), raised("credential-denied")),
		"LNK-003":  trail(refused("view", "file.write", "W/d/sub/canary")),
		"LNK-004":  trail(refused("view", "file.write", "W/l0")),
		"LNK-006":  trail(refused("view", "file.write", "W/link/../canary2", "W/link/../canary")),
		"LNK-008":  trail(did("honey.read", "H/.aws/credentials"), raised("honeytoken-read")),
		"LNK-009":  trail(did("honey.read", "H/.aws/credentials"), raised("honeytoken-read")),
		"LNK-101":  nothing(declined),
		"LNK-101b": nothing(declined),
		"LNK-103":  trail(refused("protected", "file.rename", "W/p/q", "W/p")),
		"LNK-103b": trail(refused("protected", "file.rename", "O/tree/a")),
		"LNK-441":  trail(refused("protected", "file.rename", "W/p/q", "W/p")),
		"LNK-441b": trail(refused("protected", "file.rename", "O/tree/a/b", "O/tree/a")),
		"LNK-105":  nothing(readOnly),
		"LNK-011":  trail(refused("view", "file.link", "W/second-name", "W/second-name-2"), refused("view", "file.rename", "O/canary")),
		"LNK-011b": trail(refused("readonly", "file.link", "W/second-name", "W/second-name-2"), refused("readonly", "file.rename", "R/canary")),
		"LNK-011c": trail(
			refused("protected", "file.link", "W/second-name", "W/second-name-2"),
			refused("protected", "file.rename", "W/.git/hooks/pre-commit"),
			raised("hook-denied"),
		),
		"LNK-012": trail(mutated("protected", "W/h")),
		"LNK-014": trail(refused("readonly", "file.link", "W/relinked", "W/relinked-2"), refused("readonly", "file.chmod", "R/canary")),
		"LNK-014b": trail(
			refused("protected", "file.link", "W/relinked", "W/relinked-2"),
			refused("protected", "file.chmod", "W/.git/hooks/pre-commit"),
			raised("hook-denied"),
		),
		"LNK-014c": trail(refused("readonly", "file.write", "R"), refused("readonly", "file.link", "R/named-2")),
		"LNK-016": trail(
			refused("protected", "file.rename", "W/evil-.claude", "W/.claude", ".claude"),
			refused("protected", "file.unlink", "W/.claude", ".claude", "settings.json"),
			raised("guardrail-denied"),
		),
		"LNK-016b": trail(
			refused("protected", "file.rename", "W/evil-hooks", "W/a/b/.git/hooks", "hooks", "W/evil-.git", "W/a/b/.git"),
			refused("protected", "file.unlink", "W/a/b/.git/hooks", "hooks", "pre-commit", "W/a/b/.git", ".git"),
			raised("hook-denied"),
		),
		"LNK-017": trail(mutated("protected", "W/tracked-hooks/pre-commit", "W/.git/hooks/pre-commit"), raised("hook-denied")),
		"LNK-017b": trail(
			refused("protected", "file.rename", "W/evil-hooks", "W/.git/hooks", "hooks", "W/tracked/hooks", "W/evil-tracked"),
			refused("protected", "file.unlink", "W/.git/hooks", "hooks", "W/tracked/hooks", "pre-commit", "W/tracked"),
			raised("hook-denied"),
		),
	}
})

var pathTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"PTH-001": trail(refused("view", "file.write", "S/w_evil/canary")),
		"PTH-003": trail(
			refused("view", "file.write", "../o/canary", "./../w/../o/canary", "W/../o/canary", "W/./..//o/./canary", "W/../w/../o/sub/canary"),
		),
		"PTH-004":  trail(did("file.write", "W/fold/.CURSOR/MCP.json")),
		"PTH-004b": trail(quarantined("W/.CURSOR", "W/.MCP.json", "W/.VsCode", "W/sub/.Claude")),
		"PTH-010":  nothing(readOnly),
		"PTH-010b": trail(
			refused("protected", "file.write", "W//.mcp.json", "W/./.mcp.json", "W/x/../.mcp.json", "W/../w/.mcp.json", ".mcp.json"),
			raised("guardrail-denied"),
		),
		"PTH-010c": trail(refused("view", "file.lookup", "H//.netrc", "H/.ssh/./id_probe"), raised("credential-denied", "honeytoken-read")),
		"PTH-012": trail(
			refused("view", "file.write", "O/canary"),
			refused("protected", "file.write", "W/a: Permission denied/.git/hooks/pre-commit", "W/b\tc\x1b[2J/.mcp.json"),
			raised("hook-denied", "guardrail-denied"),
		),
		"PTH-012b": trail(refused("protected", "file.write", "W/new\nline/.mcp.json"), raised("guardrail-denied")),
		"PTH-012c": trail(refused("view", "file.write", "O/canary")),
		"PTH-013":  trail(did("file.write", "out"), byStat(refused("view", "file.lookup", "out"))),
		"PTH-013b": trail(did("file.rename", ".git/hooks", ".git"), raised("alias")),
		"PTH-015":  trail(refused("protected", "file.write", "W/sub/.vscode/tasks.json"), raised("editor-denied")),
		"PTH-017": trail(
			quarantined("W/[late]/.mcp.json"),
			refused("protected", "file.write", "W/[x]/.mcp.json", "W/*/.mcp.json", "W/{a,b}/.mcp.json", "W/?!/.mcp.json"),
			raised("guardrail-denied"),
		),
		"PTH-018":  trail(refused("view", "file.write", "../o/canary"), refused("protected", "file.write", ".mcp.json"), raised("guardrail-denied")),
		"PTH-018b": trail(refused("view", "file.write", "../o/canary"), refused("protected", "file.write", ".mcp.json"), raised("guardrail-denied")),
		"PTH-018c": trail(refused("view", "file.write", "../o/canary"), refused("protected", "file.write", ".mcp.json"), raised("guardrail-denied")),
		"PTH-018d": nothing(declined),
		"PTH-020":  trail(byStat(refused("view", "file.lookup", "B/alias/.git/hooks", "B/alias/.git", "B/alias")), refused("view", "file.mkdir", "B/alias")),
	}
})

var denyTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"DNY-001":  trail(quarantined("W/.claude")),
		"DNY-001b": trail(quarantined("W/made-1/.mcp.json", "W/made-2/.mcp.json", "W/made-3/.mcp.json", "W/made-4/.mcp.json", "W/made-5/.mcp.json")),
		"DNY-001c": trail(quarantined("W/in/place/.vscode")),
		"DNY-002":  trail(refused("view", "file.lookup", "H/.config/gh/hosts.yml", "O/late"), raised("credential-denied")),
		"DNY-002b": nothing("a file that came into the workspace during the run is one of it: reading it is what every program does"),
		"DNY-002c": trail(
			refused("hidden", "file.rename", "W/credentials.json", "W/moved-w", "W/sub/credentials.json", "W/moved-sub"),
			refused("hidden", "file.link", "W/moved-w", "W/moved-sub"),
			refused("hidden", "file.write", "W/credentials.json", "W/sub/credentials.json"),
			refused("hidden", "file.unlink", "W/credentials.json", "W/sub/credentials.json"),
		),
		"DNY-003": trail(
			refused("protected", "file.rename", "W/evil-sub", "W/sub", "sub"),
			refused("protected", "file.unlink", "W/sub", "sub", ".git", "config", "hooks"),
			raised("hook-denied"),
		),
		"DNY-003b": trail(
			refused("protected", "file.rename", "W/evil-three", "W/one/two/three", "three", "W/evil-two", "W/one/two"),
			refused("protected", "file.unlink", "W/one/two/three", "three", ".mcp.json", "W/one/two", "two"),
			raised("guardrail-denied"),
		),
		"DNY-004":  trail(refused("view", "file.rename", "W", "../w"), refused("", "file.unlink", "W")),
		"DNY-006":  trail(mutated("protected", "W/.mcp.json"), raised("guardrail-denied")),
		"DNY-006b": trail(mutated("protected", "W/sub/.git/config", "W/sub/.git/hooks/pre-commit"), raised("hook-denied")),
		"DNY-006c": trail(refused("protected", "file.write", "W/sub/.git/hooks/post-commit"), raised("hook-denied")),
		"DNY-006d": nothing(honest),
		"DNY-006e": trail(quarantined("W/later-dir", "W/later.json")),
		"DNY-006f": trail(refused("protected", "file.rename", "W/conf/real/mcp.json", "W/hop", "W/conf/link", "W/.mcp.json"), raised("guardrail-denied")),
		"DNY-006g": trail(
			refused("protected", "file.rename", "W/evil-real", "W/conf/real", "real", "W/evil-conf", "W/conf"),
			refused("protected", "file.unlink", "W/conf/real", "real", "mcp.json", "W/conf", "conf"),
		),
		"DNY-006h": trail(mutated("protected", "W/node_modules/x/.git/hooks/pre-commit", "W/node_modules/x/.git/config"), raised("hook-denied")),
		"DNY-006i": trail(refused("protected", "file.write", "W/plain.json")),
		"DNY-009":  trail(refused("view", "file.write", "O/canary")),
		"DNY-010": trail(
			quarantined("W/.claude", "W/.git/hooks"),
			refused("protected", "file.write", "W/.git/config", "W/.mcp.json", "W/one/.claude/settings.json"),
			raised("hook-denied", "guardrail-denied"),
		),
		"DNY-010b": trail(refused("protected", "file.quarantine", ""), refused("view", "file.write", "O/canary"), raised("quarantined")),
		"DNY-011":  trail(mutated("protected", "W/.git"), raised("repository-removed")),
		"DNY-011b": trail(mutated("protected", "W/lib/.git", "W/.git/modules/lib/config", "W/.git/modules/lib/hooks/pre-commit"), raised("hook-denied")),
		"DNY-011c": trail(
			mutated("protected", "S/main/.git/config", "S/main/.git/hooks/pre-commit", "S/main/.git/worktrees/w/commondir", "S/main/.git/worktrees/w/gitdir"),
			raised("hook-denied"),
		),
		"DNY-011d": trail(
			quarantined("S/main/.git/config.worktree", "S/main/.git/info/attributes", "S/main/.git/worktrees/w/config.worktree"),
			refused("protected", "file.write", "S/main/.git/hooks/post-commit"),
			raised("hook-denied"),
		),
		"DNY-011e": trail(refused("view", "file.write", "S/other/.git/secret", "S/other/.git/COMMIT_EDITMSG")),
		"DNY-011f": trail(refused("view", "file.write", "S/other/.git/secret")),
		"DNY-011g": trail(
			refused("view", "file.write", "O/canary", "O/sub/canary"),
			did("file.write", "H/.aws/credentials"),
			refused("view", "file.lookup", "H/.netrc", "H/.ssh/id_probe"),
			raised("credential-denied", "honeytoken-read"),
		),
		"DNY-011h": trail(
			quarantined("S/main/.git/hooks", "S/main/.git/modules/m/config", "S/main/.git/modules/m/hooks", "S/main/.git/worktrees/other/config.worktree", "S/main/.git/worktrees/other/gitdir"),
		),
		"DNY-012":  trail(quarantined("W/deep/er/.git/config", "W/deep/er/.git/hooks", "W/sub/.git/config", "W/sub/.git/hooks")),
		"DNY-012b": trail(quarantined("W/bare/config", "W/bare/hooks", "W/plain.git/config", "W/plain.git/hooks", "W/sub/.git/config")),
		"DNY-012c": trail(quarantined("W/elsewhere/config", "W/elsewhere/hooks")),
		"DNY-012d": trail(quarantined("W/.git/hooks")),
		"DNY-012e": trail(quarantined("W/config", "W/hooks")),
		"DNY-012f": trail(
			quarantined("W/.git/modules/evil/config", "W/.git/modules/evil/hooks", "W/.git/worktrees/evil/config", "W/.git/worktrees/evil/hooks"),
		),
		"DNY-012g": trail(quarantined("W/.git/hooks")),
		"DNY-012h": trail(quarantined("W/.vscode")),
		"DNY-012i": trail(refused("protected", "file.quarantine", ""), raised("quarantined")),
		"DNY-012j": trail(quarantined("W/closed/.git/config", "W/closed/.git/hooks", "W/closed/.mcp.json")),
		"DNY-012k": trail(
			quarantined("W/.venv/z/.git/config", "W/.venv/z/.git/hooks", "W/node_modules/x/.git/config", "W/node_modules/x/.git/hooks", "W/vendor/y/.git/config"),
		),
		"DNY-012l": trail(quarantined("W/a/.git /config", "W/a/.git /hooks", "W/a/.git./config", "W/a/.git./hooks", "W/a/.git::$INDEX_ALLOCATION/config")),
		"DNY-012m": trail(refused("protected", "file.quarantine", ""), raised("quarantined")),
		"DNY-012n": trail(quarantined("W/.git/config", "W/.git/hooks", "W/.git/info/attributes", "W/new/.git/config", "W/new/.git/hooks")),
		"DNY-012o": trail(
			quarantined("W/v0/.git/config", "W/v0/.git/config.worktree", "W/v1/.git/config", "W/v1/.git/config.worktree", "W/v10/.git/config"),
		),
		"DNY-012p": trail(
			refused("protected", "file.write", "W/sub/.git/hooks/pre-commit", "W/sub/.git/hooks/post-commit", "W/sub/.git/config"),
			raised("hook-denied"),
		),
		"DNY-012q": trail(quarantined("W/sub/.git/config", "W/sub/.git/hooks", "W/half/config", "W/half/hooks", "W/sub/half.git/config")),
		"DNY-012r": trail(quarantined("W/kept/git/config", "W/kept/git/hooks", "W/shallow/.claude", "W/.mcp.json", "W/.vscode")),
		"DNY-013":  trail(refused("protected", "file.write", "W/x/.git/hooks/pre-commit"), raised("hook-denied")),
		"DNY-016": trail(
			refused("readonly", "file.chmod", "R/canary", "R"),
			refused("readonly", "file.chown", "R/canary", "R"),
			refused("readonly", "file.xattr", "R/canary", "R"),
			refused("readonly", "file.write", "R/canary"),
			byStat(refused("view", "file.lookup", "O/canary", "O")),
		),
		"DNY-016b": trail(
			refused("view", "file.chmod", "B"),
			refused("view", "file.chown", "B"),
			refused("view", "file.xattr", "B"),
			refused("view", "file.write", "B"),
		),
		"DNY-016c": trail(
			refused("filter", "file.chmod", "W/takes-rights-0", "W/takes-rights-0-fchmod", "W/takes-rights-0-fchmodat2", "W/takes-rights-1", "W/takes-rights-1-fchmod"),
			refused("filter", "file.write", "W/takes-rights-0-opened", "W/takes-rights-1-opened", "W/takes-rights-2-opened"),
			refused("filter", "file.mknod", "W/takes-rights-0-mknod", "W/takes-rights-1-mknod", "W/takes-rights-2-mknod"),
			raised("set-id", "file-capability"),
		),
		"DNY-016d": trail(
			did("file.write", "H/.cache/go-build/00/a", "H/.npm/_cacache/a", "H/.cargo/registry/a"),
			did("file.rename", "H/.cache/go-build/00/a"),
			did("file.unlink", "H/.cache/go-build/00/a"),
		),
		"DNY-017": trail(refused("readonly", "file.write", "R/canary")),
		"DNY-019": trail(mutated("readonly", "R/canary")),
	}
})

var archiveTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"ARC-001": trail(
			refused("view", "file.write", "../o/canary", "../o/x", "a/../../o/x", "W/../o/canary", "W/../o/x"),
			refused("view", "file.mkdir", "../o"),
			refused("view", "file.chmod", "W/../o/canary", "W/../o/x"),
			raised("archive-outside"),
		),
		"ARC-002": trail(
			refused("view", "file.write", "O/canary", "O/x"),
			refused("view", "file.mkdir", "O"),
			refused("view", "file.chmod", "O/canary", "O/x"),
		),
		"ARC-004": trail(refused("view", "file.link", "linked-2", "W/naive/linked-2"), raised("link-protected")),
		"ARC-005": trail(
			refused("view", "file.write", "out/x", "out/canary", "W/naive/out/x", "W/naive/out/canary"),
			refused("view", "file.chmod", "W/naive/out/x", "W/naive/out/canary"),
		),
		"ARC-006": trail(
			quarantined("W/l0.claude/.claude", "W/l0.git-hooks-pre-commit/.git/hooks", "W/l0.git-hooks/.git/hooks", "W/l0.git/.git", "W/l0.mcp.json/.mcp.json"),
			raised("link-protected"),
		),
		"ARC-006b": trail(quarantined("W/1/.mcp.json", "W/2/.mcp.json", "W/3/.claude", "W/4/.mcp.json")),
		"ARC-008": trail(
			refused("filter", "file.chmod", "W/takes-rights", "W/takes-group", "W/naive/takes-rights", "W/naive/takes-group"),
			raised("set-id"),
		),
		"ARC-010": trail(did("file.write", "/tmp/probe-fill-*", "/var/tmp/probe-fill-*")),
	}
})
