package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/prove/netlab"
)

// WorkerCommand is the hidden command with which this program plays a session for
// [Run]. It takes no arguments, reads a task from standard input, and writes what
// it sees to standard output, as JSON.
const WorkerCommand = "prove-agent-worker"

// task is a session, as its worker receives it.
type task struct {
	Key    string // for deriving tokens
	Root   string // an empty directory, for the root of the trial
	Mounts []Mount
	Probes []string
	Spec   agent.Spec // patterns only
	Launch agent.Launch
	Again  agent.Launch   // how the human starts the agent afterwards
	Script []model.Script // instead of probes
	Inside *boundary      // how to run the agent in Holdfast; nil to run it without
	Step   time.Duration  // how long a step may take
	Limit  time.Duration  // how long the agent may run
}

// message is a line of a worker's output.
type message struct {
	Seen *evidence `json:",omitempty"` // of a finished probe; may change later
	Done *session  `json:",omitempty"` // the last line
}

// session is the result of a session.
type session struct {
	Seen   []evidence // of all probes that were begun or skipped
	Error  string     `json:",omitempty"` // why the trial could not be prepared
	Ended  string     `json:",omitempty"` // why the agent ended before all steps were requested
	Said   string     `json:",omitempty"` // the end of the agent's output
	Voided string     `json:",omitempty"` // why nothing was tried, according to the agent's output
}

// Worker runs that command. catalogue has the probes that tasks name.
func Worker(ctx context.Context, in io.Reader, out io.Writer, catalogue []Probe) error {
	var t task
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return fmt.Errorf("reading the session to play: %w", err)
	}
	enc := json.NewEncoder(out)
	s, err := t.run(ctx, catalogue, func(e evidence) { _ = enc.Encode(message{Seen: &e}) })
	if err != nil {
		s.Error = err.Error()
	}
	return enc.Encode(message{Done: &s})
}

// run makes the world and plays the session in it.
func (t task) run(ctx context.Context, catalogue []Probe, tell func(evidence)) (s session, err error) {
	if os.Getpid() != 1 {
		return s, errors.New("this is not the first process of namespaces of its own")
	}
	sink, listener, err := t.make()
	if err != nil {
		return s, err
	}
	defer sink.Close()
	if err := furnish(t.Key); err != nil {
		return s, fmt.Errorf("preparing the home: %w", err)
	}
	w := newWorld(t.Key, sink)
	c := newChildren()
	if err := w.startVictim(c); err != nil {
		return s, err
	}
	probes, err := t.probes(catalogue)
	if err != nil {
		return s, err
	}
	p, err := newPlay(w, t.Spec, probes, tell)
	if err != nil {
		return s, err
	}
	p.setUp()
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	server := model.New(model.Options{Lookup: p.lookup, Turn: p.turn})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	if !w.victimUntouched() {
		return s, errors.New("the process outside, which no probe may touch, ended by itself")
	}
	err = t.try(ctx, &s, p, c)
	cancel()
	return s, errors.Join(err, <-served)
}

// try lets the agent play everything, and the human come back afterwards.
func (t task) try(ctx context.Context, s *session, p *play, c *children) (err error) {
	s.Ended, s.Said = t.start(ctx, c, p)
	p.stop(s.Said)
	if p.wantsLate() {
		t.comeBack(ctx, c)
		p.checkLate()
	}
	if t.Inside != nil {
		err = t.Inside.read(ctx, p.world, p.seen)
	}
	s.Voided = t.Spec.Voided(s.Said)
	s.Seen = p.all()
	return err
}

// make makes the file system, the network and the listeners, and drops all
// privileges.
func (t task) make() (*sinks, net.Listener, error) {
	owner := innerID
	if err := (rootFS{root: t.Root, mounts: t.Mounts, uid: owner}).build(); err != nil {
		return nil, nil, err
	}
	if err := unix.Sethostname([]byte(machine)); err != nil {
		return nil, nil, nameError(err, "naming the machine")
	}
	if err := netlab.Loopback(internet...); err != nil {
		return nil, nil, fmt.Errorf("making the network of a trial: %w", err)
	}
	listener, err := net.Listen("tcp", modelAt)
	if err != nil {
		return nil, nil, err
	}
	sink, err := openSinks(loopback, socket, abstract)
	if err == nil {
		err = dropPrivileges()
	}
	return sink, listener, err
}

// probes are those of the task, in its order.
func (t task) probes(catalogue []Probe) ([]Probe, error) {
	if len(t.Script) > 0 {
		return scriptProbes(t.Script, t.Spec.State.Dir), nil
	}
	var out []Probe
	for _, id := range t.Probes {
		i := slices.IndexFunc(catalogue, func(p Probe) bool { return p.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("no probe is called %q", id)
		}
		out = append(out, catalogue[i])
	}
	return out, nil
}

// write writes the files of a launch.
func write(l agent.Launch) error {
	for _, f := range l.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f.Path, f.Content, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
