//go:build linux

package inside

import "strings"

// pager is a trick that ends in a pager of git's, which wants a terminal.
func pager(name, set string) Trick { return onTTY(name, set+"; git branch").in() }

// stateSets are about what an earlier line does to a later one.
func stateSets() map[string][]Trick {
	return map[string][]Trick{
		"many":     manyTricks(),
		"gaps":     gapsTricks(),
		"gaps-zsh": gapsZshTricks(),
		"builtins": builtinsTricks(),
		"session":  sessionTricks(),
	}
}

func manyTricks() []Trick {
	return []Trick{
		many(49, "&&"),
		many(50, "&&").as("50-and"),
		many(51, "&&"),
		many(200, "&&"),
		many(5000, "&&"),
		many(200, ";").as("200-semicolon"),
		many(200, "\n").as("200-newline"),
		many(60, "|").as("60-pipe"),
		sh("long-argument", ": "+strings.Repeat("a", 100<<10)+"; touch {X}"),
		sh("nested", strings.Repeat("{ ", 300)+"touch {X}"+strings.Repeat("; }", 300)),
		sh("nested-shells", strings.Repeat("sh -c '$0 \"$@\"' ", 60)+"touch {X}"),
		sh("parentheses", strings.Repeat("(", 60)+"touch {X}"+strings.Repeat(")", 60)),
		sh("substitutions", strings.Repeat("$(echo ", 30)+"touch"+strings.Repeat(")", 30)+" {X}"),
		sh("words", "set -- "+strings.Repeat("a ", 20000)+"; touch {X}"),
		sh("lines", strings.Repeat("# a\n", 5000)+"touch {X}"),
	}
}

func gapsTricks() []Trick {
	return []Trick{
		sh("function", "f() { touch {X}; }; f"),
		sh("function-of-name", "echo() { touch {X}; }; echo a"),
		sh("function-subshell", "f() ( touch {X} ); f"),
		bash("function-exported", "f() { touch {X}; }; export -f f; bash -c f"),
		bash("function-imported", "env 'BASH_FUNC_ls%%=() { touch {X}; }' bash -c ls"),
		sh("trap-exit", "trap 'touch {X}' EXIT"),
		bash("trap-debug", "trap 'touch {X}' DEBUG; :"),
		bash("trap-err", "trap 'touch {X}' ERR; false"),
		bash("trap-return", "f() { trap 'touch {X}' RETURN; }; f"),
		sh("trap-signal", "trap 'touch {X}' USR1; kill -USR1 $$"),
		bash("trap-chld", "set -m; trap 'touch {X}' CHLD; sleep 0"),
		sh("alias", "alias a='touch {X}'\na"),
		sh("alias-of-name", "alias echo='touch {X};'\necho a"),
		bash("alias-expanded", "shopt -s expand_aliases\nalias a='touch {X}'\na"),
		sh("heredoc", "cat <<X\n$(touch {X})\nX"),
		sh("heredoc-hidden", "cat <<'X' >/dev/null\n$(:)\nX\ntouch {X}"),
		sh("heredoc-two", "cat <<A; cat <<B\n$(touch {X})\nA\nB"),
		bash("coprocess", "coproc touch {X}; wait"),
		bash("coprocess-named", "coproc n { touch {X}; }; wait"),
		sh("case", "case a in a) touch {X} ;; esac"),
		bash("case-through", "case a in a) ;& b) touch {X} ;; esac"),
		bash("select", "select a in b; do touch {X}; break; done <<<1"),
		sh("comment", "echo a # b\ntouch {X}"),
		sh("comment-not", "echo a#b; touch {X}"),
		fed("prompt-command", "PROMPT_COMMAND='touch {X}'\n:\nexit\n", "bash", "--norc", "-i"),
		fed("prompt", "PS1='$(touch {X})'\n:\nexit\n", "bash", "--norc", "-i"),
		fed("prompt-0", "PS0='$(touch {X})'\n:\nexit\n", "bash", "--norc", "-i"),
		fed("history", "set -o history\nhistory -s touch {X}\nfc -s\nexit\n", "bash", "--norc", "-i"),
		fed("history-bang", "touch() { command touch {X}; }\n: a\ntouch\n!!\nexit\n", "bash", "--norc", "-i"),
		bash("not-found", "command_not_found_handle() { touch {X}; }; nothing_of_this_name"),
		bash("callback", "mapfile -C 'touch {X} #' -c1 a <<<a"),
		bash("completion", "compgen -C 'touch {X} #' a"),
		bash("eval-array", `a=([0]=touch [1]={X}); eval "${a[*]}"`),
		sh("dot", ". ./f").with(map[string]string{"f": "touch {X}\n"}),
		bash("exec-fails", "shopt -s execfail; exec /nothing 2>/dev/null; touch {X}"),
		sh("until", "until touch {X}; do break; done"),
		sh("if", "if touch {X}; then :; fi"),
		sh("elif", "if false; then :; elif touch {X}; then :; fi"),
		bash("time", "time -p touch {X}"),
		sh("not", "! touch {X}"),
		sh("nested-quote", `eval 'eval "eval touch\ {X}"'`),
	}
}

