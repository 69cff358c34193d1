package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// workload is a typical task, with the number of its rounds.
type workload struct {
	name    string
	what    string // for the report
	dir     string // workspace, shared by the workloads of one fixture
	needs   []string
	command []string
	copies  int // started at once; 0 for one
	rounds  int
	prepare func(b *bench, dir string) error
	reset   func(dir string) error // before each run, unmeasured; nil for nothing
	check   func(dir string) error // after each run, that the work was done; nil: only the length of the output
	goals   []goal
}

// workloads lists them, the small ones first. A goal includes the start and the
// end of a run.
func (b *bench) workloads() []workload {
	files, n := 20000, b.options.rounds
	if b.options.quick {
		files = 2000
	}
	count := fmt.Sprint(files)
	loop := "i=0; while [ $i -lt 500 ]; do /usr/bin/true; i=$((i+1)); done"
	tree := func(b *bench, dir string) error { return b.makeRepository(dir, files) }
	search, work := []goal{{holdfast, 1.15}}, []goal{{unrecorded, 1.05}}
	return []workload{
		{name: start, what: "`true` in an empty directory", dir: "empty", needs: []string{"true"}, command: []string{"true"}, rounds: 5 * n, prepare: noFixture,
			goals: []goal{{holdfast, 1.5}, {unrecorded, 1.2}}},
		{name: atOnce, what: "50 runs of `true` at the same time in one directory", dir: "empty", needs: []string{"true"}, command: []string{"true"}, copies: 50, rounds: n, prepare: noFixture,
			goals: []goal{{holdfast, 1.5}}},
		{name: "500 execs", what: "a shell loop that runs `true` 500 times", dir: "empty", needs: []string{"sh"}, command: []string{"sh", "-c", loop}, rounds: n, prepare: noFixture,
			goals: []goal{{unrecorded, 1.10}, {holdfast, 1.25}}},
		{name: "python start", what: "`python3 -c 'import json'`", dir: "empty", needs: []string{"python3"}, command: []string{"python3", "-c", "import json"}, rounds: 3 * n, prepare: noFixture, goals: work},
		{name: "git status", what: "`git status` in a repository of " + count + " files", dir: "repo", needs: []string{"git"}, command: []string{"git", "status", "--porcelain"}, rounds: 3 * n, prepare: tree, goals: search},
		{name: "grep -r", what: "`grep -r` over " + count + " files", dir: "repo", needs: []string{"grep"}, command: []string{"grep", "-r", needle, "src"}, rounds: n, prepare: tree, goals: search},
		{name: "rg", what: "`rg` over " + count + " files", dir: "repo", needs: []string{"rg"}, command: []string{"rg", needle, "src"}, rounds: n, prepare: tree, goals: search},
		{name: "untar", what: "`tar -x` of " + count + " files", dir: "untar", needs: []string{"tar"}, command: []string{"tar", "-xf", "in.tar"}, rounds: max(1, n/3),
			prepare: func(b *bench, dir string) error { return b.makeArchive(dir, files) },
			reset:   moveAside("out"), check: madeFile(filepath.Join("out", treeFile(files-1))), goals: work},
		{name: "go build", what: "`go build` of 40 packages, warm cache, linked anew", dir: "go", needs: []string{"go"}, command: []string{"go", "build", "-o", "app", "."}, rounds: n,
			prepare: (*bench).makeModule, reset: removeBefore("app"), check: madeFile("app"), goals: work},
		{name: "npm ci", what: "`npm ci` of " + fmt.Sprint(b.npmPackages()) + " packages from the cache", dir: "npm", needs: []string{"npm", "node"},
			command: []string{"npm", "ci", "--offline", "--silent", "--no-audit", "--no-fund", "--no-update-notifier", "--logs-max=0"}, rounds: n,
			prepare: (*bench).makeNPM, reset: moveAside("node_modules"), check: madeFile("node_modules/" + npmName(b.npmPackages()-1) + "/package.json"), goals: work},
	}
}

func noFixture(*bench, string) error { return nil }

// removeBefore removes what an earlier run made.
func removeBefore(name string) func(string) error {
	return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
}

// moveAside moves what an earlier run made out of the way, until the bench ends. ext4
// does not reuse inodes that were freed in the last minutes (recently_deleted in
// fs/ext4/ialloc.c): if thousands of files were removed before each run, its
// search for other inodes would dominate the measurement.
func moveAside(name string) func(string) error {
	return func(dir string) error {
		to, err := os.MkdirTemp(filepath.Dir(dir), "aside-")
		if err != nil {
			return err
		}
		err = os.Rename(filepath.Join(dir, name), filepath.Join(to, name))
		if errors.Is(err, fs.ErrNotExist) {
			return os.Remove(to)
		}
		return err
	}
}

// madeFile checks that a run left something.
func madeFile(name string) func(string) error {
	return func(dir string) error {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("the work was not done: %w", err)
		} else if !fi.Mode().IsRegular() || fi.Size() == 0 {
			return fmt.Errorf("the work was not done: %s is not a file, or is empty", name)
		}
		return nil
	}
}
