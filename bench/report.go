package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// report is all that is known at the end.
type report struct {
	quick      bool // small inputs: nothing of it may be quoted
	partial    bool // one workload alone
	date       time.Time
	machine    string
	versions   []string
	user       string
	loadBefore string
	loadAfter  string
	runc       string // why its goal is open
	cpu        cpuMeter
	outcomes   []outcome
	memories   []memory
	egress     *egress // nil when it was not asked for
	sections   []*section
}

// failures counts the workloads that could not be measured though they should.
func (r *report) failures() (n int) {
	for _, o := range r.outcomes {
		if o.err != nil {
			n++
		}
	}
	if r.egress != nil {
		n += len(r.egress.failed)
	}
	for _, s := range r.sections {
		n += len(s.failed)
	}
	return n
}

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Speed and memory\n\nWritten by `go run ./bench`; do not edit (reasons of missed goals belong into bench/notes.go).\n\n")
	if r.quick {
		b.WriteString("**A quick run with small inputs and few rounds: it shows that the programs work, and its figures mean nothing.**\n\n")
	}
	fmt.Fprintf(&b, "- Machine: %s\n- Load before and after: %s, %s\n- Versions: %s\n- Everything ran as %s, %s.\n- Contestants in turn within each round. Values are medians, ratios are medians of the ratios of one round each, with the 10th and 90th percentile.\n- %s\n\n",
		r.machine, r.loadBefore, r.loadAfter, strings.Join(r.versions, "; "), r.user, r.date.Format("2006-01-02 15:04 MST"), r.cpu.found)
	b.WriteString("## Goals\n\n")
	b.WriteString(r.goals())
	b.WriteString("\n## Wall time\n\n")
	b.WriteString(r.walls())
	b.WriteString("\n## Processor time of the whole tree\n\n")
	b.WriteString(r.cpus())
	if len(r.memories) > 0 {
		b.WriteString("\n## Memory\n\nOf an idle run of `sleep`. The supervisor's peak is over the whole run, its start and its end.\n\n")
		b.WriteString(r.memory())
	}
	b.WriteString("\n## Remarks\n\n")
	for _, s := range remarks {
		b.WriteString("- " + s + "\n")
	}
	b.WriteString("- " + r.runc + "\n")
	if r.egress != nil {
		b.WriteString(r.egress.markdown())
	}
	for _, s := range r.sections {
		b.WriteString(s.markdown())
	}
	return b.String()
}

// goals is the table of goals, the reasons of those missed, and what was not
// measured.
func (r *report) goals() string {
	t := table{header: []string{"goal", "limit", "found", ""}}
	reasons := ""
	for _, v := range r.verdicts() {
		t.add(v.goal, v.limit, v.found, v.status)
		if v.status == missed {
			reasons += "- **" + v.goal + "**: " + noteOf(v.goal) + "\n"
		}
	}
	for _, o := range r.outcomes {
		if o.absent != "" {
			reasons += "- " + o.name + " was not measured: " + o.absent + ".\n"
		}
		if o.err != nil {
			reasons += "- " + o.name + " FAILED: " + strings.Join(strings.Fields(o.err.Error()), " ") + "\n"
		}
	}
	if reasons != "" {
		reasons = "\n" + reasons
	}
	return t.String() + reasons
}

// noteOf is why a goal is missed.
func noteOf(goal string) string {
	if why, ok := notes[goal]; ok {
		return why
	}
	return "the reason has not been looked for yet."
}

func (r *report) walls() string {
	t := table{header: []string{"workload", "rounds", "bare ms", "bwrap ms", "holdfast ms", "× bare", "× bwrap"}}
	for _, o := range r.outcomes {
		if !o.measured() {
			continue
		}
		of := func(name string) string { return number(spreadOf(walls(o.samples[name])).median) }
		t.add(o.what, fmt.Sprint(len(o.samples[holdfast])), of(bare), of(bwrap), of(holdfast), o.wall(bare).String(), o.wall(bwrap).String())
	}
	return t.String()
}

func (r *report) cpus() string {
	if !r.cpu.trust[holdfast] {
		return "Not measured: the count misses a part of the tree. Run this as root, or where control groups may be made.\n"
	}
	launch := r.launch()
	t := table{header: []string{"workload", "bare ms", "bwrap ms", "holdfast ms", "× bare", "× bwrap", "running alone, × bare"}}
	for _, o := range r.outcomes {
		if !o.measured() {
			continue
		}
		of := func(name string) string { return number(spreadOf(cpus(o.samples[name])).median) }
		alone := "–"
		if o.name != start && o.name != atOnce && !math.IsNaN(launch) {
			alone = o.cpuRunning(launch).String()
		}
		other, ratio := of(bwrap), o.cpu(bwrap).String()
		if !r.cpu.trust[bwrap] {
			other, ratio = "–", "–"
		}
		t.add(o.what, of(bare), other, of(holdfast), o.cpu(bare).String(), ratio, alone)
	}
	return t.String()
}

// launch is the processor time in ms that a start of `true` takes more under
// holdfast than bare; NaN when that was not measured.
func (r *report) launch() float64 {
	for _, o := range r.outcomes {
		if o.name == start && o.measured() {
			return spreadOf(cpus(o.samples[holdfast])).median - spreadOf(cpus(o.samples[bare])).median
		}
	}
	return math.NaN()
}

func (r *report) memory() string {
	t := table{header: []string{"", "workspace", "first process, peak KiB", "processes around the command", "their PSS, KiB", "their private, KiB"}}
	for _, m := range r.memories {
		pss, private := kib(m.pss), kib(m.private)
		if m.unreadable != nil {
			pss, private = "not readable for this user", "–"
		}
		t.add(m.contestant, m.what, kib(m.supervisor), fmt.Sprint(m.processes), pss, private)
	}
	return t.String()
}