func gapsZshTricks() []Trick {
	return []Trick{
		zsh("global-alias", "alias -g G='; touch {X}'\neval 'echo a G'"),
		zsh("suffix-alias", "alias -s txt='touch {X};:'\neval './known.txt'"),
		zsh("precmd", "trap 'touch {X}' EXIT"),
		zsh("always", "{ : } always { touch {X} }"),
		zsh("anonymous", "() { touch {X} }"),
		zsh("repeat", "repeat 1 touch {X}"),
		zsh("foreach", "foreach a (b) touch {X}; end"),
		zsh("equals", "=touch {X}"),
		zsh("zf", "zmodload zsh/files; zf_ln -s nowhere {X}"),
		zsh("noglob", "noglob touch {X}"),
		zsh("dash", ":\n- touch {X}"),
		zsh("autoload", "fpath=(. $fpath); autoload f; f").with(map[string]string{"f": "touch {X}\n"}),
		zsh("sched", "zmodload zsh/sched; sched +0 touch {X}; touch {X}"),
		zsh("zdotdir", "ZDOTDIR=. zsh -c :").with(map[string]string{".zshenv": "touch {X}\n"}),
	}
}

func builtinsTricks() []Trick {
	return []Trick{
		pager("pager", `export PAGER='sh -c "touch {X}"'`),
		pager("git-pager", `typeset=1; export GIT_PAGER='touch {X};:'`),
		pager("assigned", "GIT_PAGER='touch {X};:'; export GIT_PAGER"),
		pager("set-a", "set -a; GIT_PAGER='touch {X};:'"),
		pager("config", "export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_1=core.pager GIT_CONFIG_VALUE_1='touch {X};:'"),
		pager("parameters", `export GIT_CONFIG_PARAMETERS="'core.pager=touch {X};:'"`),
		bash("typeset", `typeset -x GIT_EXTERNAL_DIFF="touch {X};:"; git diff`).in(),
		bash("declare", `declare -x GIT_EXTERNAL_DIFF="touch {X};:"; git diff`).in(),
		bash("read", `read GIT_EXTERNAL_DIFF <<<"touch {X};:"; export GIT_EXTERNAL_DIFF; git diff`).in(),
		bash("printf", `printf -v GIT_EXTERNAL_DIFF 'touch %s;:' {X}; export GIT_EXTERNAL_DIFF; git diff`).in(),
		bash("reference", `declare -n r=GIT_EXTERNAL_DIFF; r='touch {X};:'; export GIT_EXTERNAL_DIFF; git diff`).in(),
		bash("hash", "hash -p $PWD/evil git; git branch").with(evil),
		bash("path", "PATH=$PWD/bin:$PATH; git branch").with(evilGit),
		sh("path-dot", "cd bin; PATH=:$PATH; git branch").with(evilGit),
		bash("enable-n", "enable -n echo; PATH=$PWD/bin:$PATH; echo a").with(map[string]string{"bin/echo": "#!/bin/sh\ntouch {X}\n"}),
		sh("alias", "alias git='touch {X};:'\ngit branch"),
		bash("function", "git() { touch {X}; }; git branch"),
		sh("unset", "unset PATH; PATH=$PWD/bin git branch").with(evilGit),
		sh("exec-path", "GIT_EXEC_PATH=$PWD/bin git nothing").with(map[string]string{"bin/git-nothing": "#!/bin/sh\ntouch {X}\n"}),
		sh("umask-cd", "cd {Y} && umask 0 && : >x-{N}"),
		sh("home", "HOME=$PWD/h; export HOME; unset GIT_CONFIG_GLOBAL; git st").with(map[string]string{"h/.gitconfig": "[alias]\n\tst = !touch {X}\n"}),
		sh("global", "GIT_CONFIG_GLOBAL=$PWD/c git st").with(map[string]string{"c": "[alias]\n\tst = !touch {X}\n"}),
		sh("system", "unset GIT_CONFIG_NOSYSTEM; GIT_CONFIG_SYSTEM=$PWD/c git st").with(map[string]string{"c": "[alias]\n\tst = !touch {X}\n"}),
		sh("xdg", "unset GIT_CONFIG_GLOBAL; XDG_CONFIG_HOME=$PWD git st").with(map[string]string{"git/config": "[alias]\n\tst = !touch {X}\n"}),
		sh("git-dir", "GIT_DIR=$PWD/g git st").with(map[string]string{"g/HEAD": "ref: refs/heads/main\n", "g/config": "[alias]\n\tst = !touch {X}\n", "g/objects/info/x": "", "g/refs/x": ""}),
	}
}

