//go:build linux

package reports

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/agents/hooks"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// Tools says how agents inside report their tool calls. The zero value means no
// reports.
type Tools struct {
	// Program is the hook program, absolute and without links. It is visible
	// read-only, and each execution of it as a hook is expected to report. "" for
	// no reports.
	Program string

	Files []boundary.File // settings that make agents execute it, added to the view
}

// Limits of reports. The inside decides how many it sends.
const (
	toolBurst      = 400 // reports at once
	toolRefill     = 40  // a second, after the burst
	maxConnections = 8   // served at a time
	toolTime       = 2 * time.Second
)

// Server accepts the reports of one launch.
type Server struct {
	config      Tools
	sink        Sink
	process     func(pid int) event.Process
	listen      *net.UnixListener
	connections chan struct{} // one element for each served connection
	serving     sync.WaitGroup

	plan  policy.Plan // at the start of the run
	rules gate.Rules
	held  chan struct{}   // its capacity limits the waits for a human
	life  context.Context // ends with Close
	end   context.CancelCauseFunc

	mu      sync.Mutex     // guards what follows
	waiting map[int]string // executed hooks that have not reported: agent, by pid
	left    float64        // reports that may still come
	filled  time.Time
	refused uint64 // reports since the last event about refusals
}

// AddTo adds the hook program and the settings to the view.
func (t Tools) AddTo(spec *boundary.Spec) (err error) {
	if t.Program == "" {
		return nil
	}
	spec.Files = append(slices.Clip(spec.Files), t.Files...)
	spec.Files = append(spec.Files, boundary.File{Path: hooks.Marker, Content: []byte("this is inside of holdfast run\n")})
	if !slices.ContainsFunc(spec.Plan.Paths, func(r policy.PathRule) bool { return r.Path == t.Program }) {
		rule := policy.PathRule{Path: t.Program, Access: policy.Read, Origin: policy.Origin{File: "hooks"}}
		spec.Plan, err = spec.Plan.With(policy.Additions{Paths: []policy.PathRule{rule}})
	}
	return err
}

// judge is the policy's decision about a call. It considers only names: a report
// must neither make the supervisor open a file of the host nor reveal anything
// about it.
func judge(plan policy.Plan, r hooks.Report) hooks.Answer {
	call := policy.ToolCall{Agent: r.Agent, Tool: r.Tool, Server: r.Server, Arguments: string(r.Arguments), Cwd: r.Cwd, Subagent: r.Subagent, Cut: r.Cut}
	reason, rule := plan.DenyTool(call)
	if reason == "" {
		reason, rule = plan.AskTool(call, boundary.PrivateTrees(plan.Identity.Home), nil)
	}
	return hooks.Answer{Deny: reason, Rule: rule}
}

// Sink records a report.
type Sink interface{ Observe(event.Event) error }

// Config is what a server needs.
type Config struct {
	Tools   Tools
	Plan    policy.Plan // of the launch
	Rules   gate.Rules
	Sink    Sink
	Process func(pid int) event.Process // what is known of a process
}

// Listen accepts reports in the watched view, which must be complete; nil if no
// reports are wanted.
func Listen(c Config, w boundary.Watch) (*Server, error) {
	if c.Tools.Program == "" {
		return nil, nil
	}
	var l *net.UnixListener
	err := sys.AsTask(w.UID, w.GID, func() (err error) {
		l, err = listenInside(w.First)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("receiving reports of agents: %w", err)
	}
	return serve(c, l), nil
}

func serve(c Config, l *net.UnixListener) *Server {
	t := &Server{
		config: c.Tools, sink: c.Sink, process: c.Process, listen: l, connections: make(chan struct{}, maxConnections),
		plan: c.Plan, rules: c.Rules, held: make(chan struct{}, toolsHeld), waiting: map[int]string{}, left: toolBurst, filled: time.Now(),
	}
	t.life, t.end = context.WithCancelCause(context.Background())
	t.serving.Go(t.serve)
	return t
}

// listenInside makes the socket in the view's private /run.
func listenInside(first int) (*net.UnixListener, error) {
	dir := fmt.Sprintf("/proc/%d/root%s", first, filepath.Dir(hooks.Socket))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	var l *net.UnixListener
	err := sys.WithShortName(dir, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(short, filepath.Base(hooks.Socket))})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its short name existed only for a moment
	return l, nil
}

