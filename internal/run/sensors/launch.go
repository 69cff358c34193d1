//go:build linux

package sensors

import (
	"os"
	"path/filepath"
	"slices"

	"holdfast.dev/holdfast/internal/agents/reports"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
	"holdfast.dev/holdfast/internal/supervise"
)

var levels = map[policy.RecordLevel]supervise.Level{
	policy.RecordStandard: supervise.Standard,
	policy.RecordFull:     supervise.Full,
}

// open begins to answer at the listener of a launch. Nothing is recorded until
// the command begins: the launch tries the boundary first.
func (s *Set) open(w boundary.Watch) error {
	s.clients.begin(w.First, w.Sockets, s.process)
	sink := s.config.Bus.Sensor(event.Syscall)
	sink.Silence(true)
	rules := s.config.Rules
	calls, err := supervise.New(supervise.Config{
		Listener: w.Listener, Refuse: w.Refuse, Name: w.Name, Root: w.First, Level: levels[s.config.Plan.Record.Level], Uncompared: w.Uncompared,
		View: supervise.View{Trees: w.Trees, UID: w.UID, GID: w.GID, Closed: w.Closed, Intercepted: !w.Closed, Portal: w.Portal},
		Gate: rules.Gate, Wants: s.wants, About: rules.MayConcern,
		Carry: s.carry(), HiddenByView: s.hiddenByView, Asked: s.place.Personal, Quiet: probed, Ordinary: s.isOrdinary, Marked: s.hasMarks,
		Sink: blinding{hooking{sink, s}, s}, Hashes: filepath.Join(s.config.State, "hashes"), Failed: s.config.Bus.Fail,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.calls, s.trees, s.nothingHidden = calls, w.Trees, false
	s.mu.Unlock()
	s.serving.Go(calls.Serve)
	if err := s.listenForReports(w); err != nil {
		return err
	}
	if err := s.config.Opened(w); err != nil {
		return err
	}
	return s.watchHoneytokens(w)
}

// listenForReports takes what hooks of agents report in the view, which is complete.
func (s *Set) listenForReports(w boundary.Watch) error {
	server, err := reports.Listen(reports.Config{
		Tools: s.config.Tools, Plan: s.plan, Rules: s.config.Rules, Sink: s.config.Bus.Sensor(event.Agent), Process: s.process,
	}, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = server
	return err
}

// openRoot serves the root of the view: the launch builds it through the device.
func (s *Set) openRoot(d boundary.RootDevice) error {
	made := make([]supervise.Entry, len(d.Made))
	for i, e := range d.Made {
		made[i] = supervise.Entry(e)
	}
	honeytokens := s.servedHoneytokens(d.Made)
	root, err := supervise.NewTripwire(supervise.TripwireConfig{
		Device: d.File, Root: d.First, UID: d.UID, GID: d.GID,
		Private: d.Private, Made: made, Honeytokens: honeytokens, Charge: d.Charge, Covers: d.Covers, Rule: s.hidingRule, Reads: s.config.Plan.Record.Level == policy.RecordFull,
		Sink: blinding{s.config.Bus.Sensor(event.Tripwire), s}, Quiet: probed, Ordinary: s.isOrdinary, Process: s.process, Marked: s.hasMarks, Failed: s.config.Bus.Fail,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.root, s.honeytokens = root, honeytokens
	s.mu.Unlock()
	s.serving.Go(root.Serve)
	return nil
}

// store gives the tripwire the storage of the private directories.
func (s *Set) store(dir *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root.Store(dir)
}

func (s *Set) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root.Seal()
}

// hidingRule returns the rule that hides a path.
func (s *Set) hidingRule(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range slices.Backward(s.trees) {
		if t.Access == policy.Hidden && paths.Within(t.Path, path) {
			return t.Rule
		}
	}
	return ""
}

// process is what is known of a process that another sensor saw.
func (s *Set) process(pid int) event.Process {
	s.mu.Lock()
	calls := s.calls
	s.mu.Unlock()
	p := event.Process{PID: pid}
	if calls != nil {
		p.Exec = calls.Exec(pid)
	}
	return p
}

// wants reports whether a rule of consent can be about attempts of a kind. While the
// launch tries the boundary, none is: what is tried there must fail.
func (s *Set) wants(k event.Kind) bool {
	return s.began.Load() && s.config.Rules.Concern(k)
}

// hooking is the sink of system calls: the server of reports has to hear of each hook
// that is executed, and of its end.
type hooking struct {
	*bus.Sensor
	set *Set
}

// Observe implements supervise.Sink.
func (h hooking) Observe(e event.Event) error {
	err := h.Sensor.Observe(e)
	h.notifyTools(e)
	h.set.notePort(e)
	return err
}

// Emit implements supervise.Sink.
func (h hooking) Emit(e event.Event) error {
	err := h.Sensor.Emit(e)
	h.notifyTools(e)
	return err
}

func (h hooking) notifyTools(e event.Event) {
	if e.Action != event.ProcExec && e.Action != event.ProcExit {
		return
	}
	h.set.mu.Lock()
	tools := h.set.tools
	h.set.mu.Unlock()
	if tools != nil {
		tools.Watch(e)
	}
}
