//go:build linux

package inside

// python, perl and so on are programs that take code as an argument.
func python(name, code string) Trick { return by(name, code, "python3", "-c") }
func perl(name, code string) Trick   { return by(name, code, "perl", "-e") }
func node(name, code string) Trick   { return by(name, code, "node", "-e") }

// interpreterSets hand code to programs that run it.
func interpreterSets() map[string][]Trick {
	return map[string][]Trick{
		"python":  pythonTricks(),
		"perl":    perlTricks(),
		"node":    nodeTricks(),
		"ruby":    rubyTricks(),
		"php":     phpTricks(),
		"lua":     luaTricks(),
		"rscript": rscriptTricks(),
		"deno":    denoTricks(),
		"bun":     bunTricks(),
		"guile":   guileTricks(),
		"tclsh":   tclshTricks(),
		"sqlite3": sqlite3Tricks(),
		"gdb":     gdbTricks(),
		"vim":     vimTricks(),
		"ed":      edTricks(),
	}
}

func pythonTricks() []Trick {
	return []Trick{
		python("open", "open('{X}', 'w')"),
		python("system", "import os; os.system('touch {X}')"),
		python("subprocess", "import subprocess as s; s.run(['touch', '{X}'])"),
		python("exec", "exec(__import__('base64').b64decode('b3BlbihfX2ltcG9ydF9fKCdzeXMnKS5hcmd2WzFdLCAndycp'))").then("{X}"),
		python("ctypes", "import ctypes; ctypes.CDLL(None).creat(b'{X}', 0o644)"),
		python("syscall", "import ctypes, platform; l = ctypes.CDLL(None); l.syscall({'x86_64': 257, 'aarch64': 56}[platform.machine()], -100, b'{X}', 0o101, 0o644)"),
		python("pathlib", "import pathlib; pathlib.Path('{X}').touch()"),
		python("spawn", "import os; os.posix_spawnp('touch', ['ls', '{X}'], os.environ); os.wait()"),
		python("pty", "import pty; pty.spawn(['touch', '{X}'])"),
		python("sqlite", "import sqlite3; sqlite3.connect('{X}').execute('create table a (b)')"),
		python("link", "import os; os.symlink('nowhere', '{X}')"),
		python("fifo", "import os; os.mkfifo('{X}')"),
		python("dirfd", "import os; d = os.open('{Y}', os.O_PATH); os.open('x-{N}', os.O_CREAT | os.O_WRONLY, dir_fd=d)"),
		{Name: "stdin", Argv: []string{"python3", "-"}, Stdin: "open('{X}', 'w')\n"},
		{Name: "module", Argv: []string{"python3", "-m", "m"}, Files: map[string]string{"m.py": "open('{X}', 'w')"}},
		{Name: "startup", Argv: []string{"python3", "-c", "pass"}, Env: []string{"PYTHONPATH={D}"}, Files: map[string]string{"sitecustomize.py": "open('{X}', 'w')"}},
		{Name: "timeit", Argv: []string{"python3", "-m", "timeit", "-n1", "-r1", "open('{X}', 'w')"}},
		{Name: "warnings", Argv: []string{"python3", "-c", "import urllib.request, webbrowser; webbrowser.open('a')"}, Env: []string{"BROWSER=touch {X} # %s"}},
		{Name: "pip-config", Argv: []string{"python3", "-m", "pip", "--log", "{X}", "--disable-pip-version-check", "list"}},
		python("socket", "import socket; print(socket.create_connection(('{HOST}', {PORT}), 2).recv(99))").to(Dials),
		python("urllib", "import socket; s = socket.socket(); s.connect_ex(('{HOST}', {PORT})); s.send(b'{N}'); print(s.recv(99))").to(Dials),
		python("asyncio", "import asyncio\nasync def m(): r, w = await asyncio.open_connection('{HOST}', {PORT}); print(await r.read(99))\nasyncio.run(m())").to(Dials),
		python("read", "print(open('{S}').read())").to(Prints),
		python("read-mmap", "import mmap; f = open('{S}', 'rb'); print(mmap.mmap(f.fileno(), 0, access=1)[:])").to(Prints),
		python("read-linecache", "import linecache; print(linecache.getlines('{S}'))").to(Prints),
		python("memory-file", "import os, shutil; f = os.memfd_create('ls', 0); os.write(f, open(shutil.which('touch'), 'rb').read()); os.execv('/proc/self/fd/%d' % f, ['ls', '{X}'])"),
	}
}