// serve accepts reports until the listener is closed.
func (t *Server) serve() {
	for {
		c, err := t.listen.AcceptUnix()
		if err != nil {
			return
		}
		if !t.admit() {
			c.Close()
			continue
		}
		select {
		case t.connections <- struct{}{}:
		default: // all connections are in use: those who keep them busy have had their turn
			t.refuse()
			c.Close()
			continue
		}
		t.serving.Go(func() {
			defer c.Close()
			done := sync.OnceFunc(func() { <-t.connections })
			defer done()
			t.handle(c, done)
		})
	}
}

// admit reports whether one more report may come now.
func (t *Server) admit() bool {
	t.mu.Lock()
	now := time.Now()
	t.left = min(toolBurst, t.left+now.Sub(t.filled).Seconds()*toolRefill)
	t.filled = now
	if t.left >= 1 {
		t.left--
		t.mu.Unlock()
		return true
	}
	t.mu.Unlock()
	t.refuse()
	return false
}

// refuse counts a report that is not accepted, and records one event for many.
func (t *Server) refuse() {
	t.mu.Lock()
	t.refused++
	first := t.refused == 1
	t.mu.Unlock()
	if first {
		time.AfterFunc(time.Second, t.recordRefused)
	}
}

func (t *Server) recordRefused() {
	t.mu.Lock()
	n := t.refused
	t.refused = 0
	t.mu.Unlock()
	if n == 0 {
		return
	}
	e := hooks.Lost("", "more reports came than are accepted")
	e.Detail["count"] = fmt.Sprint(n)
	t.sink.Observe(e)
}

// handle reads one report, records it and answers. holding is called when that
// may take as long as a human does.
func (t *Server) handle(c *net.UnixConn, holding func()) {
	c.SetDeadline(time.Now().Add(toolTime))
	from, err := sys.Peer(c)
	if err != nil {
		return
	}
	pid := int(from.Pid)
	r, err := hooks.Receive(c)
	if err != nil {
		r = hooks.Report{Kind: hooks.Call, Bad: "what came over the channel is not a report: " + err.Error()}
	}
	t.mu.Lock()
	delete(t.waiting, pid)
	t.mu.Unlock()
	var a hooks.Answer
	by := t.process(pid)
	if r.Kind == hooks.Call {
		a = t.judge(c, r, by, holding)
	}
	e := r.Event(a)
	e.Process = by
	if r.Kind == hooks.End && r.Bad == "" {
		// The end of an agent's session is the end of its process, which is
		// recorded anyway.
	} else if t.sink.Observe(e) != nil {
		a = hooks.Answer{Deny: "the record of the run cannot be written"}
	}
	hooks.Reply(c, a) // a hook that has gone needs no answer
}

// Watch looks in the events of system calls for hooks that are executed, and that
// end without a report.
func (t *Server) Watch(e event.Event) {
	switch e.Action {
	case event.ProcExec:
		if e.Verdict != event.Allowed || e.Process.Executable != t.config.Program || len(e.Process.Argv) < 3 || e.Process.Argv[1] != hooks.Verb {
			return
		}
		t.mu.Lock()
		if len(t.waiting) < 1024 { // more never run at the same time
			t.waiting[e.Process.PID] = e.Process.Argv[2]
		}
		t.mu.Unlock()
	case event.ProcExit:
		t.mu.Lock()
		agent, silent := t.waiting[e.Process.PID]
		delete(t.waiting, e.Process.PID)
		t.mu.Unlock()
		if silent {
			lost := hooks.Lost(agent, strings.TrimSpace("a hook ended without having reported, status "+e.Detail["status"]+" "+e.Detail["signal"]))
			lost.Process = e.Process
			t.sink.Observe(lost)
		}
	}
}

// Close waits for reports in progress.
func (t *Server) Close() {
	t.listen.Close()
	t.end(errRunEnds)
	t.serving.Wait()
	t.recordRefused()
}
