package main

// outcome is what came of one workload.
type outcome struct {
	name    string
	what    string
	limit   float64             // goal for processor time as a multiple of bare; 0 for none
	samples map[string][]sample // by contestant; round i of one belongs to round i of the others
	absent  string              // why it was not measured though nothing is wrong; "" for measured
	err     error               // why it could not be measured; nil for measured
}

func (o outcome) measured() bool { return o.absent == "" && o.err == nil }

// wall and cpu are how many times longer holdfast took than another.
func (o outcome) wall(other string) spread {
	return spreadOf(ratios(walls(o.samples[holdfast]), walls(o.samples[other])))
}

func (o outcome) cpu(other string) spread {
	return spreadOf(ratios(cpus(o.samples[holdfast]), cpus(o.samples[other])))
}

// cpuRunning is cpu against bare without the start: what `true` costs more
// under holdfast than bare is taken off first.
func (o outcome) cpuRunning(launch float64) spread {
	own := cpus(o.samples[holdfast])
	for i := range own {
		own[i] -= launch
	}
	return spreadOf(ratios(own, cpus(o.samples[bare])))
}
