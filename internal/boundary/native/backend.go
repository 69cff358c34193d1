//go:build linux

package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// Backend starts commands on this kernel.
type Backend struct {
	// Omit names controls to leave out. Only tests set it: they show that the
	// probes which a control holds escape without it.
	Omit []string

	// tamper changes the launch program before it is executed. Only tests set
	// it: they break one step at a time.
	tamper func(*program)
}

// Name is the word that --backend takes.
func (*Backend) Name() string { return "native" }

func (b *Backend) omitted() map[string]bool {
	m := map[string]bool{}
	for _, o := range b.Omit {
		m[o] = true
	}
	return m
}

// Start runs the command of spec inside the boundary; see boundary.Backend.
func (b *Backend) Start(ctx context.Context, spec boundary.Spec) (boundary.Process, error) {
	if len(spec.Argv) == 0 {
		return nil, fmt.Errorf("no command given")
	}
	if spec.Review != nil {
		return b.startView(ctx, spec)
	}
	return b.startNetwork(ctx, spec)
}

// startNetwork launches with each way to intercept connections until one works.
func (b *Backend) startNetwork(ctx context.Context, spec boundary.Spec) (boundary.Process, error) {
	if n := spec.Network; n == nil || !n.Intercept {
		return b.start(ctx, spec, boundary.Closed)
	}
	rungs := spec.Network.Rungs
	if len(rungs) == 0 {
		rungs = boundary.Rungs
	}
	var failures []string
	for _, rung := range rungs {
		p, err := b.start(ctx, spec, rung)
		var step *StepError
		if err == nil || !errors.As(err, &step) || !strings.Contains(step.Step, interceptSteps) {
			return p, err
		}
		failures = append(failures, fmt.Sprintf("%s: %v", rung, err))
	}
	if spec.Network.Optional || spec.Plan.Accepts(policy.Interception) {
		return b.start(ctx, spec, boundary.Closed)
	}
	return nil, gap(policy.Interception, strings.Join(failures, "; "))
}

// start launches once, with connections intercepted in the given way. The
// result is nil, not a nil *process, when there is none.
func (b *Backend) start(ctx context.Context, spec boundary.Spec, rung boundary.Rung) (boundary.Process, error) {
	l := &launch{backend: b, spec: spec, omit: b.omitted()}
	l.facts.rung = rung
	defer l.release()
	if err := l.prepare(); err != nil {
		return nil, err
	}
	p, err := l.start(ctx)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// gap is the error for one guarantee that this host does not keep.
func gap(g policy.Guarantee, detail string) error {
	return &boundary.GapError{Missing: []boundary.Finding{{Guarantee: g, Detail: detail, Mend: mend(g, detail)}}}
}

// prepare finds out what the launch depends on and refuses what the host cannot
// enforce, unless the plan accepts that by name.
func (l *launch) prepare() error {
	plan := l.spec.Plan
	l.facts = facts{
		rung: l.facts.rung, ipv6: hasIPv6(), portal: portalFamily(),
		uid: os.Getuid(), gid: os.Getgid(),
		landlock:  landlockABI(),
		privProc:  true,
		trees:     map[string]int{},
		tty:       l.spec.In == boundary.Terminal || l.spec.Out == boundary.Terminal || l.spec.Err == boundary.Terminal,
		rlimits:   rlimits(plan.Limits),
		masks:     procMasks(),
		orphanEnv: orphanEnv(),
	}
	f := &l.facts
	for _, e := range plan.Env {
		f.environ = append(f.environ, e.Name+"="+e.Value)
	}
	f.userLimits = userLimits(l.omit)
	if err := l.prepareWalls(); err != nil {
		return err
	}
	if plan.Accepts(policy.PrivateProc) && privateProc() != nil {
		f.privProc = false
	}
	if err := l.prepareView(); err != nil {
		return err
	}
	if realRoot() {
		if err := l.prepareTaskID(); err != nil {
			return err
		}
	}
	l.prepareGroups()
	return nil
}

// prepareWalls decides about Landlock and seccomp.
func (l *launch) prepareWalls() error {
	plan, f := l.spec.Plan, &l.facts
	switch {
	case l.omit["landlock"]:
		f.landlock = 0
	case f.landlock == 0 && !plan.Accepts(policy.Landlock):
		return gap(policy.Landlock, "the kernel has no Landlock or it is not switched on")
	case f.landlock < 6 && !plan.Accepts(policy.Scopes) && !plan.Accepts(policy.Landlock):
		return gap(policy.Scopes, fmt.Sprintf("Landlock ABI %d has no scopes, ABI 6 (kernel 6.12) has", f.landlock))
	}
	if l.omit["seccomp"] {
		return nil
	}
	if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
		if plan.Accepts(policy.Seccomp) {
			return nil
		}
		return gap(policy.Seccomp, "the kernel has no system-call filters")
	}
	f.tripwire = l.spec.Observe != nil && l.spec.Observe.Root != nil && canTrip()
	f.level = levelOf(l.spec.Observe, f.tripwire)
	f.tripwire = f.tripwire && f.level != levelNone
	f.gate = f.gate || l.spec.Observe != nil && l.spec.Observe.Denials != nil
	var err error
	f.filter, err = l.buildFilter(f.level)
	return err
}

