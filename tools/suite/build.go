package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// buildDir is where programs are built, below the module's root: unchanged ones
// there are not linked again.
const buildDir = "bin/suite"

// shipped are the programs under test and those that tests start beside them:
// testenv.Binary and the functions beside it find them in one directory.
var shipped = []string{"holdfast", "holdfast-prove", "ablated", "prober"}

// build compiles the test programs and the programs under test, all with the same
// flags, so that each package is compiled only once.
func (s *suite) build() error {
	start := time.Now()
	if err := s.list(); err != nil {
		return err
	}
	static := []string{"CGO_ENABLED=0"}
	dir := filepath.Join(s.root, buildDir)
	for _, args := range [][]string{
		{"-o", dir + "/", "./cmd/holdfast", "./cmd/holdfast-prove", "./internal/run/ablated"},
		{"-ldflags=-s -w", "-o", dir + "/prober", "./internal/prove/inside/prober"},
	} {
		if _, err := output(s.root, static, append([]string{"build", "-trimpath", "-buildvcs=false"}, args...)...); err != nil {
			return err
		}
	}
	for _, name := range shipped {
		if err := programs.Copy(filepath.Join(dir, name), filepath.Join(s.work, name)); err != nil {
			return err
		}
	}
	env, flags := static, []string{"test", "-c", "-trimpath", "-ldflags=-w"}
	if s.race {
		env, flags, dir = []string{"CGO_ENABLED=1"}, append(flags, "-race"), filepath.Join(dir, "race")
	}
	for i, batch := range batches(s.programs) {
		args := append(slices.Clone(flags), "-o", fmt.Sprintf("%s/%d/", dir, i))
		for _, p := range batch {
			p.path = fmt.Sprintf("%s/%d/%s.test", dir, i, path.Base(p.name))
			args = append(args, p.name)
		}
		if _, err := output(s.root, env, args...); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "== built %d test programs with %s in %s\n", len(s.programs), runtime.Version(), round(time.Since(start)))
	return nil
}

// list finds the packages with tests that must run.
func (s *suite) list() error {
	list, err := output(s.root, nil, "list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}", "./...")
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		name, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !s.packages.MatchString(name) {
			continue
		}
		if s.race && s.packages.String() == "" {
			if starts, err := startsGoroutine(dir); err != nil {
				return err
			} else if !starts {
				continue
			}
		}
		rel, err := filepath.Rel(s.root, dir)
		if err != nil {
			return err
		}
		if p := (program{name: name, dir: rel}); !s.quick || p.userIndependent() {
			s.programs = append(s.programs, p)
		}
	}
	if len(s.programs) == 0 {
		return fmt.Errorf("no package with tests matches %q", s.packages)
	}
	return nil
}

// batches divides programs so that no two in one batch have the same base name,
// because `go test -c` writes each batch to a directory.
func batches(programs []program) (all [][]*program) {
	for i := range programs {
		p := &programs[i]
		k := slices.IndexFunc(all, func(batch []*program) bool {
			return !slices.ContainsFunc(batch, func(o *program) bool { return path.Base(o.name) == path.Base(p.name) })
		})
		if k < 0 {
			all, k = append(all, nil), len(all)
		}
		all[k] = append(all[k], p)
	}
	return all
}

// copyTestProgram copies a test program to where every user may execute it.
func (s *suite) copyTestProgram(prog program) (program, error) {
	to := filepath.Join(s.work, strings.ReplaceAll(prog.dir, "/", "-")+".test")
	if _, err := os.Stat(to); err != nil {
		if err := programs.Copy(prog.path, to); err != nil {
			return prog, err
		}
	}
	prog.path = to
	return prog, nil
}

func (s *suite) binary() string { return filepath.Join(s.work, "holdfast") }
