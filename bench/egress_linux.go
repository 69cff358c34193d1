package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// egressPart is the name for -only of the part about connections.
const egressPart = "egress"

// connections measures the part about connections. The result says what it needs
// and this host lacks.
func (b *bench) connections() (*egress, error) {
	e := &egress{quick: b.options.quick, date: time.Now().UTC(), machine: machine(), user: b.userKind(), loadBefore: load(), rounds: max(3, b.options.rounds/2)}
	if os.Geteuid() != 0 {
		e.absent = "this needs root: only the measured programs may know the name of the server"
		return e, nil
	}
	parent := b.cpu.parent
	if parent == "" {
		parent = newCPUMeter().parent
	}
	if parent == "" {
		e.absent = "processor time can be separated only where control groups can be created"
		return e, nil
	}
	e.versions = b.networkVersions()
	b.logf("connections: size of the program")
	if err := b.sizeOf(e); err != nil {
		return nil, err
	}
	if err := b.launches(e); err != nil {
		e.failed = append(e.failed, err.Error())
	}
	a, err := b.newArena(parent)
	if err != nil {
		return nil, err
	}
	defer a.close()
	links := a.startLayouts(e)
	for _, m := range b.measurements() {
		if b.ctx.Err() == nil {
			b.logf("connections: %s", m.name)
			b.measureInTurn(e, m, links)
		}
	}
	for _, k := range links {
		err = errors.Join(err, k.end())
	}
	if err == nil && b.ctx.Err() == nil {
		b.logf("connections: idle ones")
		err = a.measureIdleConns(e)
	}
	e.loadAfter = load()
	if b.ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted"), err)
	}
	return e, err
}

// startLayouts starts every layout whose programs are installed here.
func (a *arena) startLayouts(e *egress) []*link {
	var links []*link
	for _, l := range a.layouts() {
		var without []string
		for _, p := range l.needs {
			if _, err := a.b.lookup(p); err != nil {
				without = append(without, p)
			}
		}
		if len(without) > 0 {
			e.missing = append(e.missing, fmt.Sprintf("%s, for not installed: %v (tools/needs bench installs what is missing)", l.name, without))
			continue
		}
		a.b.logf("connections: starting %s", l.name)
		k, err := a.startLayout(l)
		if err != nil {
			e.failed = append(e.failed, err.Error())
			continue
		}
		links = append(links, k)
		e.layouts = append(e.layouts, l.name)
	}
	return links
}

// measurement is something that is done in each layout in turn.
type measurement struct {
	name string
	skip []string // layouts for which it is meaningless
	do   func(e *egress, k *link, keep bool) error
}

// measureInTurn does it in each layout once to warm up, then as often as requested. A
// layout that fails is left out from then on, and the others continue.
func (b *bench) measureInTurn(e *egress, m measurement, links []*link) {
	out := slices.Clone(m.skip)
	for i := range e.rounds + 1 {
		for _, k := range links {
			if slices.Contains(out, k.name) || b.ctx.Err() != nil {
				continue
			}
			if err := m.do(e, k, i > 0); err != nil {
				e.failed = append(e.failed, m.name+": "+err.Error())
				out = append(out, k.name)
			}
		}
	}
}

func (b *bench) measurements() []measurement {
	size := func(bytes int64) int64 {
		if b.options.quick {
			return bytes / 16
		}
		return bytes
	}
	var all []measurement
	for _, n := range bulkConns {
		all = append(all, measurement{name: fmt.Sprintf("download, connections: %d", n), do: downloads(n, size(512<<20))})
	}
	others := []string{socat, slirp, pasta}
	return append(all,
		measurement{name: "new connections", do: freshOnes},
		measurement{name: "TLS, HTTP/1.1", skip: others, do: overTLS(size(256<<20), http1)},
		measurement{name: "TLS, HTTP/2", skip: others, do: overTLS(size(256<<20), http2)},
		measurement{name: "streamed events", skip: others, do: measureEvents})
}

