package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// The cost of linked code for every start, whether it is used or not.
const (
	maxInit = time.Millisecond // of all packages, on a quiet machine
	maxSize = 25_000_000       // bytes of the stripped program
)

// The minimum time of each package counts: other load of the machine only adds to
// it.
const starts, most = 20, 120

// TestProgramIsSmall builds the program as in a release.
func TestProgramIsSmall(t *testing.T) {
	if os.Getenv(testenv.BinaryVar) != "" && os.Geteuid() != 0 {
		return // root's pass checks it: this user has no build cache
	}
	program := filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("the program has %d bytes, at most %d are allowed", info.Size(), maxSize)
	}
}

func TestStartIsCheap(t *testing.T) {
	program := testenv.Binary(t)
	least := map[string]time.Duration{}
	var sum time.Duration
	for n := range most {
		traceStart(t, program, least)
		if sum = total(least); n >= starts && sum <= maxInit {
			break
		}
	}
	t.Logf("%d packages take %v", len(least), sum)
	if sum <= maxInit {
		return
	}
	names := slices.SortedFunc(maps.Keys(least), func(a, b string) int { return cmp.Compare(least[b], least[a]) })
	var lines []string
	for _, name := range names[:min(20, len(names))] {
		lines = append(lines, fmt.Sprintf("%8v %s", least[name], name))
	}
	t.Errorf("the packages take %v to initialise, at most %v is allowed:\n%s", sum, maxInit, strings.Join(lines, "\n"))
}

func total(of map[string]time.Duration) (sum time.Duration) {
	for _, d := range of {
		sum += d
	}
	return sum
}

// traceStart starts the program once and keeps the minimum time of each package
// (GODEBUG=inittrace=1, see package runtime).
func traceStart(t *testing.T, program string, least map[string]time.Duration) {
	c := exec.Command(program, "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[0] != "init" {
			continue
		}
		ms, err := strconv.ParseFloat(f[4], 64)
		if err != nil {
			t.Fatalf("a line of the trace: %q", line)
		}
		took := time.Duration(ms * float64(time.Millisecond))
		if before, seen := least[f[1]]; !seen || took < before {
			least[f[1]] = took
		}
	}
	if len(least) == 0 {
		t.Fatalf("the program traced nothing:\n%s", out)
	}
}
