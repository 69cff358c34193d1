//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// small plays a row in a world inside this one.
func (s *Session) small(t Target, r Row) Result {
	n := Runner{Prober: s.World.origin, Dir: s.World.B}
	return n.Play(s.ctx, t, r)
}

// faulty is a target that modifies a command before running it.
type faulty struct {
	Target
	before func(argv []string) []string
	late   bool // it runs until its time is over, whatever it has printed
	heard  func(Observation)
}

func (f faulty) Run(ctx context.Context, w *World, c Command, argv []string) Observation {
	if f.before != nil {
		argv = f.before(slices.Clone(argv))
	}
	var key []byte
	for _, a := range argv {
		if path, ok := strings.CutPrefix(a, "key="); ok {
			key, _ = os.ReadFile(path) // it is gone once the prober has begun
		}
	}
	o := f.Target.Run(ctx, w, c, argv)
	if f.late {
		<-ctx.Done()
	}
	if f.heard != nil {
		o.Nonce, o.Key = argv[1], key
		f.heard(o)
	}
	return o
}

// sample is a row that a sandbox holds, to be played with faults.
var sample = Row{ID: "HST-014", Kind: Sandbox, Action: "both", Args: []string{"path=O/canary\nH/.ssh/id_probe"}}

// faults are the ways in which a run tries nothing.
func faults() map[string]faulty {
	word := func(i int, by string) func([]string) []string {
		return func(argv []string) []string { argv[i] = by; return argv }
	}
	return map[string]faulty{
		"the prober is missing":       {before: word(0, "/nonexistent/prober")},
		"the prober is no program":    {before: word(0, "/dev/null")},
		"the action is unknown":       {before: word(2, "no-such-action")},
		"the action tries nothing":    {before: word(2, "note-nothing")},
		"another program answers":     {before: func([]string) []string { return []string{"/bin/true"} }},
		"the nonce is of another run": {before: word(1, "0123456789abcdef01234567")},
		"it is out of time":           {late: true},
	}
}

// distortions are ways to change what a run has printed.
func distortions() map[string]func(*Observation) {
	printing := func(f func(string) string) func(*Observation) {
		return func(o *Observation) { o.Stdout = []byte(f(string(o.Stdout))) }
	}
	return map[string]func(*Observation){
		"it is lost":     printing(func(string) string { return "" }),
		"its end is cut": printing(func(s string) string { return s[:len(s)/2] }),
		"a line in the middle is lost": printing(func(s string) string {
			l := strings.SplitAfter(s, "\n")
			return strings.Join(slices.Delete(l, 1, 2), "")
		}),
		"a shell echoes it":                   printing(func(s string) string { return "+ " + strings.ReplaceAll(s, "\n", "\n+ ") }),
		"every error has become another":      printing(func(s string) string { return strings.ReplaceAll(s, `"errno":"E`, `"errno":"EX`) }),
		"every success has become an error":   printing(func(s string) string { return strings.ReplaceAll(s, `"done":true`, `"errno":"EPERM"`) }),
		"it prints verdicts instead":          printing(func(string) string { return "PASS\nverdict: held\n" }),
		"it was killed, and nothing was said": func(o *Observation) { o.Stdout, o.Exit = nil, 137 },
		"there is a status and nothing else":  func(o *Observation) { o.Stdout, o.Exit = nil, 127 },
		"there is too much of it":             func(o *Observation) { o.Flooded = true },
		"it could not be started":             func(o *Observation) { o.Err = errors.New("no such file or directory") },
	}
}

// nothingTried demands that each fault is noticed: inconclusive, or an escape
// that happened before it, and never held. An empty list of rows proves nothing
// either.
func nothingTried(s *Session) {
	complain := func(format string, a ...any) {
		s.World.seen = append(s.World.seen, finding{fmt.Sprintf(format, a...)})
	}
	for name, f := range faults() {
		f.Target = s.Target
		r := sample
		if f.late {
			r.Timeout = 300 * time.Millisecond
		}
		if res := s.small(f, r); res.Verdict == Held || res.Verdict == Residual {
			complain("%s, and the verdict was %v", name, res.Verdict)
		}
	}
	var truth Observation
	s.small(faulty{Target: s.Target, heard: func(o Observation) { truth = o }}, sample)
	for name, lie := range distortions() {
		o := truth
		lie(&o)
		if v, _ := judge(sample, []Observation{o}, nil); v == Held || v == Residual {
			complain("of what was said %s, and the verdict was %v", name, v)
		}
	}
	n := Runner{Prober: s.World.origin, Dir: s.World.B}
	if res := n.Run(s.ctx, s.Target, nil); len(res) != 1 || len(Unheld(res)) > 0 {
		complain("an empty list gave %d results", len(res))
	}
	s.Run(Command{})
}

// throughO are the rows of miniature that a hole at O lets through, and behindH
// those that it does not help.
var throughO, behindH = []string{"the canary", "through a link", "a new file", "a sub-agent"}, []string{"a key"}

// mutants plays the small matrix without a sandbox, against the target as it is,
// and against it with one hole that the row asks for.
func mutants(s *Session) {
	complain := func(format string, a ...any) {
		s.World.seen = append(s.World.seen, finding{fmt.Sprintf(format, a...)})
	}
	for _, r := range miniature() {
		if res := s.small(None{}, r); res.Verdict != Escaped {
			complain("without a sandbox, %s is %v: %s", r.ID, res.Verdict, res.Reason)
		}
		whole := s.small(s.Target, r)
		r.Options.Write = []string{"O"}
		holed := s.small(s.Target, r)
		switch {
		case whole.Verdict != Held || holed.Missing:
			// It holds nothing, or cannot be given a hole.
		case slices.Contains(throughO, r.ID) && holed.Verdict != Escaped:
			complain("with a hole, %s is %v: %s", r.ID, holed.Verdict, holed.Reason)
		case slices.Contains(behindH, r.ID) && holed.Verdict != Held:
			complain("with a hole elsewhere, %s is %v: %s", r.ID, holed.Verdict, holed.Reason)
		}
	}
	if _, err := os.Stat(s.World.origin); err != nil {
		s.Fail(err)
	}
	s.Run(Command{})
}

// versionsChanged runs a careful version of an agent first, and then a careless one.
func versionsChanged(s *Session) {
	s.Run(Command{Action: "agent-version", Args: []string{"version=1"}})
	if found := s.World.changes(); len(found) > 0 {
		s.Fail(fmt.Errorf("the careful version was not: %s", found[0]))
	}
	s.Run(Command{Action: "agent-version", Args: []string{"version=2"}})
}

// miniature returns rows for a small matrix: quick, of several classes, each
// escaping in its own way.
func miniature() []Row {
	read := func(id, path string) Row {
		return Row{ID: id, Kind: Sandbox, Action: "read", Args: []string{"path=" + path}}
	}
	write := func(id, path string) Row {
		return Row{ID: id, Kind: Sandbox, Action: "overwrite", Args: []string{"path=" + path}}
	}
	link := write("through a link", "W/l")
	link.Links = map[string]string{"W/l": "O/canary"}
	file := Row{ID: "a new file", Kind: Sandbox, Action: "create", Args: []string{"path=O/x"}, Absent: []string{"O/x"}}
	sub := Row{ID: "a sub-agent", Kind: Sandbox, Action: "agent-spawn"}
	return []Row{read("a key", "H/.ssh/id_probe"), write("the canary", "O/canary"), link, file, sub}
}