// hasIPv6 reports whether a new network namespace has IPv6 (ip-sysctl.rst,
// disable_ipv6).
func hasIPv6() bool {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/default/disable_ipv6")
	return err == nil && strings.TrimSpace(string(off)) == "0"
}

// orphanEnv is the environment of the command that is executed when the
// supervisor died: only where its state is.
func orphanEnv() []string {
	env := []string{"PATH=/usr/bin:/bin"}
	for _, name := range []string{"HOME", "XDG_STATE_HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// procMasks lists what of /proc is masked on this kernel, each because it reveals facts
// about the machine or changes it (proc(5)). Most answer only to root; the masks hold
// when root's ids are inside too.
func procMasks() []mask {
	var out []mask
	for _, m := range []mask{
		{path: "/proc/sys", dir: true, readonly: true},
		{path: "/proc/irq", dir: true, readonly: true},
		{path: "/proc/bus", dir: true, readonly: true},
		{path: "/proc/fs", dir: true, readonly: true},
		{path: "/proc/acpi", dir: true},
		{path: "/proc/scsi", dir: true},
		{path: "/proc/kcore"}, {path: "/proc/keys"}, {path: "/proc/key-users"},
		{path: "/proc/kallsyms"}, {path: "/proc/kmsg"}, {path: "/proc/timer_list"},
		{path: "/proc/sched_debug"}, {path: "/proc/sysrq-trigger"}, {path: "/proc/kpagecount"},
		{path: "/proc/kpageflags"}, {path: "/proc/kpagecgroup"}, {path: "/proc/latency_stats"},
	} {
		if _, err := os.Lstat(m.path); err == nil {
			out = append(out, m)
		}
	}
	return out
}

// rlimits are the per-process limits beneath the control groups (getrlimit(2)).
func rlimits(l policy.Limits) []rlimit {
	// 1 and not 0: with 0 a core_pattern that is a pipe is still served, by a
	// process of the host's root (core(5), fs/coredump.c).
	out := []rlimit{{unix.RLIMIT_CORE, 1}}
	add := func(resource int, v int64) {
		if v <= 0 {
			return
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err == nil && uint64(v) > now.Max {
			v = int64(now.Max)
		}
		out = append(out, rlimit{resource, uint64(v)})
	}
	add(unix.RLIMIT_NOFILE, l.Files)
	add(unix.RLIMIT_NPROC, l.Processes)
	if l.FileSize > 0 {
		add(unix.RLIMIT_FSIZE, l.FileSize)
	} else {
		add(unix.RLIMIT_FSIZE, l.Disk) // one file cannot outgrow what all of them may take
	}
	add(unix.RLIMIT_DATA, l.Memory)
	// The next two are counted for the user, here and outside together.
	for _, resource := range []int{unix.RLIMIT_SIGPENDING, unix.RLIMIT_MSGQUEUE} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err == nil && now.Cur != unix.RLIM_INFINITY {
			out = append(out, rlimit{resource, now.Cur / 2})
		}
	}
	return out
}

// userLimits are written to /proc/sys/user inside, where the user namespace
// keeps them for everything in it (namespaces(7), inotify(7)). What is counted
// for the user here and outside together is halved, so that a run cannot take
// it all; a kernel without one of them has nothing to limit.
func userLimits(omit map[string]bool) []userLimit {
	var out []userLimit
	add := func(name string, share func(int64) int64) {
		raw, err := os.ReadFile("/proc/sys/user/" + name)
		if err != nil {
			return
		}
		if now, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil {
			out = append(out, userLimit{name, share(now)})
		}
	}
	if !omit["namespaces-limit"] {
		// Later attempts answer ENOSPC (user_namespaces(7)), whatever the filter says.
		add("max_user_namespaces", func(int64) int64 { return 0 })
	}
	if !omit["limits"] {
		half := func(n int64) int64 { return n / 2 }
		add("max_inotify_instances", half)
		add("max_inotify_watches", half)
	}
	return out
}
