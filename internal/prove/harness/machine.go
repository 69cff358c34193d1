//go:build linux

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// MachineCommand is the hidden command that plays rows on a machine that it has
// changed for itself: [Machine].
const MachineCommand = "prove-machine"

// machineTask is what a process of MachineCommand plays, and where.
type machineTask struct {
	Rows    []string    `json:"rows"`
	Target  namedTarget `json:"target"`
	World   string      `json:"world"`
	Dir     string      `json:"dir"`
	Prober  string      `json:"prober"`
	Worker  []string    `json:"worker"`
	Workers int         `json:"workers"`
}

// playInMachine plays rows in a process of its own, with the mounts of the world.
// Results are in the order of rows.
func (o Options) playInMachine(ctx context.Context, rows []probe.Row) ([]probe.Result, error) {
	if len(o.Machine) == 0 {
		return nil, errors.New("no program is given that changes the machine")
	}
	target, err := nameTarget(o.Target)
	if err != nil {
		return nil, err
	}
	out := machineTask{Target: target, World: o.World.Name, Dir: o.Place.Dir, Prober: o.Place.Prober, Worker: o.Worker, Workers: o.workers()}
	byID := map[string]probe.Row{}
	for _, r := range rows {
		out.Rows = append(out.Rows, r.ID)
		byID[r.ID] = r
	}
	line, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	c, err := o.startMachine(ctx, line)
	if err != nil {
		return nil, err
	}
	defer c.results.Close()
	defer c.stop()
	got := map[string]probe.Result{}
	for read := json.NewDecoder(c.results); err == nil; {
		var a reply
		if err = read.Decode(&a); err != nil {
			break
		}
		got[a.Row] = a.Result.result(byID[a.Row])
		if o.Progress != nil {
			o.Progress(len(got), len(rows), got[a.Row])
		}
	}
	_ = c.in.Close()
	if died := <-c.ended; errors.Is(err, io.EOF) {
		err = died
	}
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("world %s: %w: %s", o.World.Name, err, c.said)
	}
	return inOrder(rows, got, o.Target.Name()), nil
}

// inOrder returns results in the order of rows, also for rows without one.
func inOrder(rows []probe.Row, got map[string]probe.Result, target string) []probe.Result {
	all := make([]probe.Result, len(rows))
	for i, r := range rows {
		res, played := got[r.ID]
		if !played {
			res = probe.Result{Row: r, Target: target, Reason: "not played: the process of its world ended before"}
		}
		all[i] = res
	}
	return all
}

// machineProcess is a process of MachineCommand.
type machineProcess struct {
	in      io.WriteCloser // closing it ends the process
	results *os.File
	said    *tail
	ended   chan error
	stop    func() bool
}

// startMachine starts a process of MachineCommand and writes its task. When ctx ends,
// so does the process.
func (o Options) startMachine(ctx context.Context, line []byte) (c machineProcess, err error) {
	cmd := o.World.made.Command(slices.Concat(o.Machine, []string{string(o.World.made), o.Place.Dir})...)
	c.said = &tail{}
	cmd.Stderr = c.said
	if c.in, err = cmd.StdinPipe(); err != nil {
		return c, err
	}
	results, theirs, err := os.Pipe()
	if err != nil {
		return c, err
	}
	cmd.Stdout = theirs
	if c.ended, err = startHere(cmd); err != nil {
		return c, fmt.Errorf("%w: starting a process with its own mounts: %w", ErrNothingRan, errors.Join(err, theirs.Close(), results.Close()))
	}
	c.results = results
	c.stop = context.AfterFunc(ctx, func() {
		_ = c.in.Close()
		time.AfterFunc(2*lastWords, func() { _ = cmd.Process.Kill() })
	})
	_, err = c.in.Write(append(line, '\n'))
	return c, errors.Join(err, theirs.Close())
}

// startHere starts cmd from a thread that lives until cmd has ended, because the
// death signal is sent when the thread ends (PR_SET_PDEATHSIG(2const)). The
// result of Wait comes over the channel.
func startHere(cmd *exec.Cmd) (ended chan error, err error) {
	started := make(chan error)
	ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// Machine is MachineCommand. With two arguments, a machine and a directory, it
// makes the mounts of the machine and executes itself without arguments, and, as
// an ordinary user, without the right to mount.
func Machine(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 2 {
		return probe.Machine(args[0]).Enter(args[1], []string{os.Args[0], MachineCommand})
	}
	var e machineTask
	read := json.NewDecoder(in)
	if err := read.Decode(&e); err != nil {
		return fmt.Errorf("reading what to play: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel() // the parent is gone, or wants an end
		_ = read.Decode(new(machineTask))
	}()
	return e.play(ctx, json.NewEncoder(out))
}

// play plays what was sent and writes each result as it comes.
func (e machineTask) play(ctx context.Context, enc *json.Encoder) error {
	target, err := e.Target.target()
	if err != nil {
		return err
	}
	worlds, err := WorldsNamed(e.World)
	if err != nil {
		return err
	}
	rows, err := Select(probe.All(), e.Rows)
	if err != nil {
		return err
	}
	w := worlds[0]
	dir := e.Dir
	if w.made == probe.OnTmpfs {
		dir = filepath.Join(dir, string(probe.OnTmpfs))
	}
	var failed error
	o := Options{Target: target, Workers: e.Workers, Worker: e.Worker, Place: &Place{Dir: dir, Prober: e.Prober}, World: w}
	o.Progress = func(_, _ int, r probe.Result) {
		failed = errors.Join(failed, enc.Encode(reply{Row: r.Row.ID, Result: outcomeOf(r)}))
	}
	_, err = o.playHere(ctx, rows)
	return errors.Join(err, failed)
}
