package rules

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// Bounds of the readings of one execution. Beyond them is a reading that may be
// anything, so that every rule about commands is met: no honest command line
// comes near, and one that does hides something.
const (
	maxReadings = 64
	maxPeeled   = 6 // programs that execute each other without a new execution
)

// reading is one way to see what is executed: a script is also its interpreter,
// and what the dynamic loader loads is also the loader.
type reading struct {
	program, verb string
	args          []string // after the verb
	ended         bool     // the arguments ended before the verb
	anything      bool     // the program is not known, and so neither is its verb
}

// readings are the ways to see what is executed. What the kernel would execute
// counts, and every name that it has: the file's, that of the requested link,
// the one that the caller gives it, and that of the same file elsewhere. The
// caller chooses names, so more of them make more rules match, never fewer.
func (m *Matcher) readings(a event.Attempt) []reading {
	if a.Kind != event.KindExec {
		return []reading{{program: baseName(a.Process.Executable), anything: anyProcess(&a)}}
	}
	r := reader{ruleIndex: m.indexes[event.KindExec], files: m.files, cwd: a.Process.Cwd, cut: a.Cut}
	if m.files.unknown(a.Process.Executable, a.Process.SHA256) || m.files.unknown(a.Script, a.ScriptSHA256) {
		r.addReadings(reading{anything: true})
	}
	argv := a.Process.Argv
	rest := argumentsOf(argv)
	called := ""
	if len(argv) > 0 {
		called = strings.TrimPrefix(baseName(argv[0]), "-") // of a login shell
	}
	executable := append(m.files.names(a.Process.Executable, a.Process.SHA256), baseName(a.Process.Executable))
	kind := familyOf(executable)
	if (kind == "env" || kind == "proxy") && !m.files.fixed(a.Process.Executable) {
		kind = "" // it may be anything, under a name that is trusted to execute its program anew
	}
	if a.Script == "" && kind == "proxy" && family(called) != "proxy" {
		return nil // it executes the program by whose name it is called, which is judged then
	}
	if a.Script == "" {
		r.readNames(called, rest, append(executable, baseName(a.Path), called)...)
		return r.out
	}
	before := a.Interpreted
	if len(before) == 0 {
		before = []string{a.Script}
	}
	r.readNames("", slices.Concat(before, rest), executable...)
	script := append(m.files.names(a.Script, a.ScriptSHA256), scriptNames(a.Script)...)
	script = append(script, append(scriptNames(a.Path), called)...)
	switch kind {
	case "env", "proxy": // these execute their program anew, which is judged then
	case "shell": // likewise if what it starts is known
		r.readNames("", rest, slices.DeleteFunc(script, startedAgain)...)
	default:
		r.readNames("", rest, script...)
	}
	return r.out
}

func argumentsOf(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	return argv[1:]
}

// baseName is the last name of a path; "" of "".
func baseName(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}

// reader collects readings. It takes apart only what a rule may be about.
type reader struct {
	ruleIndex *ruleIndex
	files     *files
	cwd       string
	out       []reading
	depth     int
	cut       bool // the arguments are incomplete
}

// readNames reads an execution under each of some names. called is the last name of
// the first argument, by which some programs choose what they are.
func (r *reader) readNames(called string, args []string, names ...string) {
	for i, name := range names {
		if name != "" && !slices.Contains(names[:i], name) {
			r.readName(called, name, args)
		}
	}
}

