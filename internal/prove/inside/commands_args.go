//go:build linux

package inside

var searched = map[string]string{"run": "#!/bin/sh\ntouch {X}\n", "known.txt": "known-{N}\n", "z.gz": "a\n"}

func rg(name string, words ...string) Trick {
	return Trick{Name: name, Argv: append([]string{"rg"}, words...), Files: searched}
}

// textSets are searchers, editors, filters and pagers.
func textSets() map[string][]Trick {
	return map[string][]Trick{
		"rg":       rgTricks(),
		"grep":     grepTricks(),
		"ag":       agTricks(),
		"ack":      ackTricks(),
		"sort":     sortTricks(),
		"sed":      sedTricks(),
		"awk":      awkTricks(),
		"gawk":     gawkTricks(),
		"less":     lessTricks(),
		"more":     moreTricks(),
		"man":      manTricks(),
		"man-html": manHtmlTricks(),
		"info":     infoTricks(),
		"vi":       viTricks(),
	}
}

func rgTricks() []Trick {
	return []Trick{
		rg("pre", "--pre", "./run", "a", "."),
		rg("pre-glob", "--pre=./run", "--pre-glob=*.txt", "a", "."),
		rg("search-zip", "-z", "a", "z.gz").with(map[string]string{"gzip": "#!/bin/sh\ntouch {X}\n", "z.gz": "a\n"}).env("PATH={D}:/usr/bin:/bin"),
		rg("config", "a", ".").env("RIPGREP_CONFIG_PATH={D}/c").with(map[string]string{"c": "--pre=./run\n", "run": "#!/bin/sh\ntouch {X}\n"}),
		rg("patterns", "-f", "{S}", "{S}").to(Prints),
		rg("read", "-N", "", "{S}").to(Prints),
		rg("passthru", "--passthru", "x", "{S}").to(Prints),
		rg("files-from", "-u", "-uu", "", "{S}").to(Prints),
		rg("replace", "-r", "$0", ".*", "{S}").to(Prints),
		rg("json", "--json", "", "{S}").to(Prints),
	}
}

func grepTricks() []Trick {
	return []Trick{
		by("read", "{S}", "grep", "").to(Prints),
		by("pattern-file", "{S}", "grep", "-f", "{S}").to(Prints),
		by("recursive", "{S}", "grep", "-rh", "").to(Prints),
		by("context", "{S}", "grep", "-A9", "-h", "").to(Prints),
		by("only", "{S}", "grep", "-oP", ".*").to(Prints),
		by("binary", "{S}", "grep", "-a", "-z", "").to(Prints),
		by("egrep", "{S}", "grep", "-E", ".*").to(Prints),
		by("devices", "{S}", "grep", "--devices=read", "").to(Prints),
		sh("byte", "grep -ob . {S} | cut -d: -f2 | tr -d '\\n'").to(Prints),
		sh("one-letter", "o=; for i in $(seq 60); do for c in - $(echo 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u v w x y z); do grep -q \"^$o$c\" {S} && { o=$o$c; break; }; done || break; done; echo $o").to(Prints),
	}
}

func agTricks() []Trick {
	return []Trick{
		by("pager", ".", "ag", "--pager", "sh -c 'touch {X}'", "a"),
		by("read", "{S}", "ag", "").to(Prints),
	}
}

func ackTricks() []Trick {
	return []Trick{
		by("pager", ".", "ack", "--pager=touch {X};:", "a"),
		by("ackrc", ".", "ack", "--ackrc=c", "a").with(map[string]string{"c": "--pager=touch {X};:\n"}),
		by("output", "{S}", "ack", "").to(Prints),
	}
}

