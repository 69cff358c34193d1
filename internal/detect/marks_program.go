package detect

import (
	"slices"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
)

var programNames = sync.OnceValue(func() map[string]trait {
	m := map[string]trait{}
	for word, names := range tableRows(programTable) {
		for _, name := range names {
			m[name] |= traitOf(word)
		}
	}
	return m
})

// argumentBytes is how much of a command line is looked at.
const argumentBytes = 4096

// program classifies a program by its name and its arguments. The maker of a
// file chooses its name: a name always adds to what is looked for, but excuses
// only if nothing inside can have made the file.
func (place *Place) program(p *event.Process, asked string) trait {
	path := p.Executable
	m := nameOfProgram(path) | nameOfProgram(asked)&plain
	if len(p.Argv) > 0 {
		m |= nameOfProgram(p.Argv[0]) & plain
	}
	if m&interpreter != 0 {
		m |= nameOfScript(p.Argv) & packager
	}
	if isInMemory(path) {
		m |= inMemory
	}
	where := place.nameTrust(path)
	if m&interpreter != 0 {
		if script := place.nameTrust(agentScript(p.Argv)); script != anybodys {
			m, where = m|agent, max(where, script)
		}
	}
	switch where {
	case installed:
		m |= replaceable
	case anybodys:
		m = m&^excusingMarks | replaceable
	}
	if len(p.Argv) > 1 {
		m |= place.argumentMarks(p.Argv, m)
	}
	if len(p.Argv) > 0 && m&shell == 0 {
		m |= place.commandMarks(p.Argv) &^ decoded // what it prints is text until something executes it
	}
	return m
}

// plain are the marks that a program may also get by the name that it was
// called by: those that excuse nothing.
const plain = shell | interpreter | fetcher | archiver | encoder | packager | container | vault | issuer | killer | miner | elevates | administers | offensive | shreds

// nameOfScript is what an interpreter executes: node npm-cli.js, python -m pip.
func nameOfScript(argv []string) trait {
	if len(argv) > 2 && argv[1] == "-m" {
		return nameOfProgram(argv[2])
	}
	if len(argv) < 2 {
		return 0
	}
	name := strings.TrimSuffix(strings.TrimSuffix(argv[1], ".js"), ".py")
	return nameOfProgram(strings.TrimSuffix(name, "-cli"))
}

// agentPackages are directories of node_modules whose scripts are agents.
var agentPackages = [...]string{"@anthropic-ai/claude-code/", "@openai/codex/", "@google/gemini-cli/", "@qwen-code/qwen-code/", "opencode-ai/", "@github/copilot/", "cline/"}

// agentScript is the script of an agent that an interpreter was given, "" for
// none. Only the flags with which agents start themselves again may precede it:
// some others load what the caller wants.
func agentScript(argv []string) string {
	for _, a := range argv[min(1, len(argv)):] {
		if a == "--expose-gc" || a == "--no-warnings" || a == "--enable-source-maps" || strings.HasPrefix(a, "--max-old-space-size=") || strings.HasPrefix(a, "--no-warnings=") {
			continue
		}
		if nameOfProgram(a)&agent != 0 {
			return a
		}
		if i := strings.LastIndex(a, modules); i >= 0 && slices.ContainsFunc(agentPackages[:], func(dir string) bool { return strings.HasPrefix(a[i+len(modules):], dir) }) {
			return a
		}
		return ""
	}
	return ""
}

const modules = "/node_modules/"

// versions is the directory in which some installers keep programs by the number
// of their version: …/claude/versions/2.1.330.
const versions = "/versions"

func nameOfProgram(path string) trait {
	at := strings.LastIndexByte(path, '/')
	name := path[at+1:]
	if at > 0 && strings.HasSuffix(path[:at], versions) && strings.Trim(name, "0123456789.") == "" {
		above := path[:at-len(versions)]
		name = baseName(above)
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "-"), ".exe") // the dash of a login shell; the ending of packages that have one name for all systems
	table := programNames()
	if m, ok := table[name]; ok {
		return m
	}
	return table[strings.TrimRight(name, "0123456789.-")]
}

func (place *Place) argumentMarks(argv []string, is trait) trait {
	var m trait
	left := argumentBytes
	for i, a := range argv[1:] {
		if left -= len(a); left < 0 {
			break
		}
		switch {
		case is&shell != 0 && isCodeFlag(argv[i]):
			m |= codeMarks(a) | place.shellMarks(a)
		case is&interpreter != 0 && isCodeFlag(argv[i]):
			m |= inlineCode | interpreterMarks(a)
		case is&interpreter != 0 && isCodeFlag(a):
			m |= inlineCode
		case is&packager != 0 && slices.Contains(installVerbs, a):
			m |= installs
		case is&killer != 0 && strings.Contains(a, "holdfast"):
			m |= supervisor
		case is&fetcher != 0 && (a == "-e" || a == "-c" || a == "--exec" || strings.HasPrefix(a, "EXEC:") || strings.HasPrefix(a, "SYSTEM:")) && slices.Contains(netcats, baseName(argv[0])):
			m |= networkShell
		}
		if strings.Contains(a, "stratum+tcp") || strings.Contains(a, "stratum+ssl") {
			m |= pools
		}
		if slices.Contains(unguardedFlags, a) {
			m |= unguarded
		}
	}
	return m
}

// unguardedFlags are the arguments that make agents ask for no permission.
var unguardedFlags = []string{
	"--dangerously-skip-permissions", "--yolo", "--dangerously-bypass-approvals-and-sandbox", "danger-full-access", "--sandbox=danger-full-access",
	"bypassPermissions", "--permission-mode=bypassPermissions", "--allow-all-tools", "--trust-all-tools",
}

var (
	codeFlags    = []string{"-c", "-e", "-E", "-r", "--eval", "-p", "--print", "-ec", "-lc", "-ic", "-xc"}
	installVerbs = []string{"install", "ci", "i", "add", "sync", "rebuild", "update", "upgrade"}
	netcats      = []string{"nc", "ncat", "netcat", "socat", "nc.traditional", "nc.openbsd"}
)

func isCodeFlag(a string) bool { return slices.Contains(codeFlags, a) }

// baseName is the last name of a path; "" where it ends in a slash.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// codeMarks classifies the code for a shell.
func codeMarks(code string) trait {
	m := inlineCode
	if strings.Contains(code, "/dev/tcp/") || strings.Contains(code, "/dev/udp/") {
		m |= networkShell
	}
	if (strings.Contains(code, "curl ") || strings.Contains(code, "wget ")) && pipesToShell(code) {
		m |= piped
	}
	if strings.Contains(code, "holdfast") && (strings.Contains(code, "pkill") || strings.Contains(code, "killall") || strings.Contains(code, "kill ")) {
		m |= supervisor
	}
	return m
}

// pipesToShell reports whether code pipes something into a program that executes it.
func pipesToShell(code string) bool {
	for rest := code; ; {
		i := strings.IndexByte(rest, '|')
		if i < 0 {
			return false
		}
		rest = strings.TrimLeft(rest[i+1:], " \t|&")
		rest = strings.TrimPrefix(rest, "sudo ")
		word, _, _ := strings.Cut(rest, " ")
		word = strings.TrimRight(word, ";&)\n")
		if nameOfProgram(word)&(shell|interpreter) != 0 && !strings.HasSuffix(word, "awk") {
			return true
		}
	}
}
