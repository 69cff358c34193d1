package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// recordPart is the name for -only of the part about the record.
const recordPart = "record"

// newSection begins a part of the report.
func (b *bench) newSection(only, title string, programs [][]string) *section {
	if b.user.uid == 0 {
		only, title = only+rootSuffix, title+" as root"
	}
	return &section{
		title: title, only: only, date: time.Now().UTC(), user: b.userKind(), machine: machine(), quick: b.options.quick,
		load: [2]string{load(), "unknown"}, versions: b.versionsOf(programs),
	}
}

// measureRecord measures what the record costs.
func (b *bench) measureRecord() (*section, error) {
	s := b.newSection(recordPart, "Record", [][]string{{"git", "--version"}, {"go", "version"}, {"node", "--version"}, {"npm", "--version"}, {"python3", "--version"}, {"rg", "--version"}, {"strace", "--version"}})
	if err := b.opensFUSE(); err != nil {
		return nil, err
	}
	if b.cpu.parent == "" {
		b.cpu.parent = newCPUMeter().parent
	}
	s.intro = []string{
		"All ways in turn within each round, strace in every second one and around the bare command: `strace -f --seccomp-bpf -e trace=file,process,network`. A ratio is that of the medians, in brackets the 10th and 90th percentile of the ratios of one round each.",
		"Processor time is user and system of the whole tree with the supervisor. The start and the end of a run are taken off everywhere: they are what `true` takes in the same way in the same directory, the median of all rounds, and the workloads that are short are done many times in one run. What the record adds to a start has a table of its own.",
	}
	var all []*cost
	for _, w := range b.recordWorkloads() {
		b.logf("record: %s", w.name)
		c, err := b.costOf(w)
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if err != nil {
			s.fail("%s: %v", w.name, err)
			continue
		}
		all = append(all, c)
		s.verdicts = append(s.verdicts, c.verdicts()...)
	}
	s.tables = append(s.tables,
		captioned{caption: "Processor time under the record", table: recordTable(all)},
		captioned{caption: "Start and end of a run", table: startTable(all)})
	b.measureOpens(s)
	b.measureTripwire(s)
	s.load[1] = load()
	s.remarks = recordRemarks
	return s, nil
}

// opensFUSE checks that the measured user may open /dev/fuse. Otherwise the way
// named standard would silently be measured without it.
func (b *bench) opensFUSE() error {
	cmd := exec.CommandContext(b.ctx, "/bin/sh", "-c", ": <>/dev/fuse")
	cmd.SysProcAttr = b.user.attr()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s cannot open /dev/fuse, so the record would be measured without what it sees: let all users open it (chmod 0666 /dev/fuse)", b.user.name)
	}
	return nil
}

// recordWorkload is a workload that is repeated often enough in one run.
type recordWorkload struct {
	workload
	goal recordGoal
}

// repeatCommand is a shell command that runs command n times.
func repeatCommand(n int, command string) []string {
	return []string{"sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s; i=$((i+1)); done", n, command)}
}

// unpackDir is where the archive is unpacked: a tmpfs on the host, and the run's
// own one inside.
const unpackDir = "/dev/shm/holdfast-bench-out"

// recordWorkloads uses the fixtures of the other workloads.
func (b *bench) recordWorkloads() []recordWorkload {
	fixture := map[string]workload{}
	for _, w := range b.workloads() {
		fixture[w.name] = w
	}
	many := func(n int) int {
		if b.options.quick {
			return 2
		}
		return n
	}
	from := func(of, name, what string, command []string, g recordGoal) recordWorkload {
		w := fixture[of]
		w.name, w.what, w.command = name, what, command
		return recordWorkload{w, g}
	}
	g, r, p, e := many(10), many(4), many(20), many(500)
	usual := recordGoal{standard: 1.10, fuseless: 1.35}
	all := []recordWorkload{
		from("git status", "git status", fmt.Sprintf("`git status` %d times, 20,000 files", g), repeatCommand(g, "git status --porcelain"), recordGoal{1.10, 1.4, 1.35}),
		from("rg", "rg", fmt.Sprintf("`rg` %d times", r), repeatCommand(r, "rg "+needle+" src"), recordGoal{1.10, 3, 3}),
		from("grep -r", "grep -r", fmt.Sprintf("`grep -r` %d times", r), repeatCommand(r, "grep -r "+needle+" src"), recordGoal{full: 3, fuseless: 3}),
		from(start, "python start", fmt.Sprintf("`python3 -c 'import json'` %d times", p), repeatCommand(p, "python3 -c 'import json'"), usual),
		from("go build", "go build", "`go build` 3 times, warm cache, linked anew", repeatCommand(3, "rm -f app; go build -o app ."), usual),
		from("npm ci", "npm ci", fixture["npm ci"].what, fixture["npm ci"].command, usual),
		from("500 execs", "execs", fmt.Sprintf("`true` %d times", e), repeatCommand(e, "/usr/bin/true"), recordGoal{fuseless: 1.6}),
		from("untar", "untar to tmpfs", "`tar -x` of 20,000 files to a tmpfs", []string{"sh", "-c", "mkdir -p " + unpackDir + " && exec tar -xf in.tar -C " + unpackDir}, recordGoal{standard: 2}),
	}
	python := &all[3]
	python.needs = []string{"python3", "sh"}
	untar := &all[len(all)-1]
	untar.check = nil
	untar.reset = func(string) error { return os.RemoveAll(unpackDir) }
	return all
}

