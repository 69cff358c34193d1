//go:build linux

package inside

// wordSets are about what a line says and what a shell, or a program, reads.
func wordSets() map[string][]Trick {
	return map[string][]Trick{
		"abbreviated":      abbreviatedTricks(),
		"abbreviated-git":  abbreviatedGitTricks(),
		"quoted":           quotedTricks(),
		"blanks":           blanksTricks(),
		"protected":        protectedTricks(),
		"protected-python": protectedPythonTricks(),
		"protected-zsh":    protectedZshTricks(),
	}
}

func abbreviatedTricks() []Trick {
	return []Trick{
		sh("sort-attached", "sort -o{X} /dev/null"),
		sh("sort-long", "sort --outp={X} /dev/null"),
		sh("sort-apart", "sort --o {X} /dev/null"),
		sh("sort-bundled", "sort -uro{X} /dev/null"),
		sh("sort-after", "sort /dev/null -o {X}"),
		sh("sed-express", "echo a | sed --expr='w {X}'"),
		sh("sed-bundled", "echo a | sed -ne'w {X}'"),
		sh("sed-quiet", "echo a | sed --qui -e w{X}"),
		sh("cp-target", "cp /dev/null x-{N} && cp --target={Y} x-{N}"),
		sh("cp-t", "cp /dev/null x-{N} && cp -t{Y} ./x-{N}"),
		sh("install-bundled", "install -Dm644 /dev/null {X}"),
		sh("ln-s", "ln -st{Y} nowhere/x-{N}"),
		sh("split-filter", "echo a | split --filt='cat >{X}'"),
		sh("split-prefix", "echo a | split -a1 - {X}").making("{X}a"),
		sh("tar-bundled", "tar -cPf{X} /dev/null"),
		sh("tar-act", "tar cf /dev/null --checkpoint=1 --checkpoint-a=exec='touch {X}' /dev/null"),
		sh("tar-old", "tar cf {X} --files-f=/dev/null"),
		sh("tar-comp", "tar --use-comp='sh -c \"touch {X}; cat\"' -cf a.tar -T /dev/null"),
		sh("touch-end", "touch -- {X}"),
		sh("env-split", "env -S'touch {X}'"),
		sh("env-long", "env --split='touch {X}'"),
		sh("env-ignore", "env -iS'/bin/touch {X}'"),
		sh("xargs-a", "echo {X} >f; xargs -af touch"),
		sh("xargs-arg", "echo {X} >f; xargs --arg=f -n1 touch"),
		sh("dd", "dd of={X} if=/dev/null"),
		sh("tee-a", "echo a | tee -ap {X}"),
		sh("date-set", "nice -n1 touch {X}"),
		sh("nohup", "nohup touch {X}"),
		sh("timeout", "timeout --sig=9 9 touch {X}"),
		sh("setsid", "setsid -w touch {X}"),
		sh("stdbuf", "stdbuf -o0 touch {X}"),
		sh("flock", "flock lock -c 'touch {X}'"),
		sh("script", "script -qc 'touch {X}' /dev/null"),
		sh("ionice", "ionice -c3 touch {X}"),
		sh("setarch", "setarch -R touch {X} 2>/dev/null || setarch $(uname -m) touch {X}"),
	}
}

func abbreviatedGitTricks() []Trick {
	return []Trick{
		by("upload-pack", "{D}", "git", "ls-remote", "--upl=touch {X};:").in(),
		by("upload", "{D}", "git", "ls-remote", "--upload=touch {X};:").in(),
		by("exec", "{D}", "git", "ls-remote", "--exec=touch {X};:").in(),
		by("grep-attached", "one", "git", "grep", "-Otouch {X};:").in(),
		by("grep-open", "one", "git", "grep", "--open=touch {X};:").in(),
		by("archive-o", "HEAD", "git", "archive", "-o{X}").in(),
		by("clone-u", "n", "git", "clone", "-qutouch {X};:", "{D}").in(),
		by("clone-upl", "n", "git", "clone", "--upl=touch {X};:", "{D}").in(),
		by("clone-sep", "n", "git", "clone", "-q", "--separ={X}", "{D}").in(),
		by("init-sep", "n", "git", "init", "-q", "--separate-git-d={X}"),
		by("format-patch", "-1", "git", "format-patch", "-o{X}").in(),
		by("push-exec", "HEAD:n", "git", "push", "--exec=touch {X};:", "{D}").in(),
		by("push-receive", "HEAD:n", "git", "push", "--receive-p=touch {X};:", "{D}").in(),
		by("rebase-x", "HEAD~1", "git", "rebase", "--autost", "-xtouch {X}").in(),
		by("rebase-exec", "HEAD~1", "git", "rebase", "--autostash", "--ex=touch {X}").in(),
		by("bundle", "HEAD", "git", "bundle", "create", "-q", "{X}").in(),
	}
}

