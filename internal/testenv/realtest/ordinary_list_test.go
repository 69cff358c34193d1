package realtest

import "holdfast.dev/holdfast/internal/testenv"

// ordinarySessions are everyday work of people and agents: builds, tests,
// installs, and git.
func ordinarySessions() []ordinary {
	need := func(f ...testenv.Feature) []testenv.Feature { return f }
	return []ordinary{
		{"go build and test", need(testenv.Go), files(goProject), `go vet ./...; go build -o app .; ./app; go test -count=1 ./...; gofmt -l .; go list -deps . >/dev/null`},
		{"go tests of a real module", need(testenv.Go), realModule, `cd mod; go test -count=1 ./...`},
		{"make and gcc", need(testenv.GCC, testenv.Make), files(cProject), `make -s -j4; ./prog; make -s clean; make -s; make -s install DESTDIR=$PWD/dest`},
		{"configure script", need(testenv.GCC, testenv.Make), files(configured), `./configure --prefix=/usr/local; make -s; make -s check`},
		{"git of every day", need(testenv.Git), committed, `
			cd r; git status; git log --oneline; git switch -qc feature; echo more >> text; git commit -qam more
			git switch -q main; echo x > other; git add other; git commit -qm other; git merge -q -m merged feature
			git rebase -q main feature; git stash list; git diff HEAD~1 --stat; git tag v1; git gc -q; git fsck; git bisect start -q; git bisect reset`},
		{"git clone and worktree", need(testenv.Git), committed, `
			git clone -q r copy; cd copy; git worktree add -q -b side ../side; echo y > ../side/y; git -C ../side add y
			git -C ../side -c user.name=a -c user.email=a@example.org commit -qm y; git worktree remove ../side; git branch -D side; git pull -q; git archive HEAD | tar tf -`},
		{"git patches", need(testenv.Git), committed, `
			cd r; git format-patch -q -2 -o ../patches; git reset -q --hard HEAD~2; git am -q ../patches/*.patch; git blame text >/dev/null
			git grep -n line; echo z >> text; git diff > ../z.patch; git checkout -q text; git apply ../z.patch; git clean -nd`},
		{"npm ci, build and test", need(testenv.Node, testenv.NPM), cachedPackage, `npm ci --offline --no-audit --no-fund; npm run build; npm test; npm ls; npx --offline leftover; rm -rf node_modules`},
		{"node scripts", need(testenv.Node), files(nodeProject), `node app.js; node --check app.js; node -e 'console.log(process.version, require("os").cpus().length)'; node --test`},
		{"python venv and pip", need(testenv.Python), files(pythonPackage), `
			python3 -m venv env; . env/bin/activate; pip --version; pip install -q --no-index --no-build-isolation --no-deps ./pkg; python -m pip list; python -c 'import greeting; print(greeting.word)'; pip uninstall -qy greeting`},
		{"python tests", need(testenv.Python), files(pythonTests), `python3 -m unittest -v; python3 -m compileall -q .; python3 -m json.tool data.json; python3 -c 'import sqlite3, ssl, ctypes; sqlite3.connect("a.db").execute("create table t(a)")'`},
		{"python processes", need(testenv.Python), files(pythonProcesses), `python3 many.py`},
		{"archives", need(testenv.Tar), nil, `
			mkdir -p tree/a/b; for i in $(seq 200); do echo "line $i" > tree/a/b/$i; done; ln -s a/b tree/link; ln tree/a/b/1 tree/hard
			tar czf t.tgz tree; mkdir out; tar xzf t.tgz -C out; diff -r tree out/tree; find out -type f -exec chmod 600 {} +; find . -name '*.tgz' | xargs ls -l; sha256sum t.tgz; rm -rf out`},
		{"search and replace", need(testenv.RG), files(goProject), `rg -l package .; rg --files .; grep -rn func . | head; sed -i s/hello/hallo/ main.go; awk '{n++} END {print n}' main.go; find . -name '*.go' -exec wc -l {} +; perl -pe 's/a/b/' main.go >/dev/null`},
		{"vim", need(testenv.Vim), files(goProject), `vim -es -u NONE -c '%s/hello/hi/g' -c 'wq' main.go; grep -q hi main.go; ex -s +1d +q! main.go || true`},
		{"cargo", need(testenv.Cargo), nil, `/usr/bin/cargo new --vcs none -q app; cd app; /usr/bin/cargo build --offline -q; /usr/bin/cargo test --offline -q; ./target/debug/app`},
		{"java", need(testenv.JDK), files(map[string]string{"A.java": "public class A { public static void main(String[] a) { System.out.println(\"java\"); } }\n"}), `javac A.java; java A; jar cf a.jar A.class; jar tf a.jar`},
		{"curl to a service of the host", need(testenv.Curl), served, `for i in 1 2 3; do curl -sSf http://127.0.0.1:$(cat port)/$i -o $i.txt; done; cat 1.txt; curl -s http://127.0.0.1:$(cat port)/ | head -c 100`},
		{"dev server and a client", need(testenv.Python, testenv.Curl), files(map[string]string{"index.html": "<p>page</p>\n"}), `
			python3 -m http.server --bind 127.0.0.1 8123 >server.log 2>&1 & server=$!
			for i in $(seq 300); do curl -sf http://127.0.0.1:8123/ && break; sleep 0.1; done; kill $server; wait $server || true; cat server.log`},
		{"a page in a browser", need(testenv.Chromium), files(map[string]string{"page.html": "<p id=p>before</p><script>p.textContent = 'after'</script>"}), `
			for i in 1 2; do chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$PWD/page.html" 2>chromium.log | grep after; done
			chromium --headless --no-sandbox --disable-gpu --screenshot=page.png "file://$PWD/page.html" 2>>chromium.log; ls -l page.png`},
		{"keys of tests and encodings", need(testenv.OpenSSH, testenv.Python), nil, `
			mkdir testdata; ssh-keygen -q -t ed25519 -N '' -f testdata/id_ed25519; ssh-keygen -lf testdata/id_ed25519.pub; chmod 600 testdata/*
			base64 testdata/id_ed25519.pub > pub.b64; base64 -d pub.b64 | cmp - testdata/id_ed25519.pub; echo eyJhIjoxfQo= | base64 -d | python3 -m json.tool
			find . -name 'id_*'; grep -rn 'PRIVATE KEY' . ; printf 'TOKEN=x\n' > .env.example; sha256sum pub.b64; head -c 32 /dev/urandom | od -An -tx1; rm -rf testdata`},
		{"a database and its migrations", need(testenv.Python), files(migrations), `
			python3 migrate.py app.db; python3 migrate.py app.db; cp app.db backup.db; gzip -k backup.db; zcat backup.db.gz | cmp - app.db
			python3 -c 'import sqlite3; print(sqlite3.connect("app.db").execute("select count(*) from people").fetchone())' | tee count; mv backup.db old.db; rm old.db backup.db.gz`},
		{"looking around", need(testenv.Bash), files(goProject), `
			pwd; ls -la; ls -la ~ || true; whoami; id; uname -a; cat /etc/os-release | head -3; env | sort | head -5; which sh bash git python3 node || true
			df -h . ; ps aux | head -3 || true; free -m || true; nproc; date; bash -lc 'echo login'; test -f .env || true; cat README.md 2>/dev/null || true; ls /usr/lib | head -3; mktemp -d; cat /proc/cpuinfo | head -3`},
	}
}

