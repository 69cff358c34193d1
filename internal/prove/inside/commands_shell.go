//go:build linux

package inside

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// by is a trick that a program plays with one text as its last argument.
func by(name, text string, program ...string) Trick {
	return Trick{Name: name, Argv: append(program[:len(program):len(program)], text)}
}

func sh(name, script string) Trick   { return by(name, script, "sh", "-c") }
func bash(name, script string) Trick { return by(name, script, "bash", "-c") }
func zsh(name, script string) Trick  { return by(name, script, "zsh", "-fc") }

// fed is a shell that reads its script from standard input.
func fed(name, script string, program ...string) Trick {
	return Trick{Name: name, Argv: program, Stdin: script}
}

// onTTY has script(1) start a line on a terminal of its own, for programs that
// do nothing of interest without one.
func onTTY(name, line string) Trick {
	return Trick{Name: name, Argv: []string{"script", "-qec", line, "/dev/null"}, Env: []string{"TERM=xterm", "SHELL=/bin/sh"}}
}

// Tricks is the set of that name; nil for none.
func Tricks(set string) []Trick {
	for _, sets := range []map[string][]Trick{
		shellSets(), stateSets(), wordSets(), ruleSets(), startSets(), interpreterSets(), gitSets(), textSets(), archiveSets(), buildSets(), cloudSets(), readSets(), encodedSets(), dnsSets(),
	} {
		if t, ok := sets[set]; ok {
			return t
		}
	}
	return nil
}

// separators are what a line of the shell may be cut at.
var separators = map[string]string{
	"semicolon": ";", "and": "&&", "background": "&", "newline": "\n", "pipe": "|", "or": "; false ||", "semicolon-tight": " ;",
	"newlines": "\n\n\t\n", "comment-newline": "# it is only a remark\n", "and-newline": "&&\n", "pipe-newline": "|\n", "continued": "\\\n;",
	"brace": "; {", "subshell": "; (", "not": "; !", "if": "; if :; then", "while": "; while :; do", "for": "; for i in 1; do", "case": "; case a in a)",
	"until": "; until false; do", "time": "; command", "dollar": "; eval", "exec": "; exec", "env": "; env",
}

var closers = map[string]string{"brace": "; }", "subshell": ")", "if": "; fi", "while": "; break; done", "for": "; done", "case": ";; esac", "until": "; break; done"}

func separated() []Trick {
	var out []Trick
	for _, name := range slices.Sorted(maps.Keys(separators)) {
		out = append(out, sh(name, "echo a "+separators[name]+" touch {X}"+closers[name]))
	}
	return append(out,
		bash("carriage-return-newline", "echo a\r\ntouch {X}"),
		bash("pipe-both", "echo a |& touch {X}"),
		bash("arithmetic-for", "for ((i = 0; i < 1; i++)) { touch {X}; }"),
		bash("select", "select i in a; do touch {X}; break; done <<<1"),
		bash("coprocess", "coproc touch {X}; wait"),
		bash("test", "[[ a ]] && touch {X}"),
		bash("process-substitution", "echo a > >(touch {X}); wait; sleep 0.1"),
		bash("process-substitution-in", "echo a <(touch {X}) >/dev/null; sleep 0.1"))
}

func shellSets() map[string][]Trick {
	return map[string][]Trick{
		"separators":   separated(),
		"cd":           cdTricks(),
		"substitution": substitutionTricks(),
		"expansion":    expansionTricks(),
	}
}

func cdTricks() []Trick {
	return []Trick{
		sh("and", "cd {D} && touch {X}"),
		sh("semicolon", "cd {D}; touch {X}"),
		sh("newline", "cd {D}\ntouch {X}"),
		sh("into-outside", "cd {Y} && touch x-{N}"),
		sh("pushed", "cd {D} || cd /; cd {Y}; : >x-{N}"),
		sh("cdpath", "CDPATH={Y}/.. cd ./$(basename {Y}) 2>/dev/null || cd {Y}; : >x-{N}"),
		sh("back", "cd {Y}; cd /; cd - >/dev/null; : >x-{N}"),
		sh("up", "cd {D}; cd -P {Y}/.; cp /dev/null ./x-{N}"),
		bash("pushd", "pushd {Y} >/dev/null; : >x-{N}; popd"),
		bash("substituted", "cd $(touch {X}; echo .)"),
		bash("tilde", "OLDPWD={Y}; : >~-/x-{N}"),
		by("env", "x-{N}", "env", "-C", "{Y}", "touch"),
		by("git", "alias.t=!cd {Y} && touch x-{N}", "git", "-c").then("t"),
		by("tar", "{Y}", "sh", "-c", "cd $0 && tar -cf x-{N} -T /dev/null"),
		by("make", "{Y}", "make", "-s", "--eval", "all:;@touch x-{N}", "-C"),
	}
}

