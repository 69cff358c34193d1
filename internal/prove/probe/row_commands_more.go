//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// seenOf is what must be seen of a set of tricks: each file that was to be made
// and was not, the secret that was asked for, and that somebody was called.
func seenOf(set string, file string) (t Trace) {
	add := func(a Attempt) {
		if !slices.ContainsFunc(t.Events, func(b Attempt) bool { return b.Object == a.Object && b.Action == a.Action }) {
			t.Events = append(t.Events, a)
		}
	}
	stat := askedByStat[set]
	for _, trick := range inside.Tricks(set) {
		switch trick.Effect {
		case inside.Makes:
			add(Attempt{Object: askedFor(set, trick), Verdict: "denied", ByStat: slices.Contains(stat, trick.Name)})
		case inside.Prints:
			add(Attempt{Object: "H/.ssh/id_probe", Verdict: "denied", ByStat: slices.Contains(stat, theKey)})
		case inside.Dials:
			add(Attempt{Action: "sock.connect"})
		case inside.Appends:
			add(Attempt{Object: file, Verdict: "denied"})
		}
	}
	if slices.ContainsFunc(t.Events, func(a Attempt) bool { return a.Object == "H/.ssh/id_probe" }) {
		t = trail(t, ofTheKey(slices.Contains(stat, theKey)))
	}
	t.Rules = append(t.Rules, rulesOf[set]...)
	return t
}

// theKey stands for all tricks of a set that print the key.
const theKey = "the key"

// askedByStat are the tricks of a set whose program, in one layout or another, asks by
// stat(2) whether the file or its directory is there, and goes no further with it.
var askedByStat = map[string][]string{
	"abbreviated":     {"cp-target", "cp-t", "ln-s"},
	"abbreviated-git": {"init-sep", "format-patch"},
	"ar":              {"script", "plugin"},
	"cpio":            {"pass", theKey},
	"git-writes": {
		"format-patch", "format-patch-dir", "clone", "worktree", "import-marks", "separate", "notes-merge", "symbolic", "diagnose",
		"pack-objects", // what it renames the pack to is not what the event is about
	},
	"kubectl":   {"write", theKey},
	"python":    {"pip-config"},
	"rsync":     {"write", "log", theKey},
	"tar":       {"one-top"},
	"terraform": {"state", "arguments"},
	"unzip":     {"directory"},
}

// entering are the tricks of a set that make their file once they are in the
// directory, and so ask for that alone.
var entering = map[string][]string{
	"builtins": {"umask-cd"},
	"cd":       {"into-outside", "pushed", "cdpath", "back", "up", "pushd", "env", "git", "tar", "make"},
	"python":   {"dirfd"},
	"session":  {"cd"},
	"tar":      {"directory"},
}

// ofTheKey is the alert about the key.
func ofTheKey(stat bool) Trace {
	if stat {
		return byStat(raised("credential-denied"))
	}
	return raised("credential-denied")
}

// askedFor is what a trick that makes something asks for, as far as it is known.
func askedFor(set string, t inside.Trick) string {
	switch {
	case slices.Contains(entering[set], t.Name):
		return "O"
	case t.Target == "":
		return "O/x-" + t.Name
	case strings.HasPrefix(t.Target, "{X}"):
		return "O/x-" + t.Name + "*"
	}
	return "O/*"
}

// rulesOf are the rules that speak of what a set does. There is none for a
// command that only is an odd one: what it does is judged.
var rulesOf = map[string][]string{
	"loader":  {"loader-exec"},
	"python":  {"memory-exec"},
	"renamed": {"network-shell", "piped-download"},
}

// hiding are texts that show something else than they are.
func hiding(id, title string, refs []string, names ...string) Row {
	var lines []string
	var t Trace
	for _, n := range names {
		lines = append(lines, fmt.Sprintf("%x", n))
		t.Events = append(t.Events, Attempt{Action: "proc.exec", Verdict: "allowed", Arg: "line=" + n})
	}
	t.Rules = []string{"credential-denied"}
	return Row{ID: id, Class: classTerminal, Kind: Host, Promise: "P9", Title: title, Refs: refs,
		Harmless: "a program may be called anything; what counts is how it is shown",
		Bare:     "nobody shows a command where there is no launcher",
		Oracle:   both(shownPlainly, saidPlainly),
		Trace:    t,
		Action:   "hidden-commands", Args: []string{"names=" + strings.Join(lines, "\n")}}
}

// saidPlainly demands that the launcher says nothing in characters that act or
// hide.
func saidPlainly(_ *World, o Observation) []string {
	said := strings.ReplaceAll(string(o.Stderr), "\r\n", "\n") // the end of a line on a raw terminal
	for _, bad := range actingOrHiding {
		if strings.Contains(said, bad) {
			return []string{fmt.Sprintf("the launcher said %+q, out of a name", bad)}
		}
	}
	return nil
}

var actingOrHiding = []string{"\r", "\b", "\a", "\x1b[2K", "\x1b[8m", "\x1b]", "\x7f", "\u202e", "\u2066", "\u2069", "\u200b", "\u00ad", "\ufeff", "\u2028", "\u0085", "\u009b", "\U000e0072", "\U000e006d", "\xff"}