func perlTricks() []Trick {
	return []Trick{
		perl("open", "open F, '>', '{X}'"),
		perl("system", "system 'touch {X}'"),
		perl("backticks", "`touch {X}`"),
		perl("pipe", "open F, '|touch {X}'; close F"),
		perl("exec", "exec {'touch'} 'ls', '{X}'"),
		perl("syscall", "use POSIX; POSIX::creat('{X}', 0644)"),
		perl("eval", `eval pack 'H*', unpack 'H*', "open F, '>', '{X}'"`),
		perl("socket", "use IO::Socket::INET; $s = IO::Socket::INET->new('{A}') or die $!; print scalar <$s>").to(Dials),
		perl("read", "open F, '{S}' or die $!; print <F>").to(Prints),
		by("in-place", "{X}", "sh", "-c", "echo a >f; perl -pi -e 's/a/b/; open G, \">\", $ENV{TO}' f").env("TO={X}"),
		{Name: "option", Argv: []string{"perl", "-e", "1"}, Env: []string{"PERL5OPT=-Mm", "PERL5LIB={D}"}, Files: map[string]string{"m.pm": "open F, '>{X}'; 1"}},
		{Name: "argument", Argv: []string{"perl", "-ne", "", "touch {X} |"}},
		perl("regex", "'a' =~ m!a(?{system 'touch {X}'})!"),
		{Name: "debugger", Argv: []string{"perl", "-d", "-e", "1"}, Env: []string{"PERL5DB=BEGIN { open F, '>{X}'; exit }"}},
		{Name: "cpan", Argv: []string{"perl", "-x", "f"}, Files: map[string]string{"f": "text\n#!perl\nopen F, '>{X}';\n__END__\n"}},
	}
}

func nodeTricks() []Trick {
	return []Trick{
		node("write", "require('fs').writeFileSync('{X}', '')"),
		node("exec", "require('child_process').execSync('touch {X}')"),
		node("spawn", "require('child_process').spawnSync('touch', ['{X}'], {argv0: 'ls'})"),
		by("print", "require('fs').openSync('{X}', 'w')", "node", "-p"),
		by("import", "import fs from 'fs'; fs.openSync('{X}', 'w')", "node", "--input-type=module", "-e"),
		node("socket", "require('net').connect({PORT}, '{HOST}').on('data', d => { console.log('' + d); process.exit() })").to(Dials),
		node("read", "console.log(require('fs').readFileSync('{S}', 'utf8'))").to(Prints),
		node("worker", "new (require('worker_threads').Worker)(`require('fs').writeFileSync('{X}', '')`, {eval: true})"),
		node("binding", "process.binding('fs').open('{X}', 0o101, 0o644)"),
		{Name: "options", Argv: []string{"node", "-e", "0"}, Env: []string{"NODE_OPTIONS=--require={D}/f.js"}, Files: map[string]string{"f.js": "require('fs').writeFileSync('{X}', '')"}},
		{Name: "stdin", Argv: []string{"node", "-"}, Stdin: "require('fs').writeFileSync('{X}', '')"},
		node("vm", "require('vm').runInNewContext('f.openSync(x, \"w\")', {f: require('fs'), x: '{X}'})"),
	}
}

func rubyTricks() []Trick {
	return []Trick{
		by("open", "File.write('{X}', '')", "ruby", "-e"),
		by("system", "system 'touch {X}'", "ruby", "-e"),
		by("backticks", "`touch {X}`", "ruby", "-e"),
		by("kernel-open", "open('|touch {X}').read", "ruby", "-e"),
		by("socket", "require 'socket'; puts TCPSocket.new('{HOST}', {PORT}).gets", "ruby", "-e").to(Dials),
	}
}