var goProject = map[string]string{
	"go.mod":       "module example.org/app\n\ngo 1.21\n",
	"main.go":      "package main\n\nimport \"fmt\"\n\nfunc word() string { return \"hello\" }\n\nfunc main() { fmt.Println(word()) }\n",
	"main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestWord(t *testing.T) {\n\tif word() != \"hello\" {\n\t\tt.Fatal(word())\n\t}\n}\n",
}

var cProject = map[string]string{
	"main.c":   "#include <stdio.h>\nint part(int);\nint main(void) { return printf(\"sum %d\\n\", part(41)) < 0; }\n",
	"part.c":   "int part(int a) { return a + 1; }\n",
	"Makefile": "prog: main.o part.o\n\t$(CC) -o $@ $^\nclean:\n\trm -f *.o prog\ninstall: prog\n\tinstall -D -m 755 prog $(DESTDIR)/usr/bin/prog\n",
}

var configured = map[string]string{
	"configure": "#!/bin/sh\nset -e\nfor h in stdio.h stdlib.h unistd.h no/such.h; do\n  echo \"#include <$h>\" > conftest.c\n  if ${CC-gcc} -c conftest.c 2>/dev/null; then echo \"have $h\"; else echo \"no $h\"; fi\n  rm -f conftest.c conftest.o\ndone\n" +
		"for p in gcc cc perl m4 no-such-program; do command -v $p || echo \"no $p\"; done\nuname -m; hostname\necho 'all: a' > Makefile; echo 'a: a.c' >> Makefile; printf 'check: a\\n\\t./a\\n' >> Makefile\n",
	"a.c": "int main(void) { return 0; }\n",
}

