//go:build unix

package rules

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// benchAttempts are typical executions: most that no rule is about.
func benchAttempts() map[string]event.Attempt {
	exec := func(executable string, argv ...string) event.Attempt {
		return event.Attempt{Kind: event.KindExec, Path: executable, ParentExecutable: "/usr/bin/dash",
			Process: event.Process{Executable: executable, SHA256: "x", Argv: argv, Cwd: "/home/you/project"}}
	}
	script := exec("/usr/bin/node", "npm", "run", "build")
	script.Path, script.Script = "/usr/bin/npm", "/usr/lib/node_modules/npm/bin/npm-cli.js"
	long := exec("/usr/bin/rm", "rm")
	for i := range 5000 {
		long.Process.Argv = append(long.Process.Argv, fmt.Sprint("file", i))
	}
	return map[string]event.Attempt{
		"unmatched": exec("/usr/bin/make", "make", "-j4", "all"),
		"git":       exec("/usr/bin/git", "git", "-C", "x", "status", "--porcelain"),
		"script":    script,
		"compiler":  exec("/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "cc1", "-quiet", "-I", "x", "-o", "y", "a.c"),
		"shell":     exec("/usr/bin/dash", "sh", "-c", "git status"),
		"long":      long,
	}
}

// benchRules are n rules by how well they can be distinguished without evaluating them.
func benchRules(kind string, n int) (rules []Rule) {
	for i := range n {
		when := map[string]string{
			"program":  fmt.Sprintf(`program == "tool%d" && "deploy" in args`, i),
			"same":     fmt.Sprintf(`program == "git" && "word%d" in args`, i),
			"argv":     fmt.Sprintf(`action == "exec" && argv[0].endsWith("/tool%d") && "push" in argv`, i),
			"word":     fmt.Sprintf(`"word%d" in argv`, i),
			"sentence": fmt.Sprintf(`action == "exec" && argv.exists(a, a.startsWith("--word%d"))`, i),
			"pattern":  fmt.Sprintf(`action == "exec" && argv[0].matches("tool%d$")`, i),
		}[kind]
		rules = append(rules, Rule{When: when})
	}
	return rules
}

func BenchmarkJudge(b *testing.B) {
	var shipped []Rule
	for _, name := range SetNames {
		shipped = append(shipped, Rule{Set: name})
	}
	for _, kind := range []string{"shipped", "program", "same", "argv", "word", "sentence", "pattern"} {
		ask := shipped
		if kind != "shipped" {
			ask = benchRules(kind, 100)
		}
		g, err := New(ask, nil, Host{})
		if err != nil {
			b.Fatal(err)
		}
		for name, a := range benchAttempts() {
			b.Run(kind+"/"+name, func(b *testing.B) {
				g.Judge(a)
				before, n := cpuTime(b), 0
				for b.Loop() {
					g.Judge(a)
					n++
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/op") // others may use the machine
			})
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkNew(b *testing.B) {
	var shipped []Rule
	for _, name := range SetNames {
		shipped = append(shipped, Rule{Set: name})
	}
	for b.Loop() {
		if _, err := New(shipped, nil, Host{}); err != nil {
			b.Fatal(err)
		}
	}
}
