//go:build linux

package run

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"holdfast.dev/holdfast/internal/agents/reports"
	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/detect/honey"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
	"holdfast.dev/holdfast/internal/run/session"
	"holdfast.dev/holdfast/internal/supervise"
)

// observers are what sees from outside what happens inside.
type observers struct {
	task  *Task
	plan  policy.Plan // of the launch
	bus   *bus.Bus
	traps traps
	agent *state.Agent
	began atomic.Bool // the command may be executed

	mu    sync.Mutex // guards what follows
	calls *supervise.Supervisor
	root  *supervise.Tripwire
	baits supervise.Baits // that root tells of
	honey *honey.Watcher  // of the others
	tools *reports.Server
	trees []policy.Tree // of the view

	blinded map[[2]string]bool // what was declared not to be seen, with the reason; guarded by mu too

	denials *supervise.LandlockAudit
	serve   sync.WaitGroup
}

// newObservers prepares what watches the run.
func (t *Task) newObservers() (*observers, error) {
	var err error
	if t.traps, err = t.newTraps(); err != nil {
		return nil, err
	}
	agent, err := state.New(t.Plan.Agent, t.Plan.Identity.Home, t.bus.Secrets())
	if err != nil {
		return nil, err
	}
	return &observers{task: t, bus: t.bus, traps: t.traps, agent: agent}, nil
}

// end takes out what the agent changed, while the root of the view is still
// served, and waits until everything that was seen is recorded.
func (o *observers) end(s *session.Session, r *Result) error {
	changed, err := o.agent.Collect(o.task.State, s.Name(), o.task.Plan.Workspace)
	r.Changed, r.Warnings = changed, append(r.Warnings, o.agent.Warnings()...)
	if err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
	return o.close()
}

// apply asks the launch for what is observed.
func (o *observers) apply(spec *boundary.Spec) {
	o.plan = spec.Plan
	if !o.bus.Recording() || spec.Plan.Record.Level == policy.RecordOff {
		return
	}
	spec.Observe = &boundary.Observation{Level: spec.Plan.Record.Level, Open: o.open, Root: o.openRoot, Store: o.store, Sealed: o.sealed}
	denials, err := supervise.NewLandlockAudit(supervise.LandlockConfig{
		Sink: o.bus.Sensor(event.Landlock), Process: o.process, Marked: o.marked, Failed: o.bus.Fail,
	})
	if err != nil { // not root, or the host keeps no audit records: there is no completeness check then
		return
	}
	o.mu.Lock()
	o.denials = denials
	o.mu.Unlock()
	o.serve.Go(denials.Serve)
	spec.Observe.Denials = denials.Domain
}