var nodeProject = map[string]string{
	"app.js": `const fs = require('fs'), { execFileSync } = require('child_process'), { Worker } = require('worker_threads');
fs.mkdirSync('dist', { recursive: true });
for (let i = 0; i < 50; i++) fs.writeFileSync('dist/' + i, 'x');
fs.renameSync('dist/1', 'dist/one'); fs.rmSync('dist', { recursive: true });
console.log(execFileSync('node', ['-p', '1+1']).toString());
new Worker('setTimeout(() => {}, 10)', { eval: true });
`,
	"app.test.js": "require('node:test')('sum', () => require('assert').equal(1 + 1, 2));\n",
}

var pythonPackage = map[string]string{
	"pkg/setup.py":             "from setuptools import setup\nsetup(name='greeting', version='1.0', packages=['greeting'])\n",
	"pkg/greeting/__init__.py": "word = 'hello'\n",
}

var pythonTests = map[string]string{
	"test_app.py": "import os, subprocess, tempfile, unittest\n\nclass Test(unittest.TestCase):\n    def test_files(self):\n        with tempfile.TemporaryDirectory() as d:\n            open(os.path.join(d, 'a'), 'w').write('x')\n    def test_child(self):\n        self.assertEqual(subprocess.check_output(['sh', '-c', 'echo a']), b'a\\n')\n",
	"data.json":   "{\"a\": [1, 2]}\n",
}

var migrations = map[string]string{
	"migrate.py":    "import glob, sqlite3, sys\n\nwith sqlite3.connect(sys.argv[1]) as db:\n    db.execute('create table if not exists done (name text)')\n    for name in sorted(glob.glob('sql/*.sql')):\n        if not db.execute('select 1 from done where name = ?', (name,)).fetchone():\n            db.executescript(open(name).read())\n            db.execute('insert into done values (?)', (name,))\n",
	"sql/1.sql":     "create table people (name text, password text);\n",
	"sql/2.sql":     "insert into people values ('a', 'x'), ('b', 'y');\n",
	"settings.toml": "[database]\npath = 'app.db'\n",
}

var pythonProcesses = map[string]string{
	"many.py": "import multiprocessing as m, concurrent.futures as c\n\ndef square(n):\n    return n * n\n\nif __name__ == '__main__':\n    for kind in ('fork', 'spawn', 'forkserver'):\n        with m.get_context(kind).Pool(2) as pool:\n            print(sum(pool.map(square, range(50))))\n    with c.ThreadPoolExecutor(20) as pool:\n        print(sum(pool.map(square, range(200))))\n",
}
