package main

import (
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/consent/rules"
	"holdfast.dev/holdfast/internal/floor/event"
)

// gatePart is the name for -only of the part about rules of consent.
const gatePart = "gate"

// gateLimit is the limit of what a hundred rules may add to an execution, in
// microseconds of processor time.
const gateLimit = 20

// gateRules are a hundred rules of one kind. The list begins with the easy kinds.
// The goal is the same for all: a kind that misses it is reported as missed.
type gateRules struct {
	name, when string // when has a placeholder for the number of the rule
	set        bool   // use the shipped sets instead
}

var gateRuleSorts = []gateRules{
	{name: "the shipped sets", set: true},
	{name: "100, each of a program", when: `program == "tool%d" && "deploy" in args`},
	{name: "100, all of git", when: `program == "git" && "word%d" in args`},
	{name: "100 as in the first example", when: `action == "exec" && argv[0].endsWith("/tool%d") && "push" in argv`},
	{name: "100 of a word anywhere", when: `"word%d" in argv`},
	{name: "100 of the beginning of any word", when: `action == "exec" && argv.exists(a, a.startsWith("--word%d"))`},
	{name: "100 patterns", when: `action == "exec" && argv[0].matches("tool%d$")`},
	{name: "100 that only the evaluator tells", when: `action == "exec" && argv.filter(a, a == "word%d").size() > 0`},
}

// gateExecution is an execution that is compared with the rules.
type gateExecution struct {
	name string
	a    event.Attempt
}

func gateExecutions() []gateExecution {
	exec := func(executable string, argv ...string) event.Attempt {
		return event.Attempt{Kind: event.KindExec, Path: executable, ParentExecutable: "/usr/bin/dash",
			Process: event.Process{Executable: executable, Argv: argv, Cwd: "/home/you/project"}}
	}
	script := exec("/usr/bin/node", "npm", "run", "build")
	script.Path, script.Script = "/usr/bin/npm", "/usr/lib/node_modules/npm/bin/npm-cli.js"
	return []gateExecution{
		{"make", exec("/usr/bin/make", "make", "-j4", "all")},
		{"git status", exec("/usr/bin/git", "git", "-C", "x", "status", "--porcelain")},
		{"a script of node", script},
		{"a compiler", exec("/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "cc1", "-quiet", "-I", "x", "-o", "y", "a.c")},
		{"a shell", exec("/usr/bin/dash", "sh", "-c", "git status")},
	}
}

// gates measures what rules of consent add to an execution.
func (b *bench) gates() (*section, error) {
	s := b.newSection(gatePart, "Gate", nil)
	s.intro = []string{"Microseconds of processor time that one execution costs that no rule is about, the median of five; everything is compiled before. The comparison alone: that the supervisor looks at an execution at all is in the part about the record."}
	b.logf("gate: rules and executions")
	header := []string{"rules"}
	for _, e := range gateExecutions() {
		header = append(header, e.name)
	}
	t := table{header: header}
	for _, sort := range gateRuleSorts {
		g, err := sort.gates()
		if err != nil {
			return nil, err
		}
		row, most := []string{sort.name}, 0.0
		for _, e := range gateExecutions() {
			found := b.judgingTime(g, e.a)
			most = math.Max(most, found)
			row = append(row, fmt.Sprintf("%.1f", found))
		}
		t.add(row...)
		s.verdicts = append(s.verdicts, judge("gate: "+sort.name+", µs an exec", gateLimit, most, "%.1f"))
	}
	s.tables = []captioned{{caption: "Rules and executions", table: t}}
	s.load[1] = load()
	return s, nil
}

func (r gateRules) gates() (*rules.Matcher, error) {
	var ask []rules.Rule
	for i := range 100 {
		if r.set {
			break
		}
		ask = append(ask, rules.Rule{When: fmt.Sprintf(r.when, i)})
	}
	for _, set := range rules.Sets() {
		if r.set {
			ask = append(ask, rules.Rule{Set: set.Name})
		}
	}
	g, err := rules.New(ask, nil, rules.Host{})
	if err != nil {
		return nil, fmt.Errorf("compiling the rules: %w", err)
	}
	return g, nil
}

// judgingTime is the median of five measurements, in microseconds of processor time.
func (b *bench) judgingTime(g *rules.Matcher, a event.Attempt) float64 {
	times := 2000
	if b.options.quick {
		times = 20
	}
	g.Judge(a)
	var all []float64
	for range 5 {
		before := ownTime()
		for range times {
			g.Judge(a)
		}
		all = append(all, float64(ownTime()-before)/float64(time.Microsecond)/float64(times))
	}
	slices.Sort(all)
	return all[2]
}

// ownTime is the processor time of this process; 0 if it is unknown.
func ownTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