// recordWays are the ways to start a command for this part.
func (b *bench) recordWays(dir string) ([]contestant, error) {
	v, err := b.inspectView(dir)
	if err != nil {
		return nil, fmt.Errorf("inspecting what holdfast shows: %w", err)
	}
	b.inside = v.setting
	all := []contestant{
		{name: bare, env: v.setting},
		{name: unrecorded, program: b.holdfast, before: []string{"run", "--without", "record", "--"}, env: b.env},
		{name: standard, program: b.holdfast, before: []string{"run", "--record", "standard", "--"}, env: b.env},
		{name: full, program: b.holdfast, before: []string{"run", "--record", "full", "--"}, env: b.env},
	}
	if os.Geteuid() == 0 { // only root can mount another device over the host's
		before, err := b.beforeDevice(plainRoot)
		if err != nil {
			return nil, err
		}
		all = append(all, contestant{name: fuseless, root: true, program: "/usr/bin/unshare", env: b.env, before: append(before, "run", "--record", "standard", "--")})
	}
	if strace, err := b.lookup("strace"); err == nil {
		log := filepath.Join(b.home(), "strace.out")
		all = append(all, contestant{name: traced, program: strace, before: []string{"-f", "--seccomp-bpf", "-e", "trace=file,process,network", "-o", log}, env: v.setting})
	}
	return all, nil
}

// costOf measures one workload in every way.
func (b *bench) costOf(w recordWorkload) (*cost, error) {
	for _, program := range w.needs {
		if _, err := b.lookup(program); err != nil {
			return nil, fmt.Errorf("%s is not installed", program)
		}
	}
	if err := b.fixture(w.workload); err != nil {
		return nil, err
	}
	dir := b.workspace(w.dir)
	ways, err := b.recordWays(dir)
	if err != nil {
		return nil, err
	}
	c := newCost(w.name)
	c.what, c.goal = w.what, w.goal
	for round := range b.recordRounds() + 1 {
		for _, way := range ways {
			if way.name == traced && round%2 == 0 {
				continue
			}
			if err := b.recordOnce(c, w, way, dir, round > 0); err != nil {
				return nil, err
			}
		}
	}
	if w.reset != nil {
		err = w.reset(dir)
	}
	return c, errors.Join(err, b.forgetRecords())
}

// recordRounds is fewer than elsewhere, because the commands take seconds.
func (b *bench) recordRounds() int { return max(1, b.options.rounds/4) }

// recordOnce measures a workload and a start in one way.
func (b *bench) recordOnce(c *cost, w recordWorkload, way contestant, dir string, keep bool) error {
	if w.reset != nil {
		if err := w.reset(dir); err != nil {
			return fmt.Errorf("preparing a round: %w", err)
		}
	}
	_, s, err := b.runCopies(way, dir, w.command, 1)
	if err != nil {
		return err
	}
	if w.check != nil {
		if err := w.check(dir); err != nil {
			return fmt.Errorf("under %s: %w", way.name, err)
		}
	}
	_, launch, err := b.runCopies(way, dir, []string{"true"}, 1)
	if err != nil {
		return err
	}
	if keep {
		c.whole[way.name] = append(c.whole[way.name], float64(s.cpu)/float64(time.Millisecond))
		c.start[way.name] = append(c.start[way.name], float64(launch.cpu)/float64(time.Millisecond))
		c.wall[way.name] = append(c.wall[way.name], float64(launch.wall)/float64(time.Millisecond))
	}
	return nil
}

// state is where the user's runs keep their records.
func (b *bench) state() string { return filepath.Join(b.home(), ".local", "state", "holdfast") }

// forgetRecords removes records, so that they do not accumulate and pruning them
// does not disturb the next measurement.
func (b *bench) forgetRecords() error {
	for _, name := range []string{"log", "heads"} {
		if err := os.RemoveAll(filepath.Join(b.state(), name)); err != nil {
			return fmt.Errorf("removing records: %w", err)
		}
	}
	return nil
}

// records returns the records of the user's runs.
func (b *bench) records() []string {
	all, err := os.ReadDir(filepath.Join(b.state(), "log"))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			out = append(out, filepath.Join(b.state(), "log", e.Name()))
		}
	}
	return out
}
