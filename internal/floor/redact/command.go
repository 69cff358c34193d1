package redact

import (
	"slices"
	"strings"
)

// wrappers are programs that start the program that their arguments name.
var wrappers = []string{"sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "time", "setsid", "stdbuf", "xargs", "strace", "busybox", "watch"}

// shells are programs that take a command as a text behind -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su", "runuser"}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// wrapped is where in argv the program begins whose flags are those to look at: 0,
// or behind a wrapper.
func wrapped(argv []string) int {
	if !slices.Contains(wrappers, baseName(argv[0])) {
		return 0
	}
	return max(0, slices.IndexFunc(argv, func(a string) bool { return passwordFlags(baseName(a)) != nil }))
}

// isCommand reports whether argument i is a command for a shell.
func isCommand(argv []string, i int) bool {
	flag := argv[i-1]
	return strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "c") && slices.Contains(shells, baseName(argv[0]))
}

// command masks the passwords in a text for a shell that follow the flags of
// programs. What else is secret in it is found in any text.
func (r *Redactor) command(text string) string {
	var before []string // the words from the last program with such flags on
	var hits []hit
	for _, word := range shellWords(text) {
		at := unquoted(text, word)
		arg := text[at.from:at.to]
		switch {
		case isSeparator(text[word.from]):
			before = before[:0]
			continue
		case passwordFlags(baseName(arg)) != nil:
			before = append(before[:0], arg)
			continue
		case len(before) == 0:
			continue
		}
		if h, ok := r.commandHit(text, before, arg, at.from); ok {
			hits = append(hits, h)
		}
		before = append(before, arg)
	}
	return replace(text, hits)
}

// commandHit is the secret in arg, which is in text, behind a program and the
// words after it.
func (r *Redactor) commandHit(text string, before []string, arg string, at int) (hit, bool) {
	v, c := secretArgument(baseName(before[0]), before[1:], arg)
	if c == ordinary {
		return hit{}, false
	}
	v = unquoted(text, span{from: v.from + at, to: v.to + at})
	if strings.HasPrefix(text[v.from:v.to], "$") || strings.Contains(arg, markBegin) {
		return hit{}, false // the shell puts something there; or it is masked already
	}
	h, ok := r.value(text, v, c)
	return h, ok && h.mark != ""
}

func isSeparator(c byte) bool { return strings.IndexByte(";&|()\n`", c) >= 0 }

// shellWords splits a text for a shell, as far as it takes to find the flags of a
// program: words with their quotes, and each separator of commands alone.
func shellWords(text string) []span {
	var words []span
	begin, quote := -1, byte(0)
	end := func(at int) {
		if begin >= 0 {
			words = append(words, span{from: begin, to: at})
		}
		begin = -1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case isSeparator(c):
			end(i)
			words = append(words, span{from: i, to: i + 1})
		case c == ' ' || c == '\t':
			end(i)
		default:
			if begin < 0 {
				begin = i
			}
			if c == '\'' || c == '"' {
				quote = c
			}
			if c == '\\' {
				i++
			}
		}
	}
	end(len(text))
	return words
}

// unquoted is v without the quotes around it.
func unquoted(text string, v span) span {
	if v.to-v.from >= 2 && (text[v.from] == '\'' || text[v.from] == '"') && text[v.to-1] == text[v.from] {
		v.from, v.to = v.from+1, v.to-1
	}
	return v
}