func (r *reader) readName(called, name string, args []string) {
	if r.depth == maxPeeled {
		r.addReadings(reading{anything: true})
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	switch family(name) {
	case "loader":
		r.readLoader(args)
	case "emulator":
		r.readEmulator(args)
	case "box":
		r.applet(called, args)
	case "corepack":
		if len(args) > 0 {
			manager, _, _ := strings.Cut(args[0], "@")
			r.readName("", manager, args[1:])
		} else {
			r.addUnknown()
		}
	case "shell", "python", "node", "perl", "ruby", "php", "lua":
		r.readInterpreter(name, args)
		return
	case "git":
		if verb, dashed := strings.CutPrefix(called, "git-"); dashed && name == "git" {
			r.addReadings(reading{program: "git", verb: verb, args: args})
			return
		}
		if verb, dashed := strings.CutPrefix(name, "git-"); dashed {
			r.addReadings(reading{program: name, args: args}, reading{program: "git", verb: verb, args: args})
			return
		}
	}
	if !versioned(name) {
		r.command(name, args)
		return
	}
	for _, plain := range versions(name) {
		r.command(plain, args)
	}
}

// command reads a program's arguments by its own grammar.
func (r *reader) command(name string, args []string) {
	if !r.wanted(name) {
		return
	}
	g, known := grammars()[name]
	if !known {
		g = anyGrammar
	}
	for _, one := range g.read(args) {
		one.program = name
		r.addReadings(one)
		if name != "git" || one.ended {
			continue
		}
		if meant := autocorrected(one.verb); meant != "" {
			r.addReadings(reading{program: name, verb: meant, args: one.args})
		}
	}
}

// wanted reports whether a rule can be about a program of this name.
func (r *reader) wanted(name string) bool {
	return r.cut || len(r.ruleIndex.always) > 0 || len(r.ruleIndex.byVerb) > 0 || r.ruleIndex.byProgram[name] != nil
}

func (r *reader) addReadings(all ...reading) {
	for _, one := range all {
		if len(r.out) == maxReadings || slices.ContainsFunc(r.out, one.equals) {
			continue
		}
		if len(r.out) == maxReadings-1 {
			one = reading{anything: true}
		}
		r.out = append(r.out, one)
	}
}

// equals reports whether both say the same, of one command line.
func (r reading) equals(o reading) bool {
	return r.program == o.program && r.verb == o.verb && r.ended == o.ended && r.anything == o.anything &&
		len(r.args) == len(o.args) && (len(r.args) == 0 || r.args[0] == o.args[0])
}

// addUnknown adds that it is not known what is executed, if the arguments are
// cut before they say it.
func (r *reader) addUnknown() {
	if r.cut {
		r.addReadings(reading{anything: true})
	}
}

// readLoader reads what the dynamic loader would load: ld.so [OPTION]… PROGRAM
// [ARGUMENT]….
func (r *reader) readLoader(args []string) {
	called := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		option, value, given := strings.Cut(args[0], "=")
		args = args[1:]
		if !slices.Contains(loaderValues, option) {
			continue
		}
		if !given && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if option == "--argv0" {
			called = baseName(value)
		}
	}
	if len(args) == 0 {
		r.addUnknown()
		return
	}
	if !r.files.hasTrustedName(args[0]) {
		r.addReadings(reading{anything: true})
	}
	name := baseName(args[0])
	if called == "" {
		called = name
	}
	r.readNames(called, args[1:], name, called)
}

