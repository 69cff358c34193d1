package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// newUserPath runs the tests that play a new user's first hour, and reports what
// they have found. The tests judge for themselves what may be missed today.
func (b *bench) newUserPath() (*section, error) {
	s := b.newSection(pathPart, "A new user's path", [][]string{{"git", "--version"}, {"node", "--version"}, {"npm", "--version"}, {"tmux", "-V"}})
	s.intro = pathIntro
	if os.Geteuid() != 0 {
		s.absent = "it must be started by root"
		return s, nil
	}
	dir := filepath.Join(b.dir, "path")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory for the figures: %w", err)
	}
	cmd := exec.CommandContext(b.ctx, "go", "test", "-count=1", "-timeout=90m", "-run", "^TestRoot(NewUser|FirstActions)$", "./internal/testenv/realtest")
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "HOLDFAST_TEST_FIGURES="+dir)
	out, err := cmd.CombinedOutput()
	if b.ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	if err != nil {
		var failed []string
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "--- FAIL") || strings.Contains(line, "missed: ") || strings.Contains(line, "is reached now") {
				failed = append(failed, strings.TrimSpace(line))
			}
		}
		s.fail("the tests: %v: %s", err, strings.Join(failed, "; "))
	}
	f := &pathFigures{}
	if err := errors.Join(readFigures(filepath.Join(dir, "agents.json"), &f.agents), readFigures(filepath.Join(dir, "sandboxes.json"), &f.sandboxes)); err != nil {
		return nil, err
	}
	s.verdicts, s.tables, s.load[1] = f.verdicts(), f.tables(), load()
	return s, nil
}

// readFigures reads what a test has written; a test that failed early has not.
func readFigures(path string, into any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("reading the figures: %w", err)
	}
	return nil
}