// open begins to answer at the listener of a launch. Nothing is recorded until
// the command begins: the launch tries the boundary first.
func (o *observers) open(w boundary.Watch) error {
	sink := o.bus.Sensor(event.Syscall)
	sink.Silence(true)
	s, err := supervise.New(supervise.Config{
		Listener: w.Listener, Refuse: w.Refuse, Name: w.Name, Root: w.First,
		Level: levels[o.task.Plan.Record.Level], View: view(w), Uncompared: w.Uncompared,
		Gate: o.task.rules.Gate, Wants: o.wants, About: o.task.rules.MayConcern,
		Carry: o.task.carry(o.plan), Kept: o.kept, Asked: o.task.place().Personal, Quiet: probed, Ordinary: o.ordinary, Marked: o.marked,
		Sink: blinding{reporting{sink, o}, o}, Hashes: filepath.Join(o.task.State, "hashes"), Failed: o.bus.Fail,
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.calls, o.trees = s, w.Trees
	o.mu.Unlock()
	o.serve.Go(s.Serve)
	if err := o.listenForReports(w); err != nil {
		return err
	}
	if err := o.agent.OpenHome(w); err != nil {
		return err
	}
	return o.watch(w)
}

// listenForReports takes what hooks of agents report in the view, which is complete.
func (o *observers) listenForReports(w boundary.Watch) error {
	o.task.clients.begin(w.First, o.process)
	server, err := reports.Listen(reports.Config{
		Tools: o.task.Tools, Plan: o.plan, Rules: o.task.rules, Sink: o.bus.Sensor(event.Agent), Process: o.process,
	}, w)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tools = server
	return err
}

// openRoot serves the root of the view: the launch builds it through the device.
func (o *observers) openRoot(d boundary.RootDevice) error {
	made := make([]supervise.Entry, len(d.Made))
	for i, e := range d.Made {
		made[i] = supervise.Entry(e)
	}
	baits := o.served(d.Made)
	root, err := supervise.NewTripwire(supervise.TripwireConfig{
		Device: d.File, Root: d.First, UID: d.UID, GID: d.GID,
		Private: d.Private, Made: made, Baits: baits, Charge: d.Charge, Covers: d.Covers, Rule: o.hiding, Reads: o.task.Plan.Record.Level == policy.RecordFull,
		Sink: blinding{o.bus.Sensor(event.Tripwire), o}, Quiet: probed, Ordinary: o.ordinary, Process: o.process, Marked: o.marked, Failed: o.bus.Fail,
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.root, o.baits = root, baits
	o.mu.Unlock()
	o.serve.Go(root.Serve)
	return nil
}

// store gives who serves the root the storage of the private directories.
func (o *observers) store(dir *os.File) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.root.Store(dir)
}

// hiding is the rule that hides a path.
func (o *observers) hiding(path string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range slices.Backward(o.trees) {
		if t.Access == policy.Hidden && paths.Within(t.Path, path) {
			return t.Rule
		}
	}
	return ""
}

// probed are names outside the view that programs look for by themselves on
// every system; most hosts have none of them.
var probed = []string{
	"/etc/ld.so.preload", "/etc/suid-debug", // the dynamic linker
	"/sys/devices/system/cpu", "/sys/fs", "/selinux", "/etc/selinux", // coreutils, by libselinux
	"/etc/gitconfig", "/etc/npmrc", "/etc/pip.conf", "/etc/wgetrc", "/etc/curlrc", "/etc/vimrc", "/etc/zsh", "/etc/inputrc",
	"/etc/ssl/cert.pem", "/etc/environment", "/etc/debug", "/etc/localtime", "/etc/timezone", "/etc/nscd.conf", "/run/nscd",
	"/etc/ethers", "/etc/hosts.equiv", "/etc/mailcap", "/etc/apache", "/etc/os-release",
	// What the library of Python links to on Debian.
	"/etc/python3.9", "/etc/python3.10", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/python3.14",
	"/sys/kernel", "/etc/machine-id", "/etc/gcrypt", "/etc/pkcs11", "/etc/crypto-policies",
}

// process is what is known of a process that another sensor saw.
func (o *observers) process(pid int) event.Process {
	o.mu.Lock()
	calls := o.calls
	o.mu.Unlock()
	p := event.Process{PID: pid}
	if calls != nil {
		p.Exec = calls.Exec(pid)
	}
	return p
}

// ordinary says of a name that is not in a private directory that it is not in the
// host's either, and none that holds credentials: nothing was kept from whoever
// looked it up. A directory of the user's that is missing on the way was kept,
// whatever is in it.
func (o *observers) ordinary(e event.Event, missing string) bool {
	path := cmp.Or(e.Resolved, e.Object)
	if !o.private(path) {
		return false
	}
	if e.Detail["creates"] != "" { // and is made, which is recorded by itself
		return true
	}
	place := o.task.place()
	if !place.Common(e) {
		return false
	}
	if _, err := os.Lstat(path); err == nil {
		return false
	}
	if !place.Personal(missing) && paths.Within(place.Home, missing) {
		return true
	}
	_, err := os.Lstat(missing)
	return err != nil
}

// private says of a path that a run has its own in its place.
func (o *observers) private(path string) bool {
	return boundary.InTrees(path, boundary.ScratchTrees(o.task.Plan.Identity.Home))
}

// kept says of a path that is missing in a private directory that it is not
// ordinary.
func (o *observers) kept(path string) bool {
	return o.private(path) && !o.ordinary(event.Event{Action: event.FileLookup, Object: path}, path)
}

// marked says of an event that a flood of others must not hide it.
func (o *observers) marked(e event.Event) bool {
	return len(o.task.place().Marks(e)) > 0
}

// place is what paths of a run are judged against.
func (t *Task) place() detect.Place {
	return detect.Place{Home: t.Plan.Identity.Home, Workspace: t.Plan.Workspace}
}

func (o *observers) sealed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.root.Seal()
}

var levels = map[policy.RecordLevel]supervise.Level{
	policy.RecordStandard: supervise.Standard,
	policy.RecordFull:     supervise.Full,
}

// view is what the launch built, as the supervisor takes it.
func view(w boundary.Watch) supervise.View {
	return supervise.View{Trees: w.Trees, UID: w.UID, GID: w.GID, Closed: w.Closed, Intercepted: !w.Closed, Portal: w.Portal}
}

// sensors names those that see what happens in this run, a comma between: what
// none of them sees is in no record.
func (o *observers) sensors() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := []string{string(event.Task), string(event.Egress), string(event.Detect)}
	if o.task.Messages != nil {
		names = append(names, string(event.Gateway))
	}
	for _, s := range []struct {
		on   bool
		name event.Sensor
	}{{o.calls != nil, event.Syscall}, {o.root != nil, event.Tripwire}, {o.honey != nil || len(o.baits.Details) > 0, event.Honey}, {o.denials != nil, event.Landlock}, {o.tools != nil, event.Agent}} {
		if s.on {
			names = append(names, string(s.name))
		}
	}
	return strings.Join(names, ",")
}

// wants says whether a rule of consent can be about attempts of a kind. While the
// launch tries the boundary, none is: what is tried there must fail.
func (o *observers) wants(k event.Kind) bool {
	return o.began.Load() && o.task.rules.Concern(k)
}

// begin lets everything be recorded from now on.
func (o *observers) begin() {
	o.mu.Lock()
	calls := o.calls
	o.mu.Unlock()
	if calls != nil {
		calls.CaughtUp()
	}
	o.began.Store(true)
	o.bus.Sensor(event.Syscall).Silence(false)
}

// close waits until everything that was seen is recorded; everything inside is
// dead. It may be called more than once.
func (o *observers) close() error {
	o.mu.Lock()
	calls, root, trap, denials, server := o.calls, o.root, o.honey, o.denials, o.tools
	o.calls, o.root, o.honey, o.denials, o.baits = nil, nil, nil, nil, supervise.Baits{}
	o.mu.Unlock()
	var errs []error
	if calls != nil {
		_, err := calls.Close()
		errs = append(errs, err)
	}
	if trap != nil {
		errs = append(errs, trap.Close())
	}
	if root != nil {
		_, err := root.Close()
		errs = append(errs, err)
	}
	if denials != nil {
		_, err := denials.Close()
		errs = append(errs, err)
	}
	if server != nil {
		server.Close()
		o.mu.Lock()
		o.tools = nil
		o.mu.Unlock()
	}
	o.serve.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("observing what happens inside: %w", err)
	}
	return nil
}

// reporting is the sink of system calls, of which some are about hooks.
type reporting struct {
	*bus.Sensor
	observers *observers
}

// Observe is that of the sensor.
func (r reporting) Observe(e event.Event) error {
	err := r.Sensor.Observe(e)
	r.see(e)
	return err
}

// Emit is that of the sensor.
func (r reporting) Emit(e event.Event) error {
	err := r.Sensor.Emit(e)
	r.see(e)
	return err
}

func (r reporting) see(e event.Event) {
	if e.Action != event.ProcExec && e.Action != event.ProcExit {
		return
	}
	r.observers.mu.Lock()
	t := r.observers.tools
	r.observers.mu.Unlock()
	if t != nil {
		t.Watch(e)
	}
}