func phpTricks() []Trick {
	return []Trick{
		by("open", "file_put_contents('{X}', '');", "php", "-r"),
		by("system", "system('touch {X}');", "php", "-r"),
		by("socket", "echo fgets(fsockopen('{HOST}', {PORT}));", "php", "-r").to(Dials),
		by("backticks", "`touch {X}`;", "php", "-r"),
	}
}

func luaTricks() []Trick {
	return []Trick{
		by("open", "io.open('{X}', 'w')", "lua", "-e"),
		by("execute", "os.execute('touch {X}')", "lua", "-e"),
		by("popen", "io.popen('touch {X}'):read()", "lua", "-e"),
	}
}

func rscriptTricks() []Trick {
	return []Trick{
		by("create", "file.create('{X}')", "Rscript", "-e"),
		by("system", "system('touch {X}')", "Rscript", "-e"),
	}
}

func denoTricks() []Trick {
	return []Trick{
		by("write", "Deno.writeTextFileSync('{X}', '')", "deno", "eval"),
	}
}

func bunTricks() []Trick {
	return []Trick{
		by("write", "require('fs').writeFileSync('{X}', '')", "bun", "-e"),
	}
}

func guileTricks() []Trick {
	return []Trick{
		by("system", "(system \"touch {X}\")", "guile", "-c"),
	}
}

func tclshTricks() []Trick {
	return []Trick{
		{Name: "exec", Argv: []string{"tclsh"}, Stdin: "exec touch {X}\n"},
		{Name: "open", Argv: []string{"tclsh"}, Stdin: "open {X} w\n"},
		{Name: "socket", Argv: []string{"tclsh"}, Stdin: "puts [gets [socket {HOST} {PORT}]]\n", Effect: Dials},
		{Name: "pipe", Argv: []string{"tclsh"}, Stdin: "close [open {|touch {X}}]\n"},
	}
}

func sqlite3Tricks() []Trick {
	return []Trick{
		by("shell", ".shell touch {X}", "sqlite3", ":memory:"),
		by("system", ".system touch {X}", "sqlite3", ":memory:"),
		by("output", ".output {X}", "sqlite3", ":memory:"),
		by("once-pipe", ".once '|touch {X}'", "sqlite3", ":memory:").then("select 1"),
		by("attach", "attach '{X}' as a; create table a.b (c)", "sqlite3", ":memory:"),
		by("vacuum", "vacuum into '{X}'", "sqlite3", ":memory:"),
		by("backup", ".backup {X}", "sqlite3", ":memory:"),
		by("log", ".log {X}", "sqlite3", ":memory:"),
		by("open", "create table b (c)", "sqlite3", "{X}"),
		by("import", ".import '|touch {X}; echo a' t", "sqlite3", ":memory:"),
		by("editor", "select edit('a', 'touch {X};:')", "sqlite3", ":memory:"),
		by("readfile", "select readfile('{S}')", "sqlite3", ":memory:").to(Prints),
		by("writefile", "select writefile('{X}', 'a')", "sqlite3", ":memory:"),
		{Name: "init", Argv: []string{"sqlite3", "-init", "f", ":memory:", "select 1"}, Files: map[string]string{"f": ".shell touch {X}\n"}},
	}
}

func gdbTricks() []Trick {
	return []Trick{
		{Name: "shell", Argv: []string{"gdb", "-nx", "-batch", "-ex", "shell touch {X}"}},
		{Name: "bang", Argv: []string{"gdb", "-nx", "-batch", "-ex", "!touch {X}"}},
		{Name: "python", Argv: []string{"gdb", "-nx", "-batch", "-ex", "python open('{X}', 'w')"}},
		{Name: "logging", Argv: []string{"gdb", "-nx", "-batch", "-ex", "set logging file {X}", "-ex", "set logging enabled on", "-ex", "show version"}},
		{Name: "script", Argv: []string{"gdb", "-nx", "-batch", "-x", "f"}, Files: map[string]string{"f": "shell touch {X}\n"}},
		{Name: "pipe", Argv: []string{"gdb", "-nx", "-batch", "-ex", "pipe show version | touch {X}"}},
		{Name: "init", Argv: []string{"gdb", "-batch"}, Files: map[string]string{".gdbinit": "shell touch {X}\n"}},
		{Name: "make", Argv: []string{"gdb", "-nx", "-batch", "-ex", "make -s --eval 'all:;touch {X}'"}},
	}
}