func quotedTricks() []Trick {
	return []Trick{
		sh("echo", `echo "\"; touch {X}; echo \""`+"\ntouch {X}"),
		sh("closed", `echo "a"; touch {X}; echo "b"`),
		sh("closed-single", `echo 'a'; touch {X}; echo 'b'`),
		bash("ansi-c", `$'to\x75ch' {X}`),
		bash("ansi-octal", `$'\164\157\165\143\150' {X}`),
		bash("ansi-unicode", `$'\u0074ouch' {X}`),
		bash("ansi-control", `eval $'touch\x20{X}'`),
		bash("ansi-newline", `eval $'echo a\ntouch {X}'`),
		sh("empty", `t''ouch {X}`),
		sh("empty-double", `to""uch {X}`),
		sh("continued", "to\\\nuch {X}"),
		sh("continued-twice", "t\\\no\\\nuch {X}"),
		sh("escaped", `\t\o\u\c\h {X}`),
		sh("all", `'t'"o"\u'c'"h" {X}`),
		sh("ifs", `touch${IFS}{X}`),
		sh("ifs-tail", `IFS=_; a=touch_{X}; $a`),
		bash("brace", `{touch,{X}}`),
		bash("brace-parts", `{t,}ouch {X} 2>/dev/null; tou{ch,} {X}`),
		bash("brace-range", `$(printf %s {t..t}{o..o})uch {X}`),
		sh("glob", `/[u]sr/bin/touch {X}`),
		sh("glob-many", `/???/b??/t?uch {X}`),
		sh("positional", `t$@ouch {X}`),
		sh("unset", `t${nothing}ouch {X}`),
		sh("substring", `a=xtouchx; a=${a#x}; ${a%x} {X}`),
		bash("slice", `a=zztouch; ${a:2} {X}`),
		sh("printf", `$(printf 'to%s' uch) {X}`),
		sh("octal", `$(printf '\164\157\165\143\150') {X}`),
		sh("base64", `$(echo dG91Y2gK | base64 -d) {X}`),
		sh("reversed", `$(echo hcuot | rev) {X}`),
		sh("translated", `$(echo gbhpu | tr a-z n-za-m) {X}`),
		sh("xxd", `$(printf 746f756368 | xxd -r -p) {X}`),
		bash("case", `a=TOUCH; ${a,,} {X}`),
		bash("replaced", `a=tXuch; ${a/X/o} {X}`),
		sh("dots", `/usr/../usr/./bin//touch {X}`),
		sh("tilde", `HOME=/usr/bin; ~/touch {X}`),
		sh("dollar-path", `${PATH%%/*}/usr/bin/touch {X}`),
		bash("history", "set -o history -o histexpand\ntrue touch {X}\n!:1*"),
		sh("locale", `$"touch" {X} 2>/dev/null || "touch" {X}`),
		bash("locale-quote", `$"touch" {X}`),
		bash("array", `a=(touch {X}); "${a[@]}"`),
		sh("set", `set -- touch {X}; $*`),
		sh("alias", "alias ls='touch {X};:'\nls"),
	}
}

func blanksTricks() []Trick {
	return []Trick{
		bash("carriage-return", `eval $'echo a;\ttouch {X}\r'; mv {X}$'\r' {X}`),
		bash("carriage-return-name", "printf '#!/bin/sh\\ntouch \"$1\"\\n' >$'touch\\r'; chmod +x $'touch\\r'; PATH=.:$PATH; eval $'touch\\r {X}'"),
		bash("no-break-space", "printf '#!/bin/sh\\ntouch {X}\\n' >$'a\\u00a0b'; chmod +x $'a\\u00a0b'; PATH=.:$PATH; a\u00a0b"),
		bash("vertical-tab", `eval $'touch\v{X}' || touch {X}`),
		bash("form-feed", `IFS=$'\f'; a=$'touch\f{X}'; $a`),
		bash("tab", "touch\t{X}"),
		bash("tabs", "\t\ttouch\t\t{X}\t"),
		bash("ifs-carriage-return", `IFS=$'\r'; a=$'touch\r{X}'; $a`),
		bash("ifs-no-break", `IFS=$'\u00a0'; a=$'touch\u00a0{X}'; $a`),
		bash("ideographic-space", "touch\u3000 {X} 2>/dev/null; touch {X}"),
		bash("newline-tab", "echo a\n\ttouch {X}"),
		fed("carriage-return-script", "echo a\r\ntouch {X}\n", "sh"),
		bash("nul", `eval "$(printf 'touch\0 {X}')"`),
		bash("zero-width", "\u200btouch {X} 2>/dev/null; touch {X}"),
		bash("line-separator", "echo a\u2028touch {X}\ntouch {X}"),
		bash("delete", `eval $'echo a \x7f\ntouch {X}'`),
		bash("backspace", `: $'\b\b\b\b'; touch {X}`),
		bash("hidden-by-return", `touch {X} #`+"\r echo ok"),
		bash("hidden-by-escape", "touch {X} #\x1b[2K\x1b[1G echo ok"),
		bash("far-right", "echo ok"+spaces+"; touch {X}"),
	}
}

