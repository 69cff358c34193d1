//go:build linux

package probe

import (
	"slices"
	"sync"
)

// wasDenied is an attempt that must stand in the record as refused.
func wasDenied(action, object string) Attempt {
	return Attempt{Action: action, Object: object, Verdict: "denied"}
}

// started is the start of a hostile program of that name.
func started(name string) Attempt { return Attempt{Action: "proc.exec", Arg: "name=" + name} }

// ofPayload is what stands in the record when hostile programs were started: each
// of them, what they wanted to write outside, and the key that they asked for.
func ofPayload(names ...string) Trace {
	t := Trace{Events: []Attempt{wasDenied("file.mkdir", "O"), wasDenied("file.lookup", "H/.ssh/id_probe")}, Rules: []string{"credential-denied"}}
	for _, n := range names {
		t.Events = append(t.Events, started(n))
	}
	return t
}

// with adds rules to a trace.
func (t Trace) with(rules ...string) Trace {
	t.Rules = append(slices.Clone(t.Rules), rules...)
	return t
}

// seen is a trace of attempts alone.
func seen(events ...Attempt) Trace { return Trace{Events: events} }

var outsideDenied = seen(wasDenied("file.lookup", "O/canary"), wasDenied("file.lookup", "H/.ssh/id_probe")).with("credential-denied")

const nothingStarted = "the launcher declines, so that no session begins whose record it could stand in"