func vimTricks() []Trick {
	return []Trick{
		{Name: "bang", Argv: []string{"vim", "-Nu", "NONE", "-es", "-c", "!touch {X}", "-c", "q"}},
		{Name: "write", Argv: []string{"vim", "-Nu", "NONE", "-es", "-c", "w! {X}", "-c", "q"}},
		{Name: "before", Argv: []string{"vim", "-Nu", "NONE", "-es", "--cmd", "call system('touch {X}')", "-c", "q"}},
		{Name: "writefile", Argv: []string{"vim", "-Nu", "NONE", "-es", "-c", "call writefile([], '{X}')", "-c", "q"}},
		{Name: "filter", Argv: []string{"vim", "-Nu", "NONE", "-es", "-c", "%!touch {X}", "-c", "q!"}},
		{Name: "script", Argv: []string{"vim", "-Nu", "NONE", "-es", "-S", "f", "-c", "q"}, Files: map[string]string{"f": "!touch {X}\n"}},
		{Name: "vimrc", Argv: []string{"vim", "-es", "-u", "f", "-c", "q"}, Files: map[string]string{"f": "call system('touch {X}')\n"}},
		onTTY("viminit", "vim -c q").env("VIMINIT=call writefile([],'{X}')"),
		{Name: "modeline", Argv: []string{"vim", "-N", "-u", "NONE", "-es", "--cmd", "set modeline modelineexpr", "-c", "set foldmethod?", "-c", "redraw", "-c", "source f", "f", "-c", "q!"}, Files: map[string]string{"f": "\" vim: set nowrap:\nsilent !touch {X}\n"}},
		{Name: "ex", Argv: []string{"ex", "-s"}, Stdin: "!touch {X}\nq!\n"},
		{Name: "view", Argv: []string{"view", "-es"}, Stdin: "w! {X}\nq!\n"},
		{Name: "restricted", Argv: []string{"rvim", "-Nu", "NONE", "-es", "-c", "call writefile([], '{X}')", "-c", "q"}},
		{Name: "swap", Argv: []string{"vim", "-Nu", "NONE", "-es", "-c", "set undofile undodir=. | redir! > {X} | echo 1 | redir END", "-c", "q"}},
		{Name: "read", Argv: []string{"vim", "-Nu", "NONE", "-es", "-c", "%p", "-c", "q", "{S}"}, Effect: Prints},
		{Name: "exrc", Argv: []string{"vim", "-N", "-es", "-u", "NORC", "--cmd", "set exrc", "-c", "source .exrc", "-c", "q"}, Files: map[string]string{".exrc": "call writefile([], '{X}')\n"}},
	}
}

func edTricks() []Trick {
	return []Trick{
		{Name: "bang", Argv: []string{"ed", "-s"}, Stdin: "!touch {X}\nq\n"},
		{Name: "write", Argv: []string{"ed", "-s"}, Stdin: "a\na\n.\nw {X}\nq\n"},
		{Name: "write-pipe", Argv: []string{"ed", "-s"}, Stdin: "a\na\n.\nw !touch {X}\nq\n"},
		{Name: "read-pipe", Argv: []string{"ed", "-s"}, Stdin: "r !touch {X}; echo a\nq\nq\n"},
		{Name: "argument", Argv: []string{"ed", "-s", "!touch {X}; echo a"}, Stdin: "q\n"},
		{Name: "read", Argv: []string{"ed", "-s", "{S}"}, Stdin: ",p\nq\n", Effect: Prints},
	}
}