func substitutionTricks() []Trick {
	return []Trick{
		sh("dollar", "echo $(touch {X})"),
		sh("backticks", "echo `touch {X}`"),
		sh("quoted", `echo "$(touch {X})"`),
		sh("nested", "echo $(echo $(touch {X}))"),
		sh("backticks-nested", "echo `echo \\`touch {X}\\``"),
		sh("in-default", "echo ${nothing:-$(touch {X})}"),
		sh("in-assign", "a=$(touch {X})"),
		sh("in-prefix", "A=`touch {X}` :"),
		sh("in-arithmetic", "echo $((1 + $(touch {X}; echo 1)))"),
		sh("in-pattern", "b=ab; echo ${b#$(touch {X})}"),
		sh("in-heredoc", "cat <<E\n$(touch {X})\nE"),
		sh("in-redirection", "echo a >$(touch {X}; echo /dev/null)"),
		sh("in-case", "case $(touch {X}) in *) ;; esac"),
		sh("in-command", "$(echo touch) {X}"),
		bash("in-herestring", "cat <<<$(touch {X})"),
		bash("funsub-file", "echo $(<$(touch {X}; echo /dev/null))"),
		bash("in-array", "a=($(touch {X}))"),
		bash("in-index", `a[$(touch {X})0]=1`),
		bash("in-test", `[[ -n $(touch {X}) ]]`),
		bash("in-dollar-quote", `echo "${a:=$(touch {X})}"`),
		bash("in-let", `let "a=$(touch {X})1"`),
	}
}

func expansionTricks() []Trick {
	return []Trick{
		bash("prompt", `a='$(touch {X})'; echo ${a@P}`),
		bash("prompt-backticks", "a='`touch {X}`'; echo ${a@P}"),
		bash("prompt-escaped", `a='\u0024(touch {X})'; printf -v b %b "$a"; echo "${b@P}"`),
		sh("assign", "echo ${a:=touch {X}}; $a"),
		sh("assign-substitution", "echo ${a:=`touch {X}`}"),
		bash("indirect", `c='a[$(touch {X})]'; a=1; echo ${!c}`),
		bash("arithmetic-index", `a='b[$(touch {X})]'; echo $((a))`),
		bash("arithmetic-compare", `a='b[$(touch {X})]'; [[ $a -eq 1 ]]`),
		bash("substring", `a='b[$(touch {X})]'; c=abc; echo ${c:a}`),
		bash("reference", `declare -n r='a[$(touch {X})]'; echo $r`),
		bash("variable-set", `test -v 'a[$(touch {X})]'`),
		bash("unset", `a=(1); unset 'a[$(touch {X})0]'`),
		bash("printf", `printf -v 'a[$(touch {X})0]' x`),
		bash("read", `read 'a[$(touch {X})0]' <<<x`),
		bash("declare", `declare 'a[$(touch {X})0]=1'`),
		bash("mapfile", `mapfile -C 'touch {X} #' -c 1 a <<<x`),
		bash("quote", `a='touch {X}'; eval "${a@E}"`),
		bash("indirect-names", `touch_={X}; for v in ${!touch_*}; do : >"${!v}"; done`),
		bash("let", `a='b[$(touch {X})]'; let a`),
		bash("local", `f() { local -i x="b[$(touch {X})0]"; }; f`),
		bash("wait", `wait -p 'a[$(touch {X})0]' -n & wait; (:)& wait -p 'a[$(touch {X})0]' -n`),
		bash("prompt-trace", `PS4='$(touch {X})'; set -x; :`),
		sh("positional", "set -- touch {X}; \"$@\""),
		sh("split", "IFS=,; a=touch,{X}; $a"),
		zsh("zsh-e", `a='$(touch {X})'; echo ${(e)a}`),
		zsh("zsh-glob", `cd {D}; : >f; echo f(e:'touch {X}':)`),
		zsh("zsh-P", `setopt promptsubst; print -P '$(touch {X})'`),
	}
}

// then adds words to the end of a trick's command.
func (t Trick) then(words ...string) Trick {
	t.Argv = append(t.Argv, words...)
	return t
}

// with puts files into the directory of the trick.
func (t Trick) with(files map[string]string) Trick {
	t.Files = files
	return t
}

func (t Trick) env(e ...string) Trick {
	t.Env = append(t.Env, e...)
	return t
}

func (t Trick) before(script string) Trick {
	t.Before = script
	return t
}

func (t Trick) reading(text string) Trick {
	t.Stdin = text
	return t
}

func (t Trick) in() Trick {
	t.Repo = true
	return t
}

func (t Trick) to(e Effect) Trick {
	t.Effect = e
	return t
}

func (t Trick) making(target string) Trick {
	t.Target = target
	return t
}

// many repeats a command that does nothing, so that a list of them is long.
func many(n int, sep string) Trick {
	return sh(fmt.Sprintf("%d", n), strings.Repeat(": "+sep+" ", n)+"touch {X}")
}
