//go:build linux

package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/agents/gateway"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
)

// Config is what the relay of a running command needs.
type Config struct {
	Argv    []string
	Plan    policy.Plan
	Bus     *bus.Bus
	Rules   gate.Rules // of consent, for the tool calls of an MCP server
	Streams Streams
	Signals <-chan os.Signal // to pass on to the command
	Late    func()           // is called once when the run must be over: no reader is waited for any more; nil for not
	Grace   time.Duration    // how long the command has to end after SIGTERM; 0 is 10 s
	Server  *Messages        // when the command is an MCP server; nil for any other
	Ports   *Ports
}

// Ended is how a command ended.
type Ended struct {
	Exit     boundary.Exit
	Messages gateway.Report // of an MCP server
}

// relay is a running command with what its caller has.
type relay struct {
	Config
	proc   boundary.Process
	report gateway.Report
}

// drainTime is how long the reader of the output has once the run must be over: after
// the limit of time, and after the caller asked the command to end and waited long enough.
const drainTime = time.Second

// Attend stays with a running command until everything inside is dead and all
// of its output was passed on.
func Attend(ctx context.Context, proc boundary.Process, c Config) (Ended, error) {
	r := &relay{Config: c, proc: proc}
	stop := context.AfterFunc(ctx, func() { proc.Kill("") })
	defer stop()
	over := make(chan struct{}) // closed some time after a limit
	expire := sync.OnceFunc(func() {
		close(over)
		if r.Late != nil {
			r.Late()
		}
	})
	end := func(why string) {
		proc.Kill(why)
		time.AfterFunc(drainTime, expire)
	}
	if limit := r.Plan.Limits.Time; limit > 0 {
		timer := time.AfterFunc(limit, func() { end(fmt.Sprintf("time limit of %v", limit)) })
		defer timer.Stop()
	}
	r.Ports.serve(proc)
	defer r.Ports.Close()

	ended := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { r.passSignals(end, ended) })
	alive, died := context.WithCancel(ctx)
	defer died()
	drained := r.copyStreams(alive, over)
	terminal, err := r.enterRawMode()
	if err != nil {
		proc.Kill("")
	}
	helpers.Go(func() { r.jobControl(terminal) })

	exit, werr := proc.Wait()
	died()
	lost := drained()
	close(ended)
	helpers.Wait()
	terminal.undo()
	terminal.flush()
	return Ended{exit, r.report}, errors.Join(err, werr, lost)
}

// defaultGrace is how long a command has to end after SIGTERM, unless Config.Grace says otherwise.
const defaultGrace = 10 * time.Second

// patience is how many requests to end a command may ignore.
const patience = 3

// agentPatience is how long an MCP server has to end after its agent asked for
// it: agents kill this process 2 seconds after that.
const agentPatience = 1500 * time.Millisecond

// passSignals passes the caller's signals on. A command that ignores being
// asked to end is ended by end.
func (r *relay) passSignals(end func(why string), ended <-chan struct{}) {
	var resized <-chan os.Signal
	if r.Streams.Console != nil {
		resized = r.Streams.Console.Resized()
	}
	asked := 0
	var late *time.Timer // ends a command that was asked to
	for {
		select {
		case <-ended:
			return
		case <-resized:
			r.resize()
		case s := <-r.Signals:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if sig == syscall.SIGTSTP {
				r.proc.Signal(syscall.SIGSTOP)
				continue
			}
			if asked++; asked >= patience {
				end("")
				continue
			}
			switch grace := cmp.Or(r.Grace, defaultGrace); {
			case r.Server != nil && asked == 1:
				late := time.AfterFunc(agentPatience, func() { end("the agent asked the server to end, and it did not") })
				defer late.Stop()
			case r.Server == nil && sig == syscall.SIGTERM && late == nil:
				late = time.AfterFunc(grace, func() { end(fmt.Sprintf("the command did not end within %v of SIGTERM (--grace)", grace)) })
				defer late.Stop()
			}
			r.proc.Signal(sig)
		}
	}
}
