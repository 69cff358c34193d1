package rules

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// Where an interpreter's program comes from: it is used as its verb.
const (
	fromStream = "stream" // standard input, or a descriptor
	fromInline = "inline" // its arguments
	fromFile   = "file"
	fromModule = "module" // found by its name
)

// startOptions are the options of an interpreter that matter to where its
// program comes from.
type startOptions struct {
	inline  string   // letters of options that take the program
	module  string   // letters of options that take the name of a module as the program
	file    string   // letters of options that take its file
	values  string   // letters of options that take a value, in the same word or the next
	joined  string   // likewise, but in the same word only
	next    string   // likewise, but always in the next word
	long    []string // long options that take a value in the next word
	program []string // long options that take the program
	stream  string   // letters of options that say that it comes from standard input
	tells   []string // options by which it only prints information
}

// interpreters are the options by family.
var interpreters = sync.OnceValue(func() map[string]startOptions {
	return map[string]startOptions{
		"shell": {inline: "c", next: "oO", stream: "s", long: []string{"--rcfile", "--init-file", "--init-command", "--debug", "--profile"},
			program: []string{"--command"}, tells: []string{"--version", "--help"}},
		"python": {inline: "c", module: "m", values: "WX", long: []string{"--check-hash-based-pycs"},
			tells: []string{"-V", "-VV", "--version", "-h", "--help", "--help-all", "--help-env"}},
		"node": {inline: "ep", values: "rC", program: []string{"--eval", "--print"},
			long: []string{"--require", "--import", "--loader", "--experimental-loader", "--conditions", "--env-file", "--env-file-if-exists", "--title", "--icu-data-dir",
				"--openssl-config", "--redirect-warnings", "--trace-event-categories", "--input-type", "--inspect-port", "--diagnostic-dir", "--report-dir", "--test-name-pattern", "--test-reporter", "--watch-path"},
			tells: []string{"-v", "--version", "-h", "--help", "--v8-options"}},
		"perl": {inline: "eE", values: "I", joined: "MmxFCDi", tells: []string{"-v", "-V", "-h", "--version", "--help"}},
		"ruby": {inline: "e", values: "rICEX", joined: "KxFTWi", tells: []string{"-v", "--version", "-h", "--help", "--copyright"}},
		"php":  {inline: "rRBE", file: "fF", values: "dcgzt", program: []string{"--run", "--process-code"}, tells: []string{"-v", "-i", "-m", "-h", "-S", "--version", "--info", "--modules", "--help", "--ini", "--server"}},
		"lua":  {inline: "e", values: "l", tells: []string{"-v"}},
	}
})

// readInterpreter reads what an interpreter would execute.
func (r *reader) readInterpreter(name string, args []string) {
	o := interpreters()[family(name)]
	verb, program, rest := o.source(args)
	if verb == fromFile {
		program = r.absolute(program)
		verb = fileOrStream(program)
	}
	ended := verb == fromStream && len(rest) == 0
	if ended {
		r.addUnknown()
	}
	for _, plain := range versions(name) {
		r.addReadings(reading{program: plain, verb: verb, args: rest, ended: ended})
	}
	switch verb {
	case fromFile:
		if family(name) != "shell" { // what a script of a shell executes is judged later
			r.readNames("", rest, scriptNames(program)...)
		}
	case fromModule:
		r.module(program, rest)
	}
}

// runners are the Python modules that execute another one, or a file.
var runners = []string{"runpy", "cProfile", "profile", "trace", "pdb", "coverage", "debugpy", "viztracer", "scalene"}

// module reads what a Python module would execute.
func (r *reader) module(name string, args []string) {
	name, _, _ = strings.Cut(name, ".")
	r.readNames("", args, name)
	if !slices.Contains(runners, name) {
		return
	}
	for i, word := range args { // whichever options have a value
		next := i + 1
		switch {
		case (word == "-m" || word == "--module") && next < len(args):
			r.readModule(args[next], args[next+1:])
		case name == "runpy" && i == 0:
			r.readModule(word, args[next:])
		case !strings.HasPrefix(word, "-") && strings.ContainsRune(word, '/'):
			r.readNames("", args[next:], scriptNames(r.absolute(word))...)
		}
	}
}

// readModule reads a module that another one executes.
func (r *reader) readModule(name string, args []string) {
	if r.depth++; r.depth > maxPeeled {
		r.addReadings(reading{anything: true})
	} else {
		r.module(name, args)
	}
	r.depth--
}

// absolute resolves a file from the caller's working directory.
func (r *reader) absolute(file string) string {
	if r.cwd == "" || path.IsAbs(file) {
		return file
	}
	return path.Join(r.cwd, file)
}

// source finds where the program comes from, what it is called, and its
// arguments.
func (o startOptions) source(args []string) (verb, program string, rest []string) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case slices.Contains(o.tells, word):
			return "", "", args
		case word == "-":
			if o.stream != "" && len(args) > 0 { // of a shell it ends the options
				return fileOrStream(args[0]), args[0], args[1:]
			}
			return fromStream, "", args
		case word == "--":
			if len(args) > 0 {
				return fileOrStream(args[0]), args[0], args[1:]
			}
			return fromStream, "", nil
		case strings.HasPrefix(word, "--"):
			option, _, given := strings.Cut(word, "=")
			if slices.Contains(o.program, option) {
				return fromInline, "", args
			}
			if !given && slices.Contains(o.long, option) && len(args) > 0 {
				args = args[1:]
			}
		case word[:min(1, len(word))] == "-" || o.stream != "" && strings.HasPrefix(word, "+"):
			found, name, skip := o.letters(word[1:], args)
			args = args[skip:]
			if found == fromStream && o.hasInline(args) {
				found = fromInline
			}
			if found != "" {
				return found, name, args
			}
		default:
			return fileOrStream(word), word, args
		}
	}
	return fromStream, "", nil
}

// letters reads a word of options of one letter, and returns how many of the
// words after it belong to it.
func (o startOptions) letters(word string, args []string) (found, name string, skip int) {
	for i := 0; i < len(word); i++ {
		letter, behind := word[i:i+1], word[i+1:]
		takes := func(set string) bool { return strings.Contains(set, letter) }
		switch {
		case takes(o.inline):
			return fromInline, "", skip
		case takes(o.module), takes(o.file):
			found = fromModule
			if takes(o.file) {
				found = fromFile
			}
			if behind == "" && skip < len(args) {
				behind, skip = args[skip], skip+1
			}
			return found, behind, skip
		case takes(o.stream):
			found = fromStream
		case takes(o.next):
			skip = min(skip+1, len(args))
		case takes(o.values):
			if behind == "" {
				skip = min(skip+1, len(args))
			}
			return found, "", skip
		case takes(o.joined):
			return found, "", skip
		}
	}
	return found, "", skip
}

// hasInline reports whether a shell with the option to read standard input is
// also given a program, which it prefers.
func (o startOptions) hasInline(args []string) bool {
	for _, word := range args {
		if len(word) < 2 || word[0] != '-' || word[1] == '-' {
			return false
		}
		if strings.Contains(word[1:], o.inline) {
			return true
		}
	}
	return false
}

// fileOrStream distinguishes a file from a name of a descriptor.
func fileOrStream(name string) string {
	switch name = path.Clean(name); {
	case name == "/dev/stdin", strings.HasPrefix(name, "/dev/fd/"):
		return fromStream
	case strings.HasPrefix(name, "/proc/") && strings.Contains(name, "/fd/"):
		return fromStream
	}
	return fromFile
}
