//go:build linux

package rules

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestHugeCommandLines judges a command line of a quarter of what the kernel
// takes, and one of an eighth of that.
func TestHugeCommandLines(t *testing.T) {
	const short = 64 << 10 // bytes
	g := everySet(t)
	lines := map[string]func(size int) []string{
		"many options":           func(size int) []string { return slices.Repeat([]string{"--x"}, size/12) },
		"many values":            func(size int) []string { return slices.Repeat([]string{"--x", "y"}, size/22) },
		"many letters":           func(size int) []string { return slices.Repeat([]string{"-ex"}, size/12) },
		"many empty words":       func(size int) []string { return slices.Repeat([]string{""}, size/9) },
		"one long word":          func(size int) []string { return []string{strings.Repeat("x", size)} },
		"one long option":        func(size int) []string { return []string{"-" + strings.Repeat("o", size)} },
		"one long option of two": func(size int) []string { return []string{"--" + strings.Repeat("x", size) + "=y"} },
		"a loader in a loader":   func(size int) []string { return slices.Repeat([]string{"ld.so"}, size/14) },
		"a box in a box":         func(size int) []string { return slices.Repeat([]string{"busybox"}, size/16) },
		"a module of a module":   func(size int) []string { return slices.Repeat([]string{"-m", "python"}, size/26) },
	}
	for _, program := range []string{"git", "npm", "python3", "bash", "node", "perl", "ld.so", "busybox", "corepack", "docker"} {
		for name, words := range lines {
			g.Judge(execution("/usr/bin/"+program, append([]string{program}, words(short)...)...)) // compiling at first use is not measured
			testenv.TakesItsLength(t, program+" with "+name, short, func(size int) func() {
				a := execution("/usr/bin/"+program, append([]string{program}, words(size)...)...)
				return func() { g.Judge(a) }
			})
		}
	}
}