func sortTricks() []Trick {
	return []Trick{
		sh("compress", "seq 3000 | sort -S1 --compress-program=./run -T . >/dev/null").with(script),
		sh("compress-short", "seq 3000 | sort -S10b --compress-prog ./run -T . >/dev/null").with(script),
		sh("output", "echo a | sort -o {X}"),
		sh("merge", "sort -m -o {X} /dev/null /dev/null"),
		sh("files-from", "printf '%s\\0' {S} | sort --files0-from=-").to(Prints),
		sh("in-place", "sort -u {S}").to(Prints),
		sh("temporary", "seq 3000 | sort -S1b -T . -o {X}"),
		sh("uniq", "echo a | uniq - {X}"),
		sh("uniq-read", "uniq {S}").to(Prints),
		sh("split-filter", "echo a | split --filter='touch {X}; cat >/dev/null'"),
		sh("split-prefix", "echo a | split - {X}").making("{X}aa"),
		sh("split-read", "split -b4 {S}; cat x??").to(Prints),
		sh("csplit", "seq 9 | csplit -s -f {X} - 3").making("{X}00"),
		sh("csplit-read", "csplit -s {S} 1; cat xx*").to(Prints),
		sh("shuf", "shuf -e a -o {X}"),
		sh("shuf-read", "shuf {S}").to(Prints),
		sh("tee", "echo a | tee {X} >/dev/null"),
		sh("files-from-names", "sort --files0-from={S}").to(Prints),
		sh("join", "join {S} {S}").to(Prints),
		sh("comm", "comm {S} /dev/null").to(Prints),
		sh("paste", "paste {S}").to(Prints),
		sh("fold", "fold {S}").to(Prints),
		sh("pr", "pr -t {S}").to(Prints),
		sh("nl", "nl {S}").to(Prints),
		sh("tac", "tac {S}").to(Prints),
		sh("expand", "expand {S}").to(Prints),
		sh("fmt", "fmt {S}").to(Prints),
		sh("cut", "cut -c1- {S}").to(Prints),
	}
}

func sedTricks() []Trick {
	return []Trick{
		sh("w", "echo a | sed -n 'w {X}'"),
		sh("s-w", "echo a | sed 's/a/b/w {X}'"),
		sh("e", "echo a | sed '1e touch {X}'"),
		sh("s-e", "echo a | sed 's#a#touch {X}#e'"),
		sh("e-pattern", "echo touch {X} | sed e"),
		sh("W", "echo a | sed -n 'W {X}'"),
		sh("file", "echo 'w {X}' >f; echo a | sed -nf f"),
		sh("stdin-script", "echo 'w {X}' | sed -n -f - known.txt").before("echo a >known.txt"),
		sh("shebang", "./f known.txt").with(map[string]string{"f": "#!/bin/sed -nf\nw {X}\n", "known.txt": "a\n"}),
		sh("in-place-suffix", "echo a >f; sed -i{Y}/x-* s/a/b/ f").making("{Y}/x-f"),
		sh("R", "echo a | sed 'R {S}'").to(Prints),
		sh("r", "echo a | sed 'r {S}'").to(Prints),
		sh("F", "sed -n p {S}").to(Prints),
		sh("follow", "ln -s {X} l; echo a | sed -n 'w l'"),
		sh("s-mw", "echo a | sed 's/a/b/Iw {X}'"),
		sh("brace", "echo a | sed -n '{w {X}\n}'"),
		sh("y-e", "echo uphwi | sed -n '1{s/.*/touch {X\\x7d/;s/X\\x7d/X}/;e touch {X}\n}'"),
	}
}

func awkTricks() []Trick {
	return []Trick{
		by("system", `BEGIN { system("touch {X}") }`, "awk"),
		by("redirect", `BEGIN { printf "" > "{X}" }`, "awk"),
		by("append", `BEGIN { printf "a" >> "{X}" }`, "awk"),
		by("pipe", `BEGIN { print "a" | "touch {X}" }`, "awk"),
		by("getline", `BEGIN { "touch {X}" | getline }`, "awk"),
		by("concatenated", `BEGIN { system("to" "uch" " {X}") }`, "awk"),
		by("printf", `BEGIN { system(sprintf("%c%s {X}", 116, "ouch")) }`, "awk"),
		{Name: "file", Argv: []string{"awk", "-f", "f"}, Files: map[string]string{"f": "BEGIN { system(\"touch {X}\") }\n"}},
		{Name: "assigned", Argv: []string{"awk", "-v", "c=touch {X}", "BEGIN { system(c) }"}},
		{Name: "argument", Argv: []string{"awk", "{ system(c) }", "c=touch {X}", "-"}, Stdin: "a\n"},
		by("environ", `BEGIN { system(ENVIRON["C"]) }`, "awk").env("C=touch {X}"),
		by("read", `BEGIN { while ((getline l < "{S}") > 0) print l }`, "awk").to(Prints),
		{Name: "read-argument", Argv: []string{"awk", "1", "{S}"}, Effect: Prints},
		{Name: "argv", Argv: []string{"awk", `BEGIN { ARGV[1] = "{S}"; ARGC = 2 } 1`}, Effect: Prints},
		{Name: "stdin-program", Argv: []string{"awk", "-f", "-"}, Stdin: "BEGIN { system(\"touch {X}\") }\n"},
	}
}

