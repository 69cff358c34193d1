package main

// goal is how long a command may take in one way, as a multiple of its wall time
// in bubblewrap.
type goal struct {
	way   string
	limit float64
}

// outcome is the result of one workload.
type outcome struct {
	name    string
	what    string
	goals   []goal
	samples map[string][]sample // by contestant; round i of one belongs to round i of the others
	absent  string              // why it was not measured although nothing failed; "" if it was
	err     error               // why it could not be measured; nil for measured
}

func (o outcome) measured() bool { return o.absent == "" && o.err == nil }

// wall and cpu are the ratio of one way's time to another's.
func (o outcome) wall(way, other string) spread {
	return ratioOf(walls(o.samples[way]), walls(o.samples[other]))
}

func (o outcome) cpu(way, other string) spread {
	return ratioOf(cpus(o.samples[way]), cpus(o.samples[other]))
}

// verdicts judges the goals of one workload.
func (o outcome) verdicts() []verdict {
	var all []verdict
	for _, g := range o.goals {
		name := o.name
		if g.way != holdfast {
			name += ", " + g.way
		}
		all = append(all, judge(name+": wall time, times bwrap", g.limit, o.wall(g.way, bwrap).median, "%.2f"))
	}
	return all
}
