package detect

import (
	"slices"
	"strings"
)

// command is one command of a shell text, as far as it can be parsed without a
// shell: quotes are dropped, nothing is expanded.
type command struct {
	words  []string // without redirections
	piped  bool     // it reads the output of the one before it
	within string   // the command that gets its output as an argument: curl, in curl -d "$(env)"
}

// maxCommands is how many commands of one text are looked at.
const maxCommands = 64

// commandsOf splits the text of a shell into commands.
func commandsOf(code string) (all []command) {
	now, within := command{}, ""
	end := func(next command) {
		if now.words = plainWords(now.words); len(now.words) > 0 {
			all = append(all, now)
		}
		now = next
	}
	for code != "" && len(all) < maxCommands {
		i := strings.IndexAny(code, "|&;()`\n \t")
		if i < 0 {
			now.words = append(now.words, code)
			break
		}
		word, sign := code[:i], code[i]
		code = code[i+1:]
		if word != "" {
			now.words = append(now.words, word)
		}
		switch sign {
		case ' ', '\t':
		case '(', '`':
			if within = ""; len(now.words) > 1 {
				within = now.words[0]
			}
			end(command{within: within})
		case '|':
			end(command{piped: !strings.HasPrefix(code, "|"), within: within})
			code = strings.TrimPrefix(code, "|")
		default:
			end(command{})
		}
	}
	end(command{})
	return all
}

// plainWords are the words of a command without quotes, from its name up to the
// first redirection. An assignment that preloads a library stays in front.
func plainWords(words []string) (out []string) {
	for _, w := range words {
		w = strings.Map(func(r rune) rune {
			if r == '"' || r == '\'' || r == '\\' {
				return -1
			}
			return r
		}, w)
		switch {
		case w == "" || len(out) == 0 && isBefore(w):
		case strings.ContainsAny(w, "<>"):
			return out
		default:
			out = append(out, w)
		}
	}
	return out
}

// isBefore reports whether a word may precede the name of a command.
func isBefore(w string) bool {
	switch w {
	case "eval", "exec", "command", "builtin", "nohup", "time", "then", "do", "else", "if", "while", "!", "{", "}":
		return true
	}
	name, _, ok := strings.Cut(w, "=")
	return ok && !strings.HasPrefix(w, "LD_") && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == ""
}

// shellMarks classifies each command that a shell is to execute.
func (p *Place) shellMarks(code string) (m trait) {
	var before trait // of the commands that print into the pipe
	for _, c := range commandsOf(code) {
		is, does := nameOfProgram(c.words[0]), p.commandMarks(c.words)
		if !c.piped {
			before = 0
		}
		if strings.HasPrefix(c.words[0], "$") && isDecoding(code) {
			does |= decoded // it is in a variable
		}
		before |= does
		sends := c.piped && is&(fetcher|encoder) != 0 || nameOfProgram(c.within)&fetcher != 0
		if before&dumpsEnvironment != 0 && sends {
			m |= sendsEnvironment
		}
		if before&decoded != 0 && c.piped && is&(shell|interpreter) != 0 && readsCode(c.words) {
			m |= decoded
		}
		does &^= decoded | notableTools // what is executed counts; names are looked for below
		if name := baseName(c.words[0]); name == "env" || name == "printenv" {
			does &^= dumpsEnvironment // it is executed, and has an event of its own
		}
		m |= does
	}
	for _, c := range commandsOf(stripQuotes(code)) {
		m |= p.commandMarks(c.words) & notableTools
	}
	return m
}

// notableTools are the marks that a command gets only by its name, which is a word
// that people search for and write about.
const notableTools = administers | offensive

// stripQuotes returns code without the text in quotes, except where something is
// executed within them.
func stripQuotes(code string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(code, `'"\`)
		if i < 0 {
			return b.String() + code
		}
		b.WriteString(code[:i])
		quote, rest := code[i], code[i+1:]
		end := strings.IndexByte(rest, quote)
		if quote == '\\' {
			code = rest[min(1, len(rest)):]
			continue
		}
		if end < 0 {
			code = rest
			continue
		}
		if text := rest[:end]; quote == '"' && (strings.Contains(text, "$(") || strings.Contains(text, "`")) {
			b.WriteString(text)
		} else {
			b.WriteString("quoted")
		}
		code = rest[end+1:]
	}
}

// commandMarks classifies one command by its words.
func (p *Place) commandMarks(words []string) (m trait) {
	for len(words) > 0 && strings.HasPrefix(words[0], "LD_") {
		m |= preloadMarks(words[0])
		words = words[1:]
	}
	if len(words) == 0 {
		return m
	}
	name := baseName(words[0])
	m |= nameOfProgram(name) & (elevates | notableTools)
	if len(words) > 1 && nameOfProgram(name)&(shell|interpreter) != 0 {
		m |= nameOfProgram(strings.TrimSuffix(words[1], ".py")) & offensive
	}
	if asksForChange(name, words[1:]) {
		m |= administers
	}
	if decodes(name, words[1:]) {
		m |= decoded
	}
	switch name {
	case "env", "printenv", "set", "export", "declare", "typeset":
		if dumps(name, words[1:]) {
			m |= dumpsEnvironment
		}
		for _, w := range words[1:] {
			m |= preloadMarks(w)
		}
	case "code":
		if len(words) > 1 && words[1] == "tunnel" {
			m |= offensive
		}
	case "find", "fd", "fdfind", "grep", "egrep", "fgrep", "rg", "ag", "ack", "locate", "plocate", "mlocate":
		m |= p.searchMarks(name, words[1:])
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "/proc/") && strings.HasSuffix(w, "/environ") {
			m |= dumpsEnvironment
		}
	}
	return m
}