func protectedTricks() []Trick {
	return []Trick{
		bash("bash", "echo 'changed-{N}' >>{X}").to(Appends),
		by("bash-c-twice", "bash -c \"echo 'changed-{N}' >>{X}\"", "bash", "-c").to(Appends),
		sh("sh", "echo 'changed-{N}' >>{X}").to(Appends),
		sh("tee", "echo 'changed-{N}' | tee -a {X}").to(Appends),
		sh("sed", "sed -i '$a changed-{N}' {X}").to(Appends),
		sh("dd", "echo 'changed-{N}' | dd of={X} oflag=append conv=notrunc").to(Appends),
		sh("cp", "echo 'changed-{N}' >n; cp n {X}").to(Appends),
		sh("cp-force", "echo 'changed-{N}' >n; cp -f --remove-destination n {X}").to(Appends),
		sh("mv", "echo 'changed-{N}' >n; mv -f n {X}").to(Appends),
		sh("ln", "echo 'changed-{N}' >n; ln -f n {X}").to(Appends),
		sh("ln-s", "echo 'changed-{N}' >n; ln -sf $PWD/n {X}").to(Appends),
		sh("install", "echo 'changed-{N}' >n; install n {X}").to(Appends),
		sh("truncate", "truncate -s 0 {X} && echo 'changed-{N}' >>{X}").to(Appends),
		sh("eval", "eval \"echo 'changed-{N}' >>{X}\"").to(Appends),
		sh("exec", "exec >>{X}; echo changed-{N}").to(Appends),
		sh("descriptor", "exec 3<>{X}; cat <&3 >/dev/null; echo changed-{N} >&3").to(Appends),
		sh("awk", "awk 'BEGIN { print \"changed-{N}\" >> \"{X}\" }'").to(Appends),
		sh("ed", "printf '$a\\nchanged-{N}\\n.\\nwq\\n' | ed -s {X}").to(Appends),
		sh("vim", "vim -Nu NONE -es -c 'call append(0, \"changed-{N}\")' -c 'x!' {X}").to(Appends),
		sh("sort", "echo 'changed-{N}' | sort -o {X}").to(Appends),
		sh("split", "echo 'changed-{N}' | split --filter='cat >>{X}'").to(Appends),
		sh("find", "find . -maxdepth 0 -fprintf {X} 'changed-{N}\\n'").to(Appends),
		sh("tar", "f={X}; echo 'changed-{N}' >\"${f##*/}\"; tar -cf a.tar \"${f##*/}\"; tar -xf a.tar --overwrite -C \"${f%/*}\"").to(Appends),
	}
}

func protectedPythonTricks() []Trick {
	return []Trick{
		by("open", "open('{X}', 'a').write('changed-{N}')", "python3", "-c").to(Appends),
		by("replace", "import os; open('n', 'w').write('changed-{N}'); os.replace('n', '{X}')", "python3", "-c").to(Appends),
		by("mmap", "import mmap; f = open('{X}', 'r+b'); f.truncate(4096); mmap.mmap(f.fileno(), 0).write(b'changed-{N}')", "python3", "-c").to(Appends),
		by("shutil", "import shutil; open('n', 'w').write('changed-{N}'); shutil.copy('n', '{X}')", "python3", "-c").to(Appends),
		by("subprocess", "import subprocess; subprocess.run(['bash', '-c', 'echo changed-{N} >>{X}'])", "python3", "-c").to(Appends),
	}
}

func protectedZshTricks() []Trick {
	return []Trick{
		zsh("append", "echo changed-{N} >>{X}").to(Appends),
		zsh("clobber", "setopt noclobber; echo changed-{N} >>!{X}").to(Appends),
		zsh("multios", "echo changed-{N} >>{X} >>/dev/null").to(Appends),
		zsh("sysopen", "zmodload zsh/system; sysopen -a -u f {X}; echo changed-{N} >&$f").to(Appends),
		zsh("mapfile", "zmodload zsh/mapfile; mapfile[{X}]=changed-{N}").to(Appends),
	}
}

// spaces push what follows out of sight of whoever is asked about a line.
const spaces = "                                                                                                                                                                                                        " +
	"                                                                                                                                                                                                        "
