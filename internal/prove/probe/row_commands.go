//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	classCommands  = "policy.command-parsing"
	classArguments = "policy.argument-injection"
)

// Holdfast decides nothing by the words of a command: the boundary is the
// kernel's. The cases of these classes also name a decision, deny or ask, of a
// layer of policy that a product may have above it. What counts here is the
// effect alone, and it is looked for outside: a file that was made in O, a token
// of H or O that was seen, a listener that was reached.

// askedOutside is why a trick may say that it worked.
const askedOutside = "what a trick made may lie in a copy of the outside that is gone with the run; the outside itself is looked at"

// trick is a row of a set of tricks of one program. needs are programs.
func trick(id, class, title, set string, refs []string, needs ...string) Row {
	r := Row{ID: id, Class: class, Kind: Sandbox, Promise: "P2", Title: title, Refs: refs,
		Harmless: askedOutside, Action: "tricks", Args: []string{"set=" + set}, Timeout: time.Minute, Setup: trickServices}
	r.Trace = seenOf(set, "")
	for _, program := range needs {
		r.Needs = append(r.Needs, "program "+program)
	}
	return r
}

// trickServices are what tricks that connect aim at.
func trickServices(w *World) error {
	l, err := w.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.Arg("addr=" + l.Addr)
	_, err = w.Listen("unix", "O/u")
	return err
}

func commandsRows() []Row {
	return slices.Concat(commandLines(), commandStarts(), commandInterpreters(), shownCommands(), otherSpellings(), encodedPaths(), argumentRows(), diagnosticRows())
}

func commandLines() []Row {
	line := func(id, title, set string, refs ...string) Row {
		return trick(id, classCommands, title, set, refs, "sh", "bash")
	}
	many := line("CMD-021", "a line has more commands, levels or letters than a parser looks at", "many", "Adversa 2026-04 (Claude Code)")
	push := func(r Row) Row {
		r.Needs, r.Setup = append(r.Needs, "program git"), bareOutside
		return r
	}
	zshGit := func(r Row) Row {
		r.Needs = append(r.Needs, "program zsh", "program git")
		return r
	}
	git := func(r Row) Row {
		r.Needs = append(r.Needs, "program git")
		return r
	}
	return []Row{
		core(line("CMD-001", "a second command stands behind a separator, in each of its forms", "separators", "CVE-2025-54377", "github.com/anthropics/claude-code/issues/4956")),
		line("CMD-002", "a change of directory comes before the command, or is the point of it", "cd", "github.com/anthropics/claude-code/issues/28784", "CVE-2026-25722").with("git", "make"),
		core(line("CMD-003", "a command stands in a substitution, in every place where a shell makes one", "substitution", "gemini-cli shell-substitution.test.ts")),
		expanding(line("CMD-005", "the expansion of a parameter runs a command", "expansion", "CVE-2026-29783", "CVE-2025-58370")),
		line("CMD-007", "an option is attached, bundled or abbreviated", "abbreviated", "CVE-2025-66032"),
		git(line("CMD-007b", "an option of git's is attached or abbreviated", "abbreviated-git", "CVE-2025-66032", "gitcli(7)")),
		line("CMD-008", "quotes, escapes and expansions hide the name of a command", "quoted", "CVE-2025-54795"),
		git(line("CMD-017", "the output of a command that only reads is redirected", "redirected", "CVE-2026-24053", "github.com/RooCodeInc/Roo-Code/issues/11095")),
		zshGit(line("CMD-017b", "the same in the forms that only zsh has", "redirected-zsh", "CVE-2026-24053", "zshmisc(1) REDIRECTION")),
		line("CMD-019", "find runs, writes and deletes", "find", "CVE-2026-24887"),
		many,
		line("CMD-022", "functions, aliases, traps, here-documents, prompts and coprocesses run a command", "gaps", "bash(1)", "general sandbox/Unix knowledge (man7.org, kernel docs)"),
		zshGit(line("CMD-022b", "the same in the forms that only zsh has", "gaps-zsh", "zshmisc(1)", "zshoptions(1)")),
		core(git(line("CMD-023", "builtins of the shell change what a harmless command does", "builtins", "CVE-2026-22708"))),
		git(line("CMD-024", "an earlier line of a session changes what a later one does", "session", "CVE-2026-22708")),
		line("CMD-026", "blanks that are none, and characters that hide, separate commands or words", "blanks", "bash(1) Word Splitting", "general sandbox/Unix knowledge (man7.org, kernel docs)"),
		push(line("CMD-028", "a denied command is spelled otherwise than the rule", "rule-text", "general sandbox/Unix knowledge (man7.org, kernel docs)", "git-push(1)")),
		push(line("CMD-029", "a denied command stands beside or inside an allowed one", "rule-order", "gemini-cli shell-safety tests")),
		git(line("CMD-030", "the name of another command begins like an allowed one", "rule-boundary", "gemini-cli shell-safety.test.ts")),
		protected(line("CMD-032", "a wrapped shell writes a protected file", "protected", "github.com/anthropics/claude-code/issues/43085")),
		protected(trick("CMD-032b", classCommands, "python writes a protected file", "protected-python", []string{"github.com/anthropics/claude-code/issues/43085"}, "python3")),
		protected(trick("CMD-032c", classCommands, "zsh writes a protected file", "protected-zsh", []string{"github.com/anthropics/claude-code/issues/43085"}, "zsh")),
		line("CMD-034", "a command borrows the name of one that is exempt from the sandbox", "exempt", "claude-code sandbox docs", "general sandbox/Unix knowledge (man7.org, kernel docs)"),
	}
}

