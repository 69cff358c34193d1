//go:build linux

package sensors

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"holdfast.dev/holdfast/internal/agents/reports"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/detect/honey"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
	"holdfast.dev/holdfast/internal/supervise"
)

// Config is what the sensors of a run need.
type Config struct {
	Plan      policy.Plan
	Bus       *bus.Bus
	Rules     gate.Rules    // of consent
	Tools     reports.Tools // how agents inside report their tool calls
	State     string        // directory of Holdfast's state
	Protected []string      // paths of the host that no approval may change, in addition to those of the plan; "" for none
	Gateway   bool          // the messages of an MCP server are recorded, too

	// Opened is called when the view is complete, before anything is executed in it.
	Opened func(boundary.Watch) error
}

// Set is the sensors of one run.
type Set struct {
	config  Config
	place   detect.Place // what paths of the run are judged against
	honey   []honey.File
	clients clients
	ports   loopback
	plan    policy.Plan // of the launch, set before that calls anything here
	began   atomic.Bool // the command may be executed

	mu            sync.Mutex // guards what follows
	calls         *supervise.Supervisor
	root          *supervise.Tripwire
	honeytokens   supervise.Honeytokens // that root reports
	watcher       *honey.Watcher        // of the other honeytokens
	tools         *reports.Server
	denials       *supervise.LandlockAudit
	trees         []policy.Tree      // of the view
	blinded       map[[2]string]bool // what was declared not to be seen, with the reason
	nothingHidden bool               // once closed: see NothingHidden

	serving sync.WaitGroup
}

// New makes the sensors of a run. Nothing is watched before the launch.
func New(c Config) (*Set, error) {
	s := &Set{config: c, place: detect.Place{Home: c.Plan.Identity.Home, Workspace: c.Plan.Workspace}}
	var err error
	s.honey, err = newHoneytokens(c.Plan, c.Bus)
	return s, err
}

// AddTo puts the honeytokens into view, and asks the launch to hand over what is
// observed.
func (s *Set) AddTo(spec *boundary.Spec) {
	addHoneytokens(spec, s.honey)
	s.plan = spec.Plan
	if !s.config.Bus.Recording() || spec.Plan.Record.Level == policy.RecordOff {
		return
	}
	spec.Observe = &boundary.Observation{Level: spec.Plan.Record.Level, Open: s.open, Root: s.openRoot, Store: s.store, Sealed: s.seal}
	denials, err := supervise.NewLandlockAudit(supervise.LandlockConfig{
		Sink: s.config.Bus.Sensor(event.Landlock), Process: s.process, Marked: s.hasMarks, Failed: s.config.Bus.Fail,
	})
	if err != nil { // not root, or the host keeps no audit records: there is no completeness check then
		return
	}
	s.mu.Lock()
	s.denials = denials
	s.mu.Unlock()
	s.serving.Go(denials.Serve)
	spec.Observe.Denials = denials.Domain
}

// Names lists the sensors that watch this run, separated by commas: what they do not
// see is not in the record.
func (s *Set) Names() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{string(event.Task), string(event.Egress), string(event.Detect)}
	for _, sensor := range []struct {
		on   bool
		name event.Sensor
	}{
		{s.config.Gateway, event.Gateway}, {s.calls != nil, event.Syscall}, {s.root != nil, event.Tripwire},
		{s.watcher != nil || len(s.honeytokens.Details) > 0, event.Honey}, {s.denials != nil, event.Landlock}, {s.tools != nil, event.Agent},
	} {
		if sensor.on {
			names = append(names, string(sensor.name))
		}
	}
	return strings.Join(names, ",")
}

// Begin declares what no sensor sees, and lets everything be recorded from now on.
func (s *Set) Begin() error {
	if err := s.blindFromStart(); err != nil {
		return err
	}
	s.mu.Lock()
	calls := s.calls
	s.mu.Unlock()
	if calls != nil {
		calls.CaughtUp()
	}
	s.began.Store(true)
	s.config.Bus.Sensor(event.Syscall).Silence(false)
	return nil
}

// Close waits until everything that was seen is recorded; everything inside is
// dead. It may be called more than once.
func (s *Set) Close() error {
	s.mu.Lock()
	calls, root, watcher, denials, tools := s.calls, s.root, s.watcher, s.denials, s.tools
	s.calls, s.root, s.watcher, s.denials, s.honeytokens = nil, nil, nil, nil, supervise.Honeytokens{}
	s.mu.Unlock()
	var errs []error
	if calls != nil {
		err := calls.Close()
		errs = append(errs, err)
		s.mu.Lock()
		s.nothingHidden = err == nil && !calls.Hidden()
		s.mu.Unlock()
	}
	if watcher != nil {
		errs = append(errs, watcher.Close())
	}
	if root != nil {
		errs = append(errs, root.Close())
	}
	if denials != nil {
		_, err := denials.Close()
		errs = append(errs, err)
	}
	if tools != nil {
		tools.Close()
		s.mu.Lock()
		s.tools = nil
		s.mu.Unlock()
	}
	s.serving.Wait()
	s.clients.end()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("observing what happens inside: %w", err)
	}
	return nil
}

// NothingHidden reports whether it is certain, once the sensors are closed, that nothing
// inside could change a file without an event in its directory: see supervise.Hidden.
func (s *Set) NothingHidden() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nothingHidden
}
