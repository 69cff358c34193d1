//go:build linux

package native

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// group is one control group made for a run: one in cgroup v2, one a hierarchy
// in v1 (cgroups(7)).
type group struct {
	dir    string
	limits [][2]string // file, value; in the order in which they are written
	covers []policy.Guarantee
	v2     bool // the supervisor puts the first process into it, see join and enterGroups
}

func (g group) create() error {
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return fmt.Errorf("making control group: %w", err)
	}
	for _, l := range g.limits {
		if err := os.WriteFile(filepath.Join(g.dir, l[0]), []byte(l[1]), 0); err != nil {
			g.remove()
			return fmt.Errorf("limiting control group: %w", err)
		}
	}
	return nil
}

func (g group) add(pid int) error {
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("entering control group: %w", err)
	}
	return nil
}

// remove is also done by the janitor: a group that is gone is fine.
func (g group) remove() error {
	err := unix.Rmdir(g.dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("removing control group %s: %w", g.dir, err)
}

// prepareGroups makes the control groups that this user may make. A limit without a
// group is still enforced per process (RLIMIT_DATA, and RLIMIT_NPROC, which counts a
// user namespace) and by the watch.
func (l *launch) prepareGroups() {
	if l.omit["limits"] {
		l.facts.rlimits = nil
		return
	}
	name := fmt.Sprintf("holdfast-%d-%d", os.Getpid(), sequence())
	for _, g := range possibleGroups(l.spec.Plan.Limits, name) {
		sweepGroups(filepath.Dir(g.dir))
		if err := g.create(); err != nil {
			continue
		}
		if slices.Contains(g.covers, policy.ProcessLimit) {
			l.facts.loosen(unix.RLIMIT_NPROC)
		}
		l.facts.cgroups = append(l.facts.cgroups, g)
		l.onRelease(func() {
			if !l.started { // no janitor removes it
				g.remove()
			}
		})
	}
}

// sweepGroups removes the groups of supervisors that are dead and whose janitors
// were killed too. One that still holds a process cannot be removed.
func sweepGroups(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, "holdfast-[0-9]*-[0-9]*"))
	if err != nil {
		return // the pattern is a constant
	}
	for _, dir := range dirs {
		var pid, n int
		if _, err := fmt.Sscanf(filepath.Base(dir), "holdfast-%d-%d", &pid, &n); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			unix.Rmdir(dir)
		}
	}
}

// loosen lets the control group be what is hit, because it counts its hits; the
// process limit stays beneath it.
func (f *facts) loosen(resource int) {
	var now unix.Rlimit
	if unix.Getrlimit(resource, &now) != nil {
		return
	}
	for i := range f.rlimits {
		if r := &f.rlimits[i]; r.resource == resource {
			r.value = min(r.value+64, now.Max)
		}
	}
}

// possibleGroups lists the groups that would keep the limits, by the
// hierarchies in /proc/self/cgroup.
func possibleGroups(limits policy.Limits, name string) []group {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []group
	for line := range strings.Lines(string(raw)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[1] == "" {
			out = append(out, unifiedGroup(f[2], limits, name)...)
			continue
		}
		for _, c := range controllersOf(limits) {
			if slices.Contains(strings.Split(f[1], ","), c.name) {
				out = append(out, group{filepath.Join("/sys/fs/cgroup", c.name, f[2], name), c.v1, c.covers, false})
				break
			}
		}
	}
	return out
}

// controller keeps a limit by the files of a group, in cgroup v1 and in v2.
type controller struct {
	name   string
	v1, v2 [][2]string
	covers []policy.Guarantee
}