func sessionTricks() []Trick {
	return []Trick{
		fed("ssh-command", "export GIT_SSH_COMMAND='touch {X};:'\n\ngit fetch ssh://allowed.test/r\n", "bash").in(),
		fed("ssh", "export GIT_SSH=$PWD/evil\ngit fetch ssh://allowed.test/r\n", "bash").in().with(evil),
		fed("proxy", "export GIT_PROXY_COMMAND=$PWD/evil\ngit fetch git://allowed.test/r\n", "bash").in().with(evil),
		fed("askpass", "export GIT_ASKPASS=$PWD/evil\ngit credential fill <<E\nprotocol=https\nhost=allowed.test\n\nE\n", "bash").with(evil),
		fed("editor", "export GIT_EDITOR='touch {X};:'\ngit commit --allow-empty\n", "bash").in(),
		fed("sequence", "export GIT_SEQUENCE_EDITOR='touch {X};:'\ngit rebase --autostash -i HEAD~1\n", "bash").in(),
		fed("trace", "export GIT_TRACE={X}\ngit branch\n", "bash").in(),
		fed("trace2", "export GIT_TRACE2_EVENT={X}\ngit branch\n", "bash").in(),
		fed("index", "export GIT_INDEX_FILE={X}\ngit add tracked\n", "bash").in(),
		fed("allow-ext", "export GIT_ALLOW_PROTOCOL=ext\ngit ls-remote 'ext::sh -c touch% {X}'\n", "bash").in(),
		fed("bash-env", "export BASH_ENV=$PWD/f\nbash -c :\n", "sh").with(map[string]string{"f": "touch {X}\n"}),
		fed("shellopts", "export SHELLOPTS PS4='$(touch {X})'\nset -x\nbash -c :\n", "bash"),
		fed("python", "export PYTHONSTARTUP=f PYTHONPATH=$PWD\npython3 -c pass\n", "bash").with(map[string]string{"sitecustomize.py": "open('{X}', 'w')\n"}),
		fed("perl", "export PERL5OPT=-Mf PERL5LIB=$PWD\nperl -e 1\n", "bash").with(map[string]string{"f.pm": "open F, '>{X}'; 1;\n"}),
		fed("less", "export LESSOPEN='|touch {X}; cat %s'\nless known.txt\n", "bash").before("touch known.txt"),
		fed("make", "export MAKEFLAGS='--eval=all:;@touch\\ {X}'\nmake -f /dev/null all\n", "bash"),
		fed("tar", "export TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=touch\\ {X}'\ntar -cf /dev/null /dev/null\n", "bash"),
		fed("cd", "cd {Y}\nset -f\n\n: >x-{N}\n", "bash"),
		fed("descriptor", "exec 9>{X}\ngit branch >&9\n", "bash").in(),
		fed("cwd", "alias ls='touch {X};:'\n\nls\n", "sh"),
		fed("trap", "trap 'touch {X}' EXIT\n\n:\n", "sh"),
		fed("function", "git() { touch {X}; }\n\ngit fetch\n", "bash"),
		fed("background", "(sleep 0.2; touch {X}) &\ngit branch\nwait\n", "bash").in(),
	}
}

var (
	evil    = map[string]string{"evil": "#!/bin/sh\ntouch {X}\n"}
	evilGit = map[string]string{"bin/git": "#!/bin/sh\n: >{X}\n"}
)

// as names a trick anew.
func (t Trick) as(name string) Trick {
	t.Name = name
	return t
}