// loaderValues are the options of ld.so(8) and of musl's that take a value.
var loaderValues = []string{"--library-path", "--preload", "--argv0", "--audit", "--inhibit-rpath", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"}

// readEmulator reads what an emulator would execute by itself. It is not known
// which of its options have a value: each word that can be the program may be
// it, up to the first path that can be nothing else.
func (r *reader) readEmulator(args []string) {
	for i, word := range args {
		if word == "" || word[0] == '-' {
			continue
		}
		name := baseName(word)
		r.readName(name, name, args[i+1:])
		if strings.ContainsRune(word, '/') {
			if !r.files.hasTrustedName(word) {
				r.addReadings(reading{anything: true})
			}
			if i == 0 || !strings.HasPrefix(args[i-1], "-") {
				return // it is not the value of an option before it
			}
		}
	}
	r.addUnknown()
}

// applet reads what a program for many commands would be: by the name it is
// called by, or by its first argument.
func (r *reader) applet(called string, args []string) {
	if family(called) != "box" && called != "" {
		r.readName(called, called, args)
	}
	if len(args) == 0 {
		r.addUnknown()
		return
	}
	name := args[0]
	for _, option := range []string{"--coreutils-prog=", "--coreutils-prog-shebang="} {
		name = strings.TrimPrefix(name, option)
	}
	name = baseName(name)
	r.readName(name, name, args[1:])
}

// scriptNames are the names of an interpreted file: its name, and its name
// without the ending for its language.
func scriptNames(file string) []string {
	name := baseName(file)
	names := []string{name}
	stem := name
	for _, end := range []string{".js", ".cjs", ".mjs", ".py", ".pyz", ".rb", ".pl", ".phar", ".php", ".sh"} {
		stem = strings.TrimSuffix(stem, end)
	}
	for range 4 { // the start file of a package is named after where it is
		if !slices.Contains(entries, stem) {
			break
		}
		file = path.Dir(file)
		stem = baseName(file)
	}
	stem = strings.TrimSuffix(stem, "-cli")
	if strings.HasPrefix(stem, "yarn-") { // as a project keeps it
		stem = "yarn"
	}
	if stem != name {
		names = append(names, stem)
	}
	return names
}

// entries are names of a file, or of a directory, that say no more than that a
// package begins there.
var entries = []string{"__main__", "__pip-runner__", "index", "cli", "main", "bin", "lib", "dist", "src", "_internal"}

// versions are a name, and the name without its version: python3.11 is also
// python3 and python.
func versions(name string) []string {
	if !versioned(name) {
		return []string{name}
	}
	stem := strings.TrimRight(name, "0123456789.")
	if stem == "" {
		return []string{name}
	}
	major, _, more := strings.Cut(name[len(stem):], ".")
	all := []string{name}
	if more {
		all = append(all, stem+major)
	}
	return append(all, strings.TrimSuffix(stem, "-"))
}

func versioned(name string) bool {
	return name != "" && (name[len(name)-1] == '.' || '0' <= name[len(name)-1] && name[len(name)-1] <= '9')
}

// family is the kind of program that a name refers to, as far as it matters to
// what is executed: "" for an ordinary one.
func family(name string) string {
	if strings.HasPrefix(name, "git-") || name == "git" {
		return "git"
	}
	if strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so") || name == "ld.so" {
		return "loader"
	}
	if strings.HasPrefix(name, "qemu-") {
		return "emulator"
	}
	if strings.HasPrefix(name, "busybox") {
		return "box"
	}
	f := families[name]
	if f == "" && versioned(name) {
		for _, plain := range versions(name) {
			f = cmp.Or(f, families[plain])
		}
	}
	return f
}

func familyOf(names []string) string {
	for _, name := range names {
		if f := family(name); f != "" {
			return f
		}
	}
	return ""
}

var families = map[string]string{
	"toybox": "box", "coreutils": "box", "uutils": "box",
	"box64": "emulator", "box86": "emulator", "FEXInterpreter": "emulator", "FEXLoader": "emulator", "blink": "emulator", "valgrind": "emulator",
	"env": "env", "corepack": "corepack", "rustup": "proxy", "volta-shim": "proxy",
	"sh": "shell", "bash": "shell", "dash": "shell", "ash": "shell", "zsh": "shell", "ksh": "shell", "mksh": "shell", "yash": "shell", "fish": "shell", "csh": "shell", "tcsh": "shell", "rbash": "shell", "posh": "shell",
	"python": "python", "pypy": "python", "ipython": "python",
	"node": "node", "nodejs": "node", "bun": "", "perl": "perl", "ruby": "ruby", "jruby": "ruby", "php": "php", "lua": "lua", "luajit": "lua", "texlua": "lua",
}

// startedAgain reports whether a shell script of this name executes a program
// that then has the same name.
func startedAgain(name string) bool {
	return slices.Contains([]string{"npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "corepack", "pip", "pip3", "pipx", "twine", "poetry", "gem", "bundle", "composer", "python", "python3", "node", "ruby", "cargo", "go", "git"}, name)
}

func toolArguments(text string) expr.ToolArguments { return expr.Arguments(text) }