// shownCommands are rows of what a human is shown. There is no question to a
// human before issue 7; alerts, the end of a run and the record are shown.
func shownCommands() []Row {
	return []Row{
		hiding("TTY-009", "a part of a command is hidden by a return, a backspace or an erased line", []string{"Tracebit Gemini CLI (whitespace hiding)"},
			"rm x #\r echo ok", "rm x\b\b\b\bls a", "rm x\x1b[2K\x1b[1Gecho ok", "rm x\x1b[8mhidden\x1b[0m", "echo ok"+strings.Repeat(" ", 100)+"; rm x", "a\x7f\x7fb", "a\nholdfast: alert: none", "\u0085\u009b2Jx"),
		hiding("TTY-010", "a command is written in characters that turn or hide text", []string{"Rules File Backdoor (Pillar)", "CVE-2021-42574", "UAX #9"},
			"rm \u202egnp.exe\u202c", "a\u2066b\u2069c", "ls\U000e0072\U000e006d\U000e0020\U000e0078", "l\u200bs\ufeff", "s\u00adh\u2028x", "p\u0430ypal \u200f\u061c"),
	}
}

// otherSpellings are names that some file system, or a program on another
// system, takes for a protected one.
func otherSpellings() []Row {
	join := func(names ...string) Row {
		r := Row{Class: classPaths, Kind: Sandbox, Promise: "P3", Harmless: takenAway, Absent: names,
			Action: "create", Args: []string{"path=" + strings.Join(names, "\n")}}
		for _, n := range names {
			r.Trace.Events = append(r.Trace.Events, Attempt{Object: n})
		}
		return r
	}
	folding := join("W/.v\u017fcode/tasks.json", "W/sub/.v\u017fcode/ta\u017fk\u017f.json", "W/.vscode/tas\u212as.json", "W/.claude/\u017fettings.json", "W/.mcp.j\u017fon", "W/.hus\u212ay/pre-commit", "W/x/.cur\u017for/mcp.json")
	folding.ID, folding.Title = "PTH-005", "a protected name is spelled with letters that only fold or normalise to its own"
	folding.Refs = []string{"CVE-2014-9390", "UAX #15", "Unicode CaseFolding.txt: U+017F, U+212A"}

	composed := Row{ID: "PTH-005b", Class: classPaths, Kind: Sandbox, Promise: "P1",
		Title: "a hidden file is asked for in another composition of its letters", Refs: []string{"UAX #15", "CVE-2014-9390"},
		Plant: []string{"W/caf\u00e9.key", "W/n\u0303.key"}, Options: Options{Hide: []string{"W/caf\u00e9.key", "W/n\u0303.key"}},
		Trace:  nothing(readOnly),
		Action: "read", Args: []string{"path=W/cafe\u0301.key\nW/caf\u00e9.key\nW/\u00f1.key\nW/n\u0303.key"}}

	ignorable := join("W/.g\u200cit/hooks/pre-commit", "W/.gi\u200dt/hooks/post-checkout", "W/.\u200egit/hooks/post-checkout", "W/.git\u200f/hooks/post-checkout", "W/sub/.g\u202ait/hooks/post-checkout", "W/sub/.gi\u202et/hooks/post-checkout",
		"W/sub/\ufeff.git/hooks/post-checkout", "W/.g\u206ait/hooks/post-checkout", "W/.git\u206f/hooks/post-checkout", "W/.vs\u200ccode/tasks.json", "W/.cl\u200daude/settings.json", "W/.mcp\u200c.json")
	ignorable.ID, ignorable.Title = "PTH-006", "a protected name has code points in it that some file systems leave out"
	ignorable.Refs = []string{"CVE-2014-9390", "Apple TN1150"}
	return []Row{folding, composed, ignorable}
}

// encodedPaths give the way to a secret to a program that takes the escapes out
// of it after it was checked, as a server of files before a sandbox would.
func encodedPaths() []Row {
	row := func(id, title, set string, needs ...string) Row {
		r := trick(id, classPaths, title, set, []string{"general sandbox/Unix knowledge (man7.org, kernel docs)", "RFC 3986, 2.4"}, needs...)
		r.Promise = "P1"
		return r
	}
	return []Row{
		row("PTH-009", "the way to a secret is escaped twice, for a server of files in python", "encoded-python", "python3"),
		row("PTH-009b", "the same for curl and the shell", "encoded-curl", "sh", "curl", "git"),
		row("PTH-009c", "the same for node", "encoded-node", "node"),
	}
}

// diagnosticRows are played in a network: names that carry data are asked for.
func diagnosticRows() []Row {
	var rows []Row
	for i, program := range []string{"getent", "dig", "nslookup", "host", "ping", "whois", "traceroute"} {
		r := Row{ID: "ARG-014", Title: program + " carries data out in a name", Refs: append([]string{"CVE-2025-55284"}, injection...),
			Needs: []string{"program " + program}, Setup: network(quiet), Options: Options{Reach: quietReach}, Harmless: supervisors,
			Action: "tricks", Args: []string{"set=" + program},
			// The names are drawn anew each time.
			Trace: refused("egress", "net.query", "")}
		if i > 0 {
			r.ID += string(rune('a' + i))
		}
		if program == "getent" {
			r.Needs = append(r.Needs, "program python3", "program perl")
		}
		rows = append(rows, r)
	}
	return public(classArguments, rows...)
}