// agentTraces are what must be seen of the rows of agents, by their IDs.
var agentTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"AGT-001":  ofPayload("mcp"),
		"AGT-001b": ofPayload("cursor", "roo", "amazonq", "kiro", "gemini", "qwen", "extension", "vscode", "opencode", "codex"),
		"AGT-001c": ofPayload("deep", "deep-hook"),
		"AGT-001d": ofPayload("odd"),
		"AGT-002":  ofPayload("claude-start", "claude-tool", "claude-stop", "claude-prompt", "gemini-start", "cursor-prompt", "copilot-start", "amazonq-spawn"),
		"AGT-002b": ofPayload("key-helper", "aws-refresh", "aws-export", "otel-headers", "status-line", "file-suggestion", "discovery", "environment-install", "environment-start", "codex-notify", "formatter", "language-server"),
		"AGT-002c": ofPayload("command", "skill"),
		"AGT-002d": seen(Attempt{Action: "sock.connect"}),
		"AGT-002e": ofPayload("as-git", "as-gh", "as-rg").with("credential-command"),
		"AGT-002f": ofPayload("fsmonitor"),
		"AGT-003":  ofPayload("headless"),
		"AGT-006":  outsideDenied,
		"AGT-006b": outsideDenied,
		"AGT-008":  seen(wasDenied("file.mkdir", "O"), Attempt{Action: "proc.exec", Object: "W/worker"}, started("orphan")).with("credential-denied"),
		"AGT-008b": seen(wasDenied("sock.connect", ""), Attempt{Action: "file.write", Object: "H/.agent/queue/job.json"}).with("startup-denied", "guardrail-denied"),
		"AGT-008c": seen(wasDenied("file.mkdir", "O")),
		"AGT-009":  seen(wasDenied("file.mkdir", "O"), wasDenied("file.lookup", "O/canary"), wasDenied("file.rename", ""), wasDenied("file.unlink", "")).with("credential-denied"),
		"AGT-009b": seen(wasDenied("file.lookup", "H/.claude/.credentials.json"), wasDenied("file.lookup", "H/.codex/auth.json")).with("credential-denied"),
		"AGT-009c": seen(Attempt{Action: "file.write", Object: "H/.claude.json"}).with("guardrail-denied"),
		"AGT-009d": seen(wasDenied("file.write", "H/.local/bin/agent")).with("program-denied"),
		"AGT-010":  seen(wasDenied("file.quarantine", "W/.claude"), wasDenied("file.quarantine", "W/.mcp.json"), wasDenied("file.quarantine", "W/opencode.json")).with("quarantined", "deferred-new"),
		"AGT-010b": seen(wasDenied("file.quarantine", "W/packages/deep/.claude"), wasDenied("file.quarantine", "W/packages/new/.mcp.json")).with("quarantined", "deferred-new"),
		"AGT-010c": seen(wasDenied("file.write", "W/docs/agent/settings.json")).with("protected-denied"),
		"AGT-010d": seen(wasDenied("file.write", "W/config/servers.json"), wasDenied("file.quarantine", "W/config/cursor.json")).with("protected-denied", "quarantined"),
		"AGT-010e": seen(wasDenied("file.write", "W/scripts/lint.sh"), wasDenied("file.write", "W/tools/server")).with("protected-denied"),
		"AGT-010g": {None: "the file is written as any file of the project is, and nothing is refused"},
		"AGT-010f": seen(wasDenied("file.write", "W/notes/plain.json")).with("protected-denied"),
		"AGT-321":  seen(wasDenied("file.write", "W/ci/line.sh"), wasDenied("file.write", "W/srv/it"), wasDenied("file.write", "W/ci/tell.py")).with("protected-denied"),
		"AGT-011":  seen(Attempt{Action: "file.mkdir", Verdict: "allowed"}, Attempt{Action: "file.write", Verdict: "allowed"}),
		"AGT-011b": seen(wasDenied("file.mkdir", "B/tmp")),
		"AGT-012":  seen(wasDenied("file.write", "O/canary"), wasDenied("file.lookup", "O/canary"), Attempt{Action: "file.write", Object: "H/.ssh/id_probe", Error: "ENOENT"}).with("credential-write"),

		"MCP-001":  ofPayload("matrix"),
		"MCP-002":  seen(wasDenied("file.lookup", "S/w_evil/canary"), wasDenied("file.lookup", "W/l/canary"), wasDenied("file.lookup", "W/k")).with("credential-denied"),
		"MCP-004":  seen(wasDenied("file.lookup", "H/.ssh/id_probe"), started("turns")).with("credential-denied"),
		"MCP-004b": seen(wasDenied("file.write", "W/.mcp.json"), wasDenied("file.write", "W/.cursor/mcp.json")).with("guardrail-denied"),
		"MCP-004c": seen(wasDenied("file.lookup", "H/.ssh/id_probe"), started("poisoned")).with("credential-denied"),
		"MCP-005":  ofPayload("hidden", "hidden-names"),
		"MCP-006":  seen(wasDenied("file.lookup", "H/.ssh/id_probe"), started("shadow")).with("credential-denied"),
		"MCP-009":  seen(Attempt{Action: "sock.bind"}, Attempt{Action: "sock.connect"}),
		"MCP-009b": seen(Attempt{Action: "sock.connect"}),
		"MCP-010":  seen(wasDenied("file.lookup", "O/canary"), wasDenied("file.lookup", "H/.ssh/id_probe")).with("credential-denied", "alias", "traversal", "system-secret"),
		"MCP-011":  ofPayload("page"),
		"MCP-012":  seen(wasDenied("file.mkdir", "O")),

		"HST-014":  {None: "what is tried is the harness; the runs inside of it have worlds of their own"},
		"HST-015":  {None: "what is tried is the harness; the runs inside of it have worlds of their own"},
		"HST-019":  outsideDenied,
		"HST-019b": seen(wasDenied("sock.connect", "")).with("runtime-socket"),
		"HST-021":  {None: nothingStarted},
		"HST-021b": seen(wasDenied("file.write", "W/shown-canary")).with("link-protected"),
		"HST-040":  ofPayload("as-git", "as-id", "as-uname"),
		"HST-040b": {None: nothingStarted},
		"HST-040c": {None: nothingStarted},
		"HST-040d": ofPayload("by-git"),
		"HST-040f": {None: nothingStarted},
		"HST-040g": {None: nothingStarted},
		"HST-040e": outsideDenied,
		"LNK-019":  seen(Attempt{Action: "file.write", Object: "W/docs/guide"}).with("link-redirects"),

		"ARC-001b": seen(wasDenied("file.mkdir", "O")),
		"ARC-001c": seen(wasDenied("file.mkdir", "O")),
		"ARC-002b": seen(wasDenied("file.mkdir", "O")),
		"ARC-005b": byStat(seen(wasDenied("file.lookup", "W/unpacked/zip-links/d"), wasDenied("file.lookup", "W/unpacked/gnu/d"))),
		"ARC-005c": byStat(seen(wasDenied("file.lookup", "W/unpacked/swapped/b"))),
		"ARC-005d": trail(seen(wasDenied("file.mkdir", "O")), byStat(seen(wasDenied("file.lookup", "W/unpacked/patch/l")))),
		"ARC-014":  seen(wasDenied("file.write", "W/.git/config"), wasDenied("file.quarantine", "W/.claude"), wasDenied("file.quarantine", "W/.mcp.json")).with("hook-denied", "quarantined"),

		"PXY-022b": seen(wasDenied("net.connect", ""), wasDenied("net.query", "denied.test")).with("unknown-host"),
		"PXY-023":  seen(wasDenied("net.connect", ""), wasDenied("net.query", "denied.test")).with("unknown-host"),
	}
})

// traced gives rows their traces.
func traced(rows []Row) []Row {
	for i := range rows {
		if rows[i].Trace.empty() {
			rows[i].Trace = agentTraces()[rows[i].ID]
		}
	}
	return rows
}