func gawkTricks() []Trick {
	return []Trick{
		by("network", `BEGIN { s = "/inet/tcp/0/{HOST}/{PORT}"; print "{N}" |& s; s |& getline l; print l }`, "gawk").to(Dials),
		by("coprocess", `BEGIN { "touch {X}" |& getline }`, "gawk"),
		by("dump", "-d{X}", "gawk").then("BEGIN{}"),
		by("profile", "-p{X}", "gawk").then("BEGIN{a=1}"),
		by("pretty", "-o{X}", "gawk").then("BEGIN{a=1}"),
		{Name: "include", Argv: []string{"gawk", "@include \"f\""}, Files: map[string]string{"f": "BEGIN { system(\"touch {X}\") }\n"}},
		{Name: "indirect", Argv: []string{"gawk", `function f(a) { system(a) } BEGIN { g = "f"; @g("touch {X}") }`}},
	}
}

func lessTricks() []Trick {
	return []Trick{
		sh("open", "less known.txt").env("LESSOPEN=|touch {X}; cat %s").before("echo a >known.txt"),
		sh("open-pipe", "less known.txt").env("LESSOPEN=|touch {X}; cat %s").before("echo a >known.txt"),
		sh("close", "less known.txt").env("LESSOPEN=|cat %s", "LESSCLOSE=touch {X}; : %s %s").before("echo a >known.txt"),
		onTTY("bang", "less '+!touch {X}' known.txt").before("echo a >known.txt").env("LESS=").reading("\nq"),
		onTTY("editor", "less +v known.txt").before("echo a >known.txt").env("VISUAL=touch {X};:", "EDITOR=touch {X};:").reading("q"),
		onTTY("pipe", "less known.txt").before("echo a >known.txt").reading("|^touch {X}\n\nq"),
		onTTY("save", "echo a | less").reading("s{X}\nq"),
		onTTY("option", "less known.txt").before("echo a >known.txt").env("LESS=+!touch {X}\n").reading("\nq"),
		sh("read", "less {S}").to(Prints),
		onTTY("log-tty", "echo a | less -o{X}").reading("q"),
	}
}

func moreTricks() []Trick {
	return []Trick{
		sh("read", "more {S}").to(Prints),
	}
}

func manTricks() []Trick {
	return []Trick{
		onTTY("pager", "man -C c -P 'touch {X}' ./a.1").with(manPage),
		onTTY("pager-long", "man -C c --pager='sh -c \"touch {X}\"' ./a.1").with(manPage),
		onTTY("variable", "man -C c ./a.1").env("MANPAGER=touch {X}").with(manPage),
		onTTY("pager-variable", "unset MANPAGER; man -C c ./a.1").env("PAGER=touch {X}").with(manPage),
	}
}

func manHtmlTricks() []Trick {
	return []Trick{
		sh("html", "man -C c --html='touch {X};:' ./a.1").with(manPage),
		sh("html-short", "man -C c -H'touch {X};:' ./a.1").with(manPage),
		sh("browser", "man -C c -H ./a.1").env("BROWSER=touch {X};:").with(manPage),
	}
}

func infoTricks() []Trick {
	return []Trick{
		sh("output", "info -o {X} info"),
		sh("read", "info -f {S}").to(Prints),
	}
}

func viTricks() []Trick {
	return []Trick{
		onTTY("bang", "vi -c '!touch {X}' -c q").reading("\n:q!\n"),
		onTTY("argument", "vi '+!touch {X}' +q").reading("\n:q!\n"),
		onTTY("typed", "vi -u NONE f").reading(":!touch {X}\n\n:q!\n"),
		onTTY("write", "vi -u NONE f").reading(":w! {X}\n:q!\n"),
	}
}

