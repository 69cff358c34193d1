//go:build linux

package native

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

var seccompUpdate = flag.Bool("seccomp.update", false, "write the generated files of the system call table")

func TestSeccompGeneratedNumbers(t *testing.T) {
	var dir string
	testenv.Need(t, "x-sys-source", func() error {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
		if err != nil {
			return fmt.Errorf("finding golang.org/x/sys: %w", err)
		}
		dir = filepath.Join(strings.TrimSpace(string(out)), "unix")
		_, err = os.Stat(dir)
		return err
	})
	line := regexp.MustCompile(`(?m)^\tSYS_([A-Z0-9_]+) += (\d+)$`)
	archs := []string{"amd64", "arm64"}
	numbers := map[string][]string{}
	for i, arch := range archs {
		src, err := os.ReadFile(filepath.Join(dir, "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllSubmatch(src, -1) {
			name := strings.ToLower(string(m[1]))
			if numbers[name] == nil {
				numbers[name] = []string{"-", "-"}
			}
			numbers[name][i] = string(m[2])
		}
	}
	text := "name\t" + strings.Join(archs, "\t") + "\n"
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		text += name + "\t" + strings.Join(numbers[name], "\t") + "\n"
	}
	seccompCurrent(t, "syscalls_numbers.tsv", []byte(text))
}

func TestSeccompGeneratedDocument(t *testing.T) {
	rules, err := parseTable(seccompRead(t, "syscalls.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	seccompCurrent(t, filepath.Join(testenv.ModuleRoot(t), "docs", "seccomp.md"), seccompDocument(rules))
}

// seccompCurrent compares a generated file with what it should be, or writes it.
func seccompCurrent(t *testing.T, path string, want []byte) {
	t.Helper()
	if *seccompUpdate {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := seccompRead(t, path); got != string(want) {
		t.Errorf("%s is not what the table says; run go generate ./internal/sandbox/native", path)
	}
}

func seccompRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const seccompIntroduction = `# System calls

<!-- Generated from internal/sandbox/native/syscalls.tsv by go generate; do not edit. -->

Every process inside runs under a filter that looks at each system call before
the kernel carries it out. What is not allowed by name is answered "function not
implemented", as an older kernel would; programs fall back from that.

How to read the tables:

- The first row of a call whose condition holds gives the answer. A call whose
  rows all have conditions that do not hold is allowed.
- Conditions look at the low 32 bits of an argument, which is what the kernel
  itself uses of it. ` + "`arg1 & X`" + ` holds when any bit of X is set; ` + "`~(X)`" + ` is every bit but X.
- "kill" ends the whole process with SIGSYS.
- ` + "`*foreign`" + ` is a call of another architecture, ` + "`*x32`" + ` one of the x32 variant of
  amd64, ` + "`*unknown`" + ` a number without a row.
- A calling program cannot lift the filter; it can only add a narrower one.

What this costs programs that work outside: a set-user-id or set-group-id bit
cannot be set, on directories either (` + "`git init --shared`, `install -m 4755`" + `);
debuggers and tracers cannot attach; nothing can be mounted and no namespace
made, so container tools do not work inside; ` + "`ping`" + ` has no socket; programs of
another word size (32 bit on a 64 bit system) are killed.
`

func seccompDocument(rules []callRule) []byte {
	var groups []string
	for _, r := range rules {
		if !slices.Contains(groups, r.group) {
			groups = append(groups, r.group)
		}
	}
	var b bytes.Buffer
	b.WriteString(seccompIntroduction)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| calls | answer | when | why | see |\n|---|---|---|---|---|\n", g)
		for _, r := range rules {
			if r.group != g {
				continue
			}
			when := "always"
			if r.condition != "" {
				when = "`" + strings.ReplaceAll(r.condition, "|", `\|`) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.Join(r.names, "`, `"), r.verdict, when, r.reason, r.reference)
		}
	}
	return b.Bytes()
}
