package realtest

import (
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

func compilers(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.GCC, testenv.Make)
	p.write(map[string]string{
		"main.c": "#include <stdio.h>\n#include <pthread.h>\nint part(int);\nstatic void *run(void *a) { return a; }\n" +
			"int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); return printf(\"sum %d\\n\", part(41)) < 0; }\n",
		"part.c":   "int part(int a) { return a + 1; }\n",
		"Makefile": "prog: main.o part.o\n\t$(CC) -pthread -o $@ $^\nmany: $(addprefix f,$(shell seq 60))\nf%:\n\t@echo $* > $@\n",
	})
	contains(t, p.inside(`make -s -j8 prog many; ./prog; cat f* | wc -l`), "sum 42", "60")
	contains(t, p.bare(`./prog`), "sum 42")
}

func archivesAndSearch(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Tar, testenv.RG)
	out := p.inside(`
		mkdir -p tree/a/b
		for i in $(seq 300); do echo "line $i needle" > tree/a/b/$i; done
		ln -s a/b tree/link
		chmod 600 tree/a/b/1
		touch -d 2001-02-03T04:05:06Z tree/a/b/2
		tar czf tree.tar.gz tree
		mkdir out
		tar xzf tree.tar.gz -C out
		stat -c '%a %Y' out/tree/a/b/1 out/tree/a/b/2
		diff -r tree out/tree
		grep -rl needle tree/a | wc -l
		rg -l needle tree | wc -l
		find . -type l`)
	contains(t, out, "600 ", "981173106", "300\n300\n", "./tree/link")
}

// goModule writes a module that depends on another one, and fills the home's
// module cache from files, without a network.
func goModule(t *testing.T, root string) *fixture {
	t.Helper()
	p := newFixture(t, root, testenv.Go)
	p.write(map[string]string{
		"../proxy/example.org/dep/@v/list":        "v1.2.3\n",
		"../proxy/example.org/dep/@v/v1.2.3.info": `{"Version":"v1.2.3","Time":"2024-01-02T03:04:05Z"}`,
		"../proxy/example.org/dep/@v/v1.2.3.mod":  "module example.org/dep\n\ngo 1.21\n",
		"../dep/example.org/dep@v1.2.3/go.mod":    "module example.org/dep\n\ngo 1.21\n",
		"../dep/example.org/dep@v1.2.3/dep.go":    "package dep\n\n// Word is of the dependency.\nfunc Word() string { return \"from-dep\" }\n",
		"go.mod":                                  "module example.org/app\n\ngo 1.21\n\nrequire example.org/dep v1.2.3\n",
		"main.go": `package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"example.org/dep"
)

// busy keeps many goroutines and, by reads that block, many threads.
func busy() int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for i := 0; i < 1000; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			if i%10 == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			os.ReadFile("/proc/self/stat")
			mu.Lock()
			sum += i
			mu.Unlock()
		}(i)
	}
	wg.Wait()
	return sum
}

func main() { fmt.Println(dep.Word(), busy()) }
`,
		"main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestBusy(t *testing.T) {\n\tif busy() != 499500 {\n\t\tt.Fatal(busy())\n\t}\n}\n",
	})
	p.bare(`
		python3 - <<'END'
import zipfile
with zipfile.ZipFile("../proxy/example.org/dep/@v/v1.2.3.zip", "w") as z:
    for name in ("go.mod", "dep.go"):
        z.write("../dep/example.org/dep@v1.2.3/" + name, "example.org/dep@v1.2.3/" + name)
END
		export GOPROXY="file://$PWD/../proxy" GOFLAGS='-mod=mod -modcacherw' GOSUMDB=off
		go mod tidy
		go build -o /dev/null .`)
	return p
}

func goTools(t *testing.T, root string) {
	t.Parallel()
	testenv.Need(t, testenv.Python, nil)
	p := goModule(t, root)
	sum := p.read("go.sum")
	out := p.inside(`go version; go build -o app .; ./app; go test ./...; go vet ./...; go list -m all`)
	contains(t, out, "from-dep 499500", "ok  \texample.org/app", "example.org/dep v1.2.3")
	contains(t, p.bare(`./app`), "from-dep")
	if p.read("go.sum") != sum {
		t.Error("go.sum changed")
	}

	// Files written inside do not get into the host's caches.
	p.bare(`touch -d '1 second ago' mark; find ../home -type f -exec touch -d '1 hour ago' {} +`)
	p.inside(`
		echo 'package main; func init() { println("poison") }' > more.go
		go build -o app .
		chmod -R u+w ~/go/pkg/mod
		for f in $(find ~/go/pkg/mod ~/.cache -type f | head -50); do echo poison >> $f; done`)
	if out := p.bare(`find ../home -type f -newer mark | grep -v holdfast || true`); out != "" {
		t.Errorf("written on the host:\n%s", out)
	}
}