var manPage = map[string]string{"c": "MANDATORY_MANPATH /usr/share/man\n", "a.1": ".TH A 1\n.SH NAME\na \\- b\n"}

// archiveSets are packers and copiers.
func archiveSets() map[string][]Trick {
	return map[string][]Trick{
		"tar":   tarTricks(),
		"zip":   zipTricks(),
		"unzip": unzipTricks(),
		"7z":    sevenzTricks(),
		"cpio":  cpioTricks(),
		"rsync": rsyncTricks(),
		"ar":    arTricks(),
		"ssh":   sshTricks(),
	}
}

func tarTricks() []Trick {
	return []Trick{
		sh("checkpoint", "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch {X}' /dev/null"),
		sh("checkpoint-names", "touch -- --checkpoint=1 '--checkpoint-action=exec=sh f'; tar -cf /dev/null *").with(map[string]string{"f": "touch {X}\n"}),
		sh("to-command", "tar -cf a.tar known.txt; tar -xf a.tar --to-command='touch {X}'").before("echo a >known.txt"),
		sh("compressor", "tar -I 'sh -c \"touch {X}; cat\"' -cf a.tar known.txt").before("echo a >known.txt"),
		sh("compressor-script", "tar -I ./run -cf a.tar run").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
		sh("info-script", "tar -cML20 -f a.tar -F 'touch {X}; exit 1' big").before("head -c 50000 /dev/zero >big"),
		sh("new-volume", "tar -cL20 --new-volume-script='touch {X}; exit 1' -f a.tar big").before("head -c 50000 /dev/zero >big"),
		sh("options", "tar -cf /dev/null known.txt").env("TAR_OPTIONS=--checkpoint=1 --checkpoint-action=exec=touch\\ {X}").before("echo a >known.txt"),
		sh("index", "tar -cvf /dev/null --index-file={X} known.txt").before("echo a >known.txt"),
		sh("snapshot", "tar -cf /dev/null -g {X} known.txt").before("echo a >known.txt"),
		sh("volno", "tar -cML9999 --volno-file={X} -f a.tar known.txt").before("echo a >known.txt"),
		sh("directory", "cp known.txt x-{N}; tar -cf a.tar x-{N}; tar -xf a.tar -C {Y}").before("echo a >known.txt"),
		sh("transform", "tar -cf a.tar known.txt; tar -xPf a.tar --transform='s,.*,{X},'").before("echo a >known.txt"),
		sh("one-top", "tar -cf a.tar known.txt; tar -xf a.tar --one-top-level={X}").before("echo a >known.txt"),
		sh("files-from", "tar -cPf - -T f | tar -xOPf -").with(map[string]string{"f": "{S}\n"}).to(Prints),
		sh("exclude-from", "tar -cPf - {S} | tr -d '\\0'").to(Prints),
		sh("write", "tar -cf {X} known.txt").before("echo a >known.txt"),
		sh("absolute", "tar -cPf - {S} | tar -xOf -").to(Prints),
		sh("append", "tar -rf {X} known.txt").before("echo a >known.txt"),
	}
}

func zipTricks() []Trick {
	return []Trick{
		sh("test", "zip -q a.zip known.txt -T -TT 'touch {X};:'").before("echo a >known.txt"),
		sh("test-long", "zip -q a.zip known.txt --test --unzip-command='touch {X};:'").before("echo a >known.txt"),
		sh("write", "zip -q {X} known.txt").before("echo a >known.txt").making("{X}*"),
		sh("output", "zip -q a.zip known.txt; zip -q a.zip --out {X}").before("echo a >known.txt").making("{X}*"),
		sh("log", "zip -q a.zip known.txt -lf {X} -li").before("echo a >known.txt").making("{X}*"),
		sh("read", "zip -q0 - {S} | cat").to(Prints),
		sh("names", "echo {S} | zip -q0 -@ - ").to(Prints),
	}
}

func unzipTricks() []Trick {
	return []Trick{
		sh("directory", "python3 -m zipfile -c a.zip x-{N}; unzip -q a.zip -d {Y}").before("echo a >x-{N}"),
		sh("pipe", "unzip -p {S} || cat {S}").to(Prints),
	}
}

