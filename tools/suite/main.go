// Command suite runs every test of the module: as the user who started it and, if
// that is root, a second time as an ordinary user. Go's own test command cannot
// do the second: the ordinary user may have no network, no module cache, and no
// permission to read root's clone. So the test programs are built once, and the
// second pass runs them in a copy of the tree. As many programs run at once as
// there are processors. What has passed and cannot give another result today is
// not run again, unless CI is set.
//
// `make test` runs it.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	s := suite{out: os.Stdout, verbose: os.Getenv("CI") != "", timingBound: timingBound}
	pattern := ""
	flag.BoolVar(&s.verbose, "v", s.verbose, "print a line for every test (default where CI is set)")
	flag.StringVar(&pattern, "packages", pattern, "run the packages whose import path matches this `regexp` (default all; with -race those that start a goroutine)")
	flag.StringVar(&s.run, "run", "", "run the tests that match this `regexp`")
	flag.BoolVar(&s.race, "race", s.race, "build with the race detector, which needs a C compiler, and run as this user alone")
	flag.BoolVar(&s.quick, "quick", s.quick, "run only tests that need no boundary and do not depend on the user, as this user alone")
	flag.IntVar(&s.lanes, "lanes", max(2, runtime.NumCPU()), "run this many packages at once")
	flag.BoolVar(&s.fresh, "fresh", s.verbose, "also run what passed before and has not changed (default where CI is set)")
	flag.DurationVar(&s.limit, "timeout", 25*time.Minute, "give up on a package after this long")
	flag.Parse()
	restoreSignals()
	var err error
	if s.packages, err = regexp.Compile(pattern); err == nil {
		err = s.runPasses()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite: error:", err)
		os.Exit(1)
	}
}

// restoreSignals restores signals for the tests that our caller ignores, as nohup and
// shells without job control do: a handled signal is reset to its default when we
// execute a program (execve(2)), an ignored one stays ignored.
func restoreSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// suite is one run of everything.
type suite struct {
	out      io.Writer  // for people, and for programs that count tests
	printing sync.Mutex // guards out, and what is found so far
	verbose  bool
	race     bool // build with the race detector
	quick    bool // only what runs as one user
	fresh    bool // use no earlier results
	lanes    int  // packages at the same time
	packages *regexp.Regexp
	run      string        // pattern of tests; "" for all
	limit    time.Duration // for the tests of one package
	root     string        // of the module
	work     string        // private directory, readable by all users, removed at the end
	programs []program
	results  results  // earlier ones
	skipped  []string // in all passes, with the reason

	timingBound map[string]string // tests that are tried again, and why
}

// program is the test binary of one package.
type program struct {
	name string // import path
	dir  string // of the package, relative to the module's root
	path string // absolute
}

// userIndependent reports whether a program need not be repeated as another user.
func (p program) userIndependent() bool { return userIndependent.MatchString(p.name) }

func (s *suite) runPasses() (err error) {
	if s.root, err = os.Getwd(); err != nil {
		return err
	}
	if s.work, err = os.MkdirTemp("", "suite-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.work)
	if err := os.Chmod(s.work, 0o755); err != nil {
		return err
	}
	if err := s.build(); err != nil {
		return err
	}
	if !s.fresh {
		if s.results, err = openResults(s.root, s.work); err != nil {
			return err
		}
	}
	first := pass{title: "as " + currentUser(), root: s.root, env: os.Environ()}
	if s.race {
		// By default each program waits a second at its end for late races.
		first.env, first.unraced = append(first.env, "GORACE=atexit_sleep_ms=50", "HOLDFAST_TEST_RACE=1"), unraced
	}
	passes := []pass{first}
	if os.Geteuid() == 0 && !s.race && !s.quick {
		ordinary, err := s.ordinaryPass()
		if err != nil {
			return err
		}
		passes = append(passes, ordinary)
		for i := range passes {
			passes[i].env = append(passes[i].env, passVariables()...)
		}
	}
	var problems []string
	for _, p := range passes {
		problems = append(problems, s.pass(p)...)
	}
	for _, name := range s.skipped {
		fmt.Fprintln(s.out, "skipped", name)
	}
	if len(problems) > 0 {
		return problemsError(problems)
	}
	return nil
}

// passVariables are the variables for tests that run in two passes (internal/testenv):
// that they do, and the number of the build, which stays the same past midnight.
func passVariables() []string {
	build := cmp.Or(os.Getenv("HOLDFAST_TEST_BUILD"), time.Now().UTC().Format(time.DateOnly))
	return []string{"HOLDFAST_TEST_TWICE=1", "HOLDFAST_TEST_BUILD=" + build}
}

// problemsError reports everything that was wrong, and at the very end again in one line
// each, because readers look there, and some see nothing else.
func problemsError(problems []string) error {
	const widest = 250 // bytes
	var short []string
	for _, p := range problems {
		line, _, _ := strings.Cut(p, "\n")
		short = append(short, line[:min(len(line), widest)])
	}
	return fmt.Errorf("%d problems:\n\t%s\nin short:\n\t%s", len(problems), strings.Join(problems, "\n\t"), strings.Join(short, "\n\t"))
}

func currentUser() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "an ordinary user"
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