// downloads uses connections that are already open: neither the time nor the
// processor time of opening them counts.
func downloads(conns int, bytes int64) func(*egress, *link, bool) error {
	return func(e *egress, k *link, keep bool) error {
		bytes := bytes
		if k.name == socat {
			bytes /= 4 // otherwise it would take most of the whole time
		}
		if _, _, err := k.sendOrder(order{Do: "open", Conns: conns}); err != nil {
			return err
		}
		got, between, err := k.sendOrder(order{Do: "bulk", Bytes: bytes})
		if err != nil {
			return err
		}
		if keep {
			e.add(bulkRate(conns), k.name, float64(bytes)/1e6/got.Wall.Seconds())
			e.add(bulkCost(conns), k.name, between.Seconds()/(float64(bytes)/1e9))
		}
		_, _, err = k.sendOrder(order{Do: "close"})
		return err
	}
}

func freshOnes(e *egress, k *link, keep bool) error {
	count := 300
	if k.name == socat {
		count = 60
	}
	got, _, err := k.sendOrder(order{Do: "fresh", Count: count})
	if err == nil && keep {
		e.addDelays(freshTypical, freshSlow, k.name, got.Delays)
	}
	return err
}

func measureEvents(e *egress, k *link, keep bool) error {
	got, _, err := k.sendOrder(order{Do: "events", Count: 100})
	if err == nil && keep {
		e.addDelays(eventTypical, eventSlow, k.name, got.Delays)
	}
	return err
}

// addDelays adds the median and the 99th percentile of a round, in ms.
func (e *egress) addDelays(typical, slow figure, layout string, delays []time.Duration) {
	ms := make([]float64, len(delays))
	for i, d := range delays {
		ms[i] = float64(d) / float64(time.Millisecond)
	}
	slices.Sort(ms)
	e.add(typical, layout, quantile(ms, 0.5))
	e.add(slow, layout, quantile(ms, 0.99))
}

func overTLS(bytes int64, protocol string) func(*egress, *link, bool) error {
	return func(e *egress, k *link, keep bool) error {
		before, err := k.server.cpuTime()
		if err != nil {
			return err
		}
		got, between, err := k.sendOrder(order{Do: "tls", Bytes: bytes, H2: protocol == http2})
		if err != nil {
			return err
		}
		after, err := k.server.cpuTime()
		if err != nil || !keep {
			return err
		}
		gb := float64(bytes) / 1e9
		e.add(tlsRate(protocol), k.name, 1000*gb/got.Wall.Seconds())
		e.add(tlsCost(protocol), k.name, between.Seconds()/gb)
		e.add(tlsEnds(protocol), k.name, (got.CPU+after-before).Seconds()/gb)
		return nil
	}
}

// launches measures what interception adds to the start of a run.
func (b *bench) launches(e *egress) error {
	b.logf("connections: start of a run")
	w := workload{name: "start with --allow", dir: "empty", prepare: noFixture, command: []string{"true"}, rounds: 4 * e.rounds}
	if err := b.fixture(w); err != nil {
		return err
	}
	all := []contestant{
		{name: withoutAllow, program: b.holdfast, before: []string{"run", "--"}, env: b.env},
		{name: withAllow, program: b.holdfast, before: []string{"run", "--allow", "example.org", "--"}, env: b.env},
	}
	samples, err := b.rounds(w, all)
	if err != nil {
		return err
	}
	for _, c := range all {
		for _, v := range walls(samples[c.name]) {
			e.add(launch, c.name, v)
		}
	}
	return nil
}

// sizeOf records the size of the program and its modules.
func (b *bench) sizeOf(e *egress) error {
	fi, err := os.Stat(b.holdfast)
	if err != nil {
		return fmt.Errorf("reading the size of the program: %w", err)
	}
	info, err := buildinfo.ReadFile(b.holdfast)
	if err != nil {
		return fmt.Errorf("reading the modules of the program: %w", err)
	}
	e.bytes = fi.Size()
	for _, m := range info.Deps {
		e.modules = append(e.modules, m.Path+" "+m.Version)
	}
	return nil
}

// packageVersions asks Debian for the versions of packages whose programs print
// them in many lines, or not at all.
func (b *bench) packageVersions(packages ...string) []string {
	var all []string
	for _, p := range packages {
		v, err := b.runAs("", "dpkg-query", "-W", "-f", "${Version}", p)
		if err != nil {
			v = "not found"
		}
		all = append(all, p+" "+v)
	}
	return all
}

// networkVersions lists the versions of the programs in this part.
func (b *bench) networkVersions() []string {
	return append(b.versionsOf([][]string{{"bwrap", "--version"}, {"slirp4netns", "--version"}}), b.packageVersions("socat", "passt")...)
}