// asksForChange reports whether a command that mostly shows information is used
// to change the machine.
func asksForChange(name string, arguments []string) bool {
	verbs := ""
	switch name {
	case "systemctl":
		verbs = " start stop restart reload enable disable mask unmask kill edit daemon-reload isolate set-default reboot poweroff halt "
	case "service":
		verbs = " start stop restart "
	case "journalctl":
		return slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--vacuum") || a == "--rotate" })
	case "sysctl":
		return slices.ContainsFunc(arguments, func(a string) bool { return a == "-w" || strings.Contains(a, "=") })
	}
	return slices.ContainsFunc(arguments, func(a string) bool { return strings.Contains(verbs, " "+a+" ") })
}

// decodes reports whether a command prints decoded data.
func decodes(name string, arguments []string) bool {
	switch name {
	case "base64", "base32", "basenc", "openssl":
		return slices.ContainsFunc(arguments, func(a string) bool { return a == "-d" || a == "-D" || a == "-di" || a == "--decode" })
	case "xxd":
		return slices.ContainsFunc(arguments, func(a string) bool { return a == "-r" || a == "-rp" || a == "-ps" })
	case "b64decode", "uudecode":
		return true
	}
	return false
}

// isDecoding reports whether a text contains a command that decodes.
func isDecoding(code string) bool {
	return strings.Contains(code, "base64 -d") || strings.Contains(code, "base64 --decode") || strings.Contains(code, "xxd -r")
}

// readsCode reports whether a shell or an interpreter is given no code, and so
// reads from its input what it executes.
func readsCode(words []string) bool {
	return !slices.ContainsFunc(words[1:], func(a string) bool { return !strings.HasPrefix(a, "-") || a == "-c" || a == "-m" || a == "-e" })
}

// interpreterMarks classifies the code that an interpreter is given.
func interpreterMarks(code string) trait {
	executes := slices.ContainsFunc([]string{"exec(", "eval(", "system(", "popen("}, func(call string) bool { return strings.Contains(code, call) })
	_, after, decodes := strings.Cut(code, "b64decode")
	if executes && strings.Contains(code, "base64") || decodes && (executes || strings.Contains(after, "subprocess.")) {
		return decoded
	}
	return 0
}

// dumps reports whether a command prints the whole environment.
func dumps(name string, arguments []string) bool {
	switch {
	case len(arguments) == 0:
		return name != "declare" && name != "typeset"
	case len(arguments) > 1:
		return false
	}
	a := arguments[0]
	return a == "-p" && (name == "export" || name == "declare" || name == "typeset") || a == "-x" && (name == "declare" || name == "typeset")
}

// preloadMarks finds a library that is to be loaded into every program, and
// lies where the caller may have made it. One without a slash, or of the
// system, does not count: allocators are loaded so.
func preloadMarks(w string) trait {
	name, value, _ := strings.Cut(w, "=")
	if name != "LD_PRELOAD" && name != "LD_AUDIT" {
		return 0
	}
	for _, lib := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' }) {
		if strings.Contains(lib, "/") && !withinAny(lib, "/usr", "/lib", "/lib64", "/opt") {
			return preloads
		}
	}
	return 0
}

// searchedNames are names by which keys, passwords and browser data are searched for.
var searchedNames = [...]string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.kdbx", "*.env", ".env",
	"PRIVATE KEY", "AKIA", "aws_access_key", "aws_secret", "credentials", "wallet.dat", "kubeconfig", "authorized_keys", "passw",
	"-name .netrc", "-name .git-credentials", "-name .gnupg", "-name .ssh", "-name .aws", "logins.json", "key4.db", "Login Data", "places.sqlite", "/Bookmarks"}

// searchMarks finds a search for keys outside the workspace, and one for
// programs that run as another user.
func (p *Place) searchMarks(name string, arguments []string) (m trait) {
	text := strings.Join(arguments, " ")
	if name == "find" && strings.Contains(text, "-perm") && (strings.Contains(text, "4000") || strings.Contains(text, "2000") || strings.Contains(text, "6000") || strings.Contains(text, "=s") || strings.Contains(text, "+s")) {
		m |= seeksPrivileged
	}
	searched := func(n string) bool { return strings.Contains(text, n) }
	if (strings.HasSuffix(name, "locate") || slices.ContainsFunc(arguments, p.isOutside)) && slices.ContainsFunc(searchedNames[:], searched) {
		m |= seeksKeys
	}
	return m
}

// isOutside reports whether an argument is a directory outside the workspace
// that holds what people keep.
func (p *Place) isOutside(a string) bool {
	switch {
	case a == "/" || a == "~" || a == ".." || strings.HasPrefix(a, "~/") || strings.HasPrefix(a, "../") || strings.HasPrefix(a, "$HOME") || strings.HasPrefix(a, "${HOME}"):
		return true
	case p.Workspace != "" && within(a, p.Workspace):
		return false
	}
	return withinAny(a, "/home", "/Users", "/root", "/etc", "/var", "/srv", "/mnt")
}
