//go:build linux

package native

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

const seccompPython = `
import asyncio, multiprocessing, socket, subprocess, threading
threading.Thread(target=lambda: None).start()
asyncio.run(asyncio.sleep(0))
subprocess.run(["true"], check=True)
socket.create_server(("127.0.0.1", 0)).close()
with multiprocessing.Pool(2) as p:
    assert p.map(abs, [-1]) == [1]
`

// Tools that developers run must not notice the filter.
func TestSeccompToolsRunUnderTheFilter(t *testing.T) {
	testenv.Need(t, testenv.Seccomp, nil)
	tests := []struct {
		name    string
		feature testenv.Feature
		args    []string
	}{
		{"git makes, commits, packs and clones a repository", testenv.Git, []string{"sh", "-ec",
			"git init -q a; cd a; echo x > f; git add .; git -c user.name=a -c user.email=a@b commit -qm x; git gc -q; git status; git clone -q . ../b"}},
		{"node reads, listens and starts a worker", testenv.Node, []string{"node", "-e",
			`require("fs").readdirSync("."); require("http").createServer().listen(0,"127.0.0.1",function(){this.close()});` +
				`new (require("worker_threads").Worker)("1",{eval:true}); require("child_process").execSync("true")`}},
		{"npm writes a package", testenv.NPM, []string{"npm", "--offline", "init", "-y"}},
		{"go builds and runs a program", testenv.Go, []string{"sh", "-ec",
			"echo 'package main\nfunc main() {}' > m.go; go run m.go"}},
		{"python starts threads, processes and a server", testenv.Python, []string{"python3", "-c", seccompPython}},
		{"gcc compiles", testenv.GCC, []string{"sh", "-ec", "echo 'int main(void){return 0;}' > m.c; gcc m.c; ./a.out"}},
		{"make runs two jobs", testenv.Make, []string{"sh", "-ec", "printf 'all: a b\\na b:\\n\\t@true\\n' > Makefile; make -j2"}},
		{"tar packs and unpacks", testenv.Tar, []string{"sh", "-ec", "mkdir d e; echo x > d/f; ln -s f d/l; mkfifo d/p; tar czf t.tgz d; tar xzf t.tgz -C e"}},
		{"ripgrep searches with threads", testenv.RG, []string{"sh", "-ec", "echo needle > f; rg needle ."}},
		{"vim edits", testenv.Vim, []string{"vim", "-es", "-u", "NONE", "-c", "call setline(1, 'x')", "-c", "wq f"}},
		{"bash substitutes processes and waits for jobs", testenv.Bash, []string{"bash", "-ec", "true & wait; cat <(echo x) > /dev/null; set -m; true & wait"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testenv.Need(t, tt.feature, nil)
			dir := t.TempDir()
			cmd := exec.Command("/proc/self/exe", tt.args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), seccompChildVar+"="+childExec)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", tt.args, err, out)
			}
		})
	}
}

// seccompCost prints the nanoseconds of a call that is marked as allowed and of
// one whose arguments the program looks at.
func seccompCost(mode string) error {
	if mode == childFiltered {
		if err := seccompInstall(filterOptions{}); err != nil {
			return err
		}
	}
	const rounds = 300_000
	for _, c := range []struct {
		nr   uintptr
		a, b uintptr
	}{{unix.SYS_GETPID, 0, 0}, {unix.SYS_IOCTL, ^uintptr(0), 0}} {
		best := time.Duration(1 << 62)
		for range 5 {
			start := time.Now()
			for range rounds {
				_, _, _ = unix.RawSyscall(c.nr, c.a, c.b, 0)
			}
			best = min(best, time.Since(start))
		}
		fmt.Println(float64(best.Nanoseconds()) / rounds)
	}
	return nil
}

// BenchmarkSeccompCost compares processes with and without the filter: the
// filter cannot be taken off again, so it is not installed in this one.
func BenchmarkSeccompCost(b *testing.B) {
	testenv.Need(b, testenv.Seccomp, nil)
	for _, mode := range []string{childPlain, childFiltered} {
		b.Run(mode, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command("/proc/self/exe")
				cmd.Env = []string{seccompChildVar + "=" + childCost + mode}
				out, err := cmd.Output()
				if err != nil {
					b.Fatal(err)
				}
				for i, f := range strings.Fields(string(out)) {
					ns, err := strconv.ParseFloat(f, 64)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(ns, []string{"ns/getpid", "ns/ioctl"}[i])
				}
			}
		})
	}
}

// BenchmarkSeccompCompile is what a launch pays for reading the table.
func BenchmarkSeccompCompile(b *testing.B) {
	for b.Loop() {
		if _, err := parseTable(tableText); err != nil {
			b.Fatal(err)
		}
		if _, err := filter("amd64", filterOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
