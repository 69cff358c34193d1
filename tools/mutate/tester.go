package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	module     = "holdfast.dev/holdfast/"
	uncompiled = "does not compile: not counted"
	patience   = 5 * time.Minute // for the tests of an importer, and for one unchanged test
)

// importers are packages whose tests are tried if those of the package itself
// notice nothing: packages that rely on it and take less than half a minute.
var importers = map[string][]string{
	"internal/policy":             {"internal/prove/exposure", "internal/credentials", "internal/run"},
	"internal/boundary/workspace": {"internal/review", "internal/run"},
	"internal/review":             {"internal/run"},
	"internal/floor/redact":       {"internal/credentials", "internal/consent", "internal/supervise"},
	"internal/consent":            {"internal/credentials", "internal/agents/gateway", "internal/run"},
	"internal/consent/rules":      {"internal/policy", "internal/run"},
	"internal/record/audit":       {"internal/detect/alert", "internal/run"},
	"internal/credentials":        {"internal/run"},
	"internal/network":            {"internal/run"},
	"internal/supervise":          {"internal/run"},
}

// tester runs tests of mutants.
type tester struct {
	root, work string
	near       bool                // only tests that execute the guard
	dirs       map[string]string   // of the packages, by import path
	programs   map[string]*program // by import path
}

// program is what the tests of one unchanged package cover.
type program struct {
	tests   []string
	covered map[string][]block       // by test
	took    map[string]time.Duration // by test
}

// block is a part of a file that a test executed.
type block struct {
	file        string // import path and name
	first, last int    // lines
}

// try negates g and returns the name of the test that noticed; "" for none.
func (t *tester) try(g guard) (string, error) {
	p, err := t.program(g.pkg)
	if err != nil {
		return "", err
	}
	overlay, err := t.overlay(g)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(t.work, "mutant.test")
	if out, err := t.build(g.pkg, binary, overlay); err != nil {
		if bytes.Contains(out, []byte(g.file)) || bytes.Contains(out, []byte(filepath.Base(g.file)+":")) {
			return uncompiled, nil
		}
		return "", fmt.Errorf("building %s: %w\n%s", g.pkg, err, out)
	}
	// The tests that execute the guard come first. The others follow because a
	// test may execute it in a process that it starts.
	near := p.executing(g)
	if len(near) > 0 {
		if by := t.test(t.dirs[g.pkg], overlay, binary, p.limit(near), "-test.run", exactly(near)); by != "" || t.near {
			return by, nil
		}
	}
	if by := t.test(t.dirs[g.pkg], overlay, binary, p.limit(p.tests), "-test.skip", exactly(near)); by != "" || t.near {
		return by, nil
	}
	for _, name := range importers[strings.TrimPrefix(g.pkg, module)] {
		if out, err := t.build(module+name, binary, overlay); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		if by := t.test(filepath.Join(t.root, name), overlay, binary, patience); by != "" {
			return by + " of " + name, nil
		}
	}
	return "", nil
}

// overlay writes the file with g negated, and returns the flag that makes Go
// build with it.
func (t *tester) overlay(g guard) (string, error) {
	path := filepath.Join(t.root, g.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	changed, table := filepath.Join(t.work, "mutant.go"), filepath.Join(t.work, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	return "-overlay=" + table, errors.Join(os.WriteFile(changed, negate(source, g), 0o644), os.WriteFile(table, text, 0o644))
}

// build makes the test program of a package. Programs that it builds itself use
// the same overlay, through GOFLAGS.
func (t *tester) build(pkg, binary, goflags string, flags ...string) ([]byte, error) {
	c := exec.Command("go", append(append([]string{"test", "-c", "-o", binary}, flags...), pkg)...)
	c.Dir, c.Env = t.root, append(os.Environ(), "GOFLAGS="+goflags)
	return c.CombinedOutput()
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// test runs a test program and returns what failed; "" for nothing. A test must
// fail twice: a failure caused by the load of the machine caught nothing.
func (t *tester) test(dir, goflags, binary string, limit time.Duration, args ...string) string {
	for range 3 {
		out, err := t.execute(dir, goflags, binary, limit, append([]string{"-test.failfast"}, args...)...)
		if err == nil {
			break
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return "a timeout"
		}
		m := failed.FindSubmatch(out)
		if m == nil {
			return "a crash"
		}
		name := string(m[1])
		if _, err := t.execute(dir, goflags, binary, limit, "-test.run", exactly([]string{name})); err != nil {
			return name
		}
	}
	return ""
}

// execute runs a test program. As root it gets a PID namespace: a mutant may send
// signals to unrelated processes, and the end of the namespace kills everything
// that is left.
func (t *tester) execute(dir, goflags, binary string, limit time.Duration, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	line := append([]string{binary}, args...)
	if os.Geteuid() == 0 {
		line = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", `"$@"; exit $?`, "sh"}, line...)
	}
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS="+goflags)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second // an orphan of a test may hold the pipe
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return out, err
}

// program runs the tests of an unchanged package one by one. They must pass: a
// test that always fails catches everything.
func (t *tester) program(pkg string) (*program, error) {
	if p := t.programs[pkg]; p != nil {
		return p, nil
	}
	p := &program{covered: map[string][]block{}, took: map[string]time.Duration{}}
	t.programs[pkg] = p
	binary, profile := filepath.Join(t.work, "covered.test"), filepath.Join(t.work, "profile")
	if out, err := t.build(pkg, binary, "", "-cover"); err != nil {
		return nil, fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	out, err := t.execute(t.dirs[pkg], "", binary, patience, "-test.list", "^(Test|Fuzz|Example)")
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w\n%s", pkg, err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		start := time.Now()
		out, err := t.execute(t.dirs[pkg], "", binary, patience, "-test.run", exactly([]string{name}), "-test.coverprofile", profile)
		if err != nil {
			return nil, fmt.Errorf("%s of %s fails on the unchanged tree: %w\n%s", name, pkg, err, out)
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		p.tests = append(p.tests, name)
		p.covered[name] = blocks(string(text))
		p.took[name] = time.Since(start)
	}
	return p, nil
}

// limit returns how long these tests may take with a mutant.
func (p *program) limit(names []string) time.Duration {
	limit := 20 * time.Second
	for _, name := range names {
		limit += 3 * p.took[name]
	}
	return limit
}

// blocks reads the executed blocks from a coverage profile, whose lines are
// FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func blocks(profile string) (all []block) {
	line := regexp.MustCompile(`(?m)^(.+):(\d+)\.\d+,(\d+)\.\d+ \d+ [1-9]\d*$`)
	for _, m := range line.FindAllStringSubmatch(profile, -1) {
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[3])
		all = append(all, block{m[1], first, last})
	}
	return all
}

// executing returns the tests that execute the line of g.
func (p *program) executing(g guard) (near []string) {
	for _, name := range p.tests {
		for _, b := range p.covered[name] {
			if b.file == module+g.file && b.first <= g.reached && g.reached <= b.last {
				near = append(near, name)
				break
			}
		}
	}
	return near
}

// exactly returns a pattern that matches only these tests.
func exactly(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