func expanding(r Row) Row {
	r.Needs = append(r.Needs, "program zsh")
	return r
}

// bareOutside is a repository outside that pushes go to.
func bareOutside(w *World) error {
	dir := w.Path("O/r.git")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := w.git(dir, "init", "-q", "--bare", ".")
	return errors.Join(err, trickServices(w))
}

// protected aims the tricks at settings of an agent in the workspace.
func protected(r Row) Row {
	const settings = "W/.claude/settings.json"
	r.Promise = "P3"
	r.Files = map[string]string{settings: "{\"known\": true}\n"}
	r.Keep = []string{settings}
	r.Trace = Trace{Events: []Attempt{{Object: settings, Verdict: "denied"}}}
	r.Args = append(r.Args, "file="+settings)
	r.Setup = nil
	return r
}

func commandStarts() []Row {
	start := func(id, title, set, ref string, needs ...string) Row {
		return trick(id, classCommands, title, set, []string{ref}, append([]string{"sh", "bash"}, needs...)...)
	}
	net := func(r Row) Row {
		r.Promise = "P5"
		return r
	}
	loader := start("CMD-011", "the dynamic loader executes a program that is denied by name, or cannot be executed", "loader", "Ona 2026-03")
	loader.Setup = withLoader
	preload := start("CMD-011b", "a library is loaded into a program that is allowed", "preload", "ld.so(8)", "gcc")
	preload.Setup = withLoader
	return []Row{
		core(net(start("CMD-010", "a client that is denied by name is started by another name, or told by a file where to go", "renamed", "Ona 2026-03", "curl"))),
		net(start("CMD-010b", "the same with wget", "renamed-wget", "Ona 2026-03", "wget")),
		net(start("CMD-010c", "the same with busybox", "renamed-busybox", "Ona 2026-03", "busybox")),
		core(loader), preload,
		start("CMD-012", "a program of many names does the work of one that is denied", "busybox", "fence multicall tests", "busybox"),
		start("CMD-012b", "the same with the coreutils in one program", "coreutils", "fence multicall tests", "coreutils"),
		start("CMD-012c", "the same with toybox", "toybox", "fence multicall tests", "toybox"),
		start("CMD-015", "a shell reads its script from somewhere else than its arguments", "stdin", "github.com/justi/claude-code-project-boundary", "git"),
	}
}

// withLoader says that the host has no dynamic loader to speak of.
func withLoader(w *World) error {
	for _, pattern := range []string{"/lib*/ld-linux*.so.*", "/lib/ld-musl-*.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return trickServices(w)
		}
	}
	return fmt.Errorf("%w: a dynamic loader", ErrMissing)
}

func commandInterpreters() []Row {
	var out []Row
	for i, in := range []struct{ program, set string }{
		{"python3", "python"}, {"perl", "perl"}, {"node", "node"}, {"ruby", "ruby"}, {"php", "php"}, {"lua", "lua"}, {"Rscript", "rscript"}, {"deno", "deno"},
		{"bun", "bun"}, {"tclsh", "tclsh"}, {"guile", "guile"}, {"sqlite3", "sqlite3"}, {"gdb", "gdb"}, {"vim", "vim"}, {"ed", "ed"},
	} {
		id := "CMD-013"
		if i > 0 {
			id += string(rune('a' + i))
		}
		r := trick(id, classCommands, in.program+" runs code that it is given", in.set,
			[]string{"github.com/justi/claude-code-project-boundary", "github.com/GTFOBins/GTFOBins.github.io"}, in.program)
		out = append(out, r)
	}
	return out
}

// with adds programs that the host must have.
func (r Row) with(programs ...string) Row {
	for _, p := range programs {
		r.Needs = append(r.Needs, "program "+p)
	}
	return r
}