// controllersOf lists the controllers that the limits need.
func controllersOf(limits policy.Limits) (out []controller) {
	if n := strconv.FormatInt(limits.Memory, 10); limits.Memory > 0 {
		out = append(out, controller{"memory", [][2]string{{memoryLimit, n}}, [][2]string{{memoryMax, n}}, []policy.Guarantee{policy.MemoryLimit}})
	}
	if most := [][2]string{{"pids.max", strconv.FormatInt(limits.Processes, 10)}}; limits.Processes > 0 {
		out = append(out, controller{"pids", most, most, []policy.Guarantee{policy.ProcessLimit}})
	}
	if n := strconv.Itoa(int(limits.CPUs * 100000)); limits.CPUs > 0 {
		out = append(out, controller{"cpu", [][2]string{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", n}}, [][2]string{{"cpu.max", n + " 100000"}}, nil})
	}
	return out
}

// unifiedGroup is the one group of cgroup v2, with the limits whose controllers
// are available to children of the supervisor's own group.
func unifiedGroup(own string, limits policy.Limits, name string) []group {
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		root = "/sys/fs/cgroup/unified"
	}
	parent := filepath.Join(root, own)
	raw, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	if err != nil {
		return nil
	}
	active := strings.Fields(string(raw))
	g := group{dir: filepath.Join(parent, name), v2: true}
	for _, c := range controllersOf(limits) {
		if slices.Contains(active, c.name) {
			g.limits, g.covers = append(g.limits, c.v2...), append(g.covers, c.covers...)
		}
	}
	if len(g.limits) == 0 {
		return nil
	}
	return []group{g}
}

// limitsHit says which limits of the control groups were hit, from the counters that
// the kernel keeps (cgroup-v2.rst; memory.oom_control and pids.events in v1).
func (p *process) limitsHit() []string {
	var out []string
	for _, g := range p.groups {
		for _, c := range []struct{ file, key, text string }{
			{"memory.events", "oom_kill", "memory limit of " + policy.FormatSize(p.limits.Memory) + ": processes were killed"},
			{"memory.oom_control", "oom_kill", "memory limit of " + policy.FormatSize(p.limits.Memory) + ": processes were killed"},
			{"pids.events", "max", fmt.Sprintf("limit of %d processes: no more could be started", p.limits.Processes)},
		} {
			if sumOf(filepath.Join(g.dir, c.file), c.key, 1) > 0 {
				out = append(out, c.text)
			}
		}
	}
	return out
}

// charge takes bytes from the memory that the control group may use: the
// process that serves the private directories holds what is in their files, and is in another
// group. Without a group, the watch counts the storage.
func (p *process) charge(bytes int64) error {
	for _, g := range p.groups {
		for _, l := range g.limits {
			if l[0] != memoryMax && l[0] != memoryLimit {
				continue
			}
			left := p.limits.Memory - bytes
			if left < leastMemory {
				return unix.ENOMEM
			}
			if err := os.WriteFile(filepath.Join(g.dir, l[0]), []byte(strconv.FormatInt(left, 10)), 0); err != nil {
				return fmt.Errorf("lowering the memory limit: %w", err)
			}
		}
	}
	return nil
}

// Files of control groups that limit memory, of cgroup v2 and v1.
const (
	memoryMax   = "memory.max"
	memoryLimit = "memory.limit_in_bytes"
)

// leastMemory is what processes inside keep at least.
const leastMemory = 16 << 20

// sumOf adds up a column of the lines of a file that begin with a key; 0 if there are
// none.
func sumOf(path, key string, column int) (sum int64) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == column+1 && f[0] == key {
			n, _ := strconv.ParseInt(f[column], 10, 64)
			sum += n
		}
	}
	return sum
}

// Limited says which limits hold for all processes of a run together by a
// control group; the others hold a process only, or by a watch.
func (p *process) Limited() []policy.Guarantee {
	var out []policy.Guarantee
	for _, g := range p.groups {
		out = append(out, g.covers...)
	}
	return out
}

// admit does what the supervisor has to do to the first process inside before
// it may go on.
func (l *launch) admit(p *process) error {
	if !l.facts.gate {
		return nil
	}
	if o := l.spec.Observe; o != nil && o.Denials != nil {
		o.Denials(p.first)
	}
	if l.facts.mapped {
		if err := l.writeMaps(p.first); err != nil {
			return err
		}
	}
	return send(p.control)
}

// enterGroups is done by the first process while it has one thread: since Linux 5.6 the
// kernel then waits for nobody (cgroup_procs_write_start in kernel/cgroup/cgroup.c), but in
// cgroup v1 alone may a thread enter a group. It is still of the supervisor's user.
func (b *builder) enterGroups() {
	for _, g := range b.facts.cgroups {
		if !g.v2 {
			b.writeFile("enter control group", filepath.Join(g.dir, "tasks"), "0")
		}
	}
}

// join puts the first process into its control group of cgroup v2 while it makes the view;
// it asks for that before it starts the command. The first entry of a process waits for all
// processors to pass through the scheduler, 10 ms or more (cgroup_attach_lock in
// kernel/cgroup/cgroup.c; rcu_sync_enter).
func (l *launch) join(p *process) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, g := range l.facts.cgroups {
			if g.v2 {
				err = cmp.Or(err, g.add(p.first))
			}
		}
	}()
	l.joined = func() error {
		<-done
		return err
	}
}

// limit lets the first process continue once it is in its control groups. The report
// that it waits may arrive before its pid, which the janitor reports.
func (l *launch) limit(p *process) error {
	if !l.waits || l.joined == nil {
		return nil
	}
	l.waits = false
	if err := l.joined(); err != nil {
		return err
	}
	return send(p.control)
}
