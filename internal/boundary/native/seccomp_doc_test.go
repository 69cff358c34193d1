//go:build linux

package native

import (
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

var update = flag.Bool("update", false, "write the generated files")

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
	current(t, "syscalls_numbers.tsv", []byte(text))
}

// TestSyscallReference looks for each row of the table in what is printed.
func TestSyscallReference(t *testing.T) {
	rules, err := tableRules()
	if err != nil {
		t.Fatal(err)
	}
	text, err := SyscallReference()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(text, "\n| `"+strings.Join(r.names, "`, `")+"` | "+r.verdict+" |") {
			t.Errorf("the reference lacks %s", r.names)
		}
	}
	if again, err := SyscallReference(); err != nil || again != text {
		t.Errorf("the reference differs from call to call (%v)", err)
	}
}

// TestSeccompGeneratedFilters keeps the compiled filters equal to the table.
func TestSeccompGeneratedFilters(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		for l := range levelLookups + 1 {
			program, err := filter(arch, filterOptions{Level: l})
			if err != nil {
				t.Fatal(err)
			}
			current(t, filterFile(arch, l), encodeFilter(program))
		}
	}
}

// current compares a generated file with what it should be, or writes it.
func current(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := seccompRead(t, path); got != string(want) {
		t.Errorf("%s is out of date; run go generate ./internal/boundary/native", path)
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