func sevenzTricks() []Trick {
	return []Trick{
		sh("output", "7z a {X} known.txt").before("echo a >known.txt").making("{X}*"),
		sh("list-file", "7z a a.7z -ir@{S}").to(Prints),
	}
}

func cpioTricks() []Trick {
	return []Trick{
		sh("output", "echo known.txt | cpio -o -O {X}").before("echo a >known.txt"),
		sh("pass", "echo x-{N} | cpio -p {Y}").before("echo a >x-{N}"),
		sh("rsh", "echo run | cpio -o --rsh-command=$PWD/run -F 127.0.0.1:a").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
		sh("read", "echo {S} | cpio -o").to(Prints),
	}
}

func rsyncTricks() []Trick {
	return []Trick{
		sh("e", "rsync -e 'sh -c \"touch {X}\"' a h:b"),
		sh("e-script", "rsync -e ./run a h:b").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
		sh("rsh", "RSYNC_RSH=./run rsync a h:b").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
		sh("write", "rsync known.txt {X}").before("echo a >known.txt"),
		sh("log", "rsync --log-file={X} known.txt b").before("echo a >known.txt"),
		sh("files-from", "rsync -n -v --files-from={S} . b").to(Prints),
		sh("connect", "RSYNC_CONNECT_PROG='touch {X}' rsync rsync://probe.test/a b"),
		sh("read", "rsync {S} k; cat k").to(Prints),
	}
}

func arTricks() []Trick {
	return []Trick{
		sh("write", "ar cr {X} known.txt").before("echo a >known.txt"),
		sh("read", "ar cr a.a {S}; ar p a.a").to(Prints),
		sh("script", "printf 'create %s\\naddmod known.txt\\nsave\\n' {X} | ar -M").before("echo a >known.txt"),
		sh("response", "ar @f").with(map[string]string{"f": "cr {X} known.txt\n", "known.txt": "a\n"}),
		sh("plugin", "cp known.txt x-{N}; ar cr a.a x-{N}; ar --output={Y} x a.a").with(map[string]string{"known.txt": "a\n"}),
	}
}

func sshTricks() []Trick {
	return []Trick{
		sh("proxy-command", "ssh -F none -o ProxyCommand='touch {X};:' probe.test"),
		sh("config", "ssh -F f probe.test").with(map[string]string{"f": "Host *\n  ProxyCommand touch {X}\n"}),
		sh("match", "ssh -F f probe.test").with(map[string]string{"f": "Match exec \"touch {X}\"\n  ProxyCommand false\n"}),
		sh("match-print", "ssh -G -F f probe.test").with(map[string]string{"f": "Match exec \"touch {X}\"\n  User a\n"}),
		sh("log", "ssh -F none -E {X} -o ProxyCommand=false -v probe.test"),
		sh("known-hosts", "ssh -G -F none -o KnownHostsCommand='touch {X}' -o ProxyCommand='touch {X};:' probe.test; ssh -F none -o ProxyCommand='touch {X}' probe.test"),
		sh("scp", "scp -F none -S ./run a h:b").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
		sh("scp-proxy", "scp -F none -o ProxyCommand='touch {X};:' a h:b").before("touch a"),
		sh("sftp", "sftp -F none -S ./run h").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
		sh("keygen", "ssh-keygen -q -t ed25519 -N '' -f {X}"),
		sh("dial", "timeout 1 ssh -F none -v -o StrictHostKeyChecking=no -o ConnectTimeout=2 -p {PORT} {HOST}").to(Dials),
		sh("keyscan", "timeout 2 ssh-keyscan -T 1 -p {PORT} {HOST}").to(Dials),
		sh("control", "ssh -F none -o PermitLocalCommand=yes -o LocalCommand=x -o ProxyCommand='touch {X}' h"),
		sh("read", "ssh -F {S} h").to(Prints),
		sh("askpass", "ssh-keygen -q -t ed25519 -N secret -f k; setsid -w ssh-keygen -yf k </dev/null").env("SSH_ASKPASS={D}/run", "SSH_ASKPASS_REQUIRE=force").with(map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}),
	}
}
