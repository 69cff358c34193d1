// Command mutate measures whether the tests notice when a guard of the product is
// wrong. It negates guards one at a time, chosen at random, and runs the tests
// that could notice. The tree is never written: the changed file is an overlay of
// Go's build.
//
//	go run ./tools/mutate                        200 guards of all packages below
//	go run ./tools/mutate -seed 7 -n 60 -packages ./internal/policy/...
//	go run ./tools/mutate -near                  quicker: only tests that execute the guard
//	go run ./tools/mutate -list
//
// A changed guard can make the product kill processes or remove files that it
// should not. As root the tests run in a separate PID namespace, but use a
// machine that you can afford to lose. Do not change the tree meanwhile.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

const defaults = "./internal/policy/... ./internal/network/... ./internal/supervise/... ./internal/boundary/workspace/... " +
	"./internal/consent/... ./internal/floor/redact/... ./internal/record/audit/... ./internal/credentials/... ./internal/review/..."

// goal is the share of guards, in percent, whose negation the tests must notice.
const goal = 90

func main() {
	seed := flag.Uint64("seed", rand.Uint64N(1e6), "seed for choosing the guards")
	n := flag.Int("n", 200, "negate this many guards")
	packages := flag.String("packages", defaults, "packages to take guards from")
	near := flag.Bool("near", false, "run only the tests that execute the guard: faster, but it misses what tests notice in other processes and packages")
	list := flag.Bool("list", false, "list the guards and run nothing")
	flag.Parse()
	if err := run(os.Stdout, *seed, *n, strings.Fields(*packages), *near, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutate: error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, seed uint64, n int, packages []string, near, list bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, dirs, err := find(root, packages)
	if err != nil {
		return err
	}
	if list {
		for _, g := range all {
			fmt.Fprintln(out, g)
		}
		return nil
	}
	sample := choose(all, seed, n)
	fmt.Fprintf(out, "seed %d: %d of %d guards\n", seed, len(sample), len(all))
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	t := tester{root: root, work: work, dirs: dirs, near: near, programs: map[string]*program{}}
	var s score
	for i, g := range sample {
		start := time.Now()
		by, err := t.try(g)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d %s: %s (%.0fs)\n", i+1, g, s.count(g, by), time.Since(start).Seconds())
	}
	return s.report(out)
}

// choose returns n of the guards in an order that depends only on seed.
func choose(all []guard, seed uint64, n int) []guard {
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// tally counts the tried guards and those that were noticed.
type tally struct{ caught, tried int }

func (t tally) String() string {
	return fmt.Sprintf("%d of %d (%.1f %%)", t.caught, t.tried, 100*float64(t.caught)/float64(max(t.tried, 1)))
}

// score is the result of a run.
type score struct {
	all       tally
	telling   tally // without plain checks of an error
	survivors []guard
}

// count records that g was caught by the named test or event; it survived if "".
// It returns that as text. A guard whose negation does not compile is not
// counted.
func (s *score) count(g guard, by string) string {
	if by == uncompiled {
		return by
	}
	hit := 0
	if by != "" {
		hit = 1
	} else {
		s.survivors = append(s.survivors, g)
	}
	s.all = tally{s.all.caught + hit, s.all.tried + 1}
	if !g.plain() {
		s.telling = tally{s.telling.caught + hit, s.telling.tried + 1}
	}
	if by == "" {
		return "SURVIVED"
	}
	return "caught by " + by
}

// report prints the score and the survivors. It fails below the goal if a survivor
// has no reason.
func (s *score) report(out io.Writer) error {
	unexplained := 0
	for _, g := range s.survivors {
		reason := reason(g)
		if reason == "" {
			reason = "no reason known: write a test, or a row in tools/mutate/known.go"
			unexplained++
		}
		fmt.Fprintf(out, "survivor %s: %s\n", g, reason)
	}
	fmt.Fprintf(out, "caught %v; without plain checks of err: %v; survivors without a reason: %d\n", s.all, s.telling, unexplained)
	if s.all.caught*100 < goal*s.all.tried && unexplained > 0 {
		return fmt.Errorf("caught %v, the goal is %d %%", s.all, goal)
	}
	return nil
}
