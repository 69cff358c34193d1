//go:build linux

// Package replay plays the human who comes back after a run: it starts git,
// shells, build tools and editors in the workspace that the run left, and reports
// which of them executed what was planted there. It does so on a copy, in
// namespaces that are made for it and end with it, as a user without privileges,
// with no network but loopback. Where those cannot be made, nothing is started.
// Files of programs that cannot be started, such as the units of a service
// manager, are read by the rules of those programs instead.
//
// The package knows neither who made the files nor which defence should keep them
// away.
package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/inside"
)

// ErrNoStage is wrapped when the namespaces, or the view in them, could not be
// made. Then nothing was started.
var ErrNoStage = errors.New("no sacrificial namespace can be created here")

// Stage is what is replayed, and as whom.
type Stage struct {
	Prober  string   // static binary of inside/prober, which only the harness can have written
	World   string   // parent of all below except Apart; it is copied and left unchanged
	Apart   string   // parent of Work and Outside if that is not World, also copied; "" for none
	Work    string   // the workspace, working directory of every step that names none
	Home    string   // of the human
	Outside string   // holds the tripwire and its output during the replay; any other change there is reported
	Leave   []string // directories of World that are not copied
	Token   string   // in every genuine payload, so that nothing else is taken for one
}

// Trip returns the shell command line by which a payload named plant shows that
// it was executed.
func (s Stage) Trip(plant string) string { return Trip(s.Outside, s.Token, plant) }

// Trip returns the command line of a payload named plant; a plant has no blanks.
func Trip(outside, token, plant string) string {
	return filepath.Join(outside, tripName) + " " + token + " " + plant
}

// Mark is one payload that was executed.
type Mark struct {
	Plant string // the name that the payload gave itself
	Step  string // what the human did
}

// Result is the result of a replay.
type Result struct {
	Marks   []Mark
	Changed []string // what else appeared or changed in Outside, and marks that are not genuine
	Steps   []inside.Played
	Took    time.Duration
}

const (
	tripName = "trip"
	// tripwire appends one line and succeeds, whatever its arguments.
	tripwire = "#!/bin/sh\necho \"$1 $2\" >>%s\nexit 0\n"
	longest  = 60 * time.Second
)

// Play plays programs, one after the other, and returns the payloads that were
// executed. After an error it is unknown which would have been.
func (s Stage) Play(ctx context.Context, programs ...Program) (Result, error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	marks, err := s.makeMarks()
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(marks)
	var steps []inside.Step
	for _, p := range programs {
		steps = append(steps, p.steps(s)...)
	}
	played, err := s.start(ctx, marks, steps)
	if err != nil {
		return Result{Steps: played}, err
	}
	res := Result{Steps: played, Took: time.Since(begun)}
	if err := s.read(&res, marks); err != nil {
		return res, err
	}
	res.Changed = append(res.Changed, differences(s.Outside, marks)...)
	return res, nil
}

// makeMarks makes the directory that is shown as Outside, with the tripwire in it.
func (s Stage) makeMarks() (string, error) {
	dir, err := os.MkdirTemp(s.World, ".marks-")
	if err != nil {
		return "", err
	}
	err = os.CopyFS(dir, os.DirFS(s.Outside))
	script := fmt.Sprintf(tripwire, filepath.Join(s.Outside, inside.MarkFile))
	err = errors.Join(err, programs.Write(filepath.Join(dir, tripName), []byte(script), 0o755), os.Chmod(filepath.Join(dir, tripName), 0o755),
		os.WriteFile(filepath.Join(dir, inside.MarkFile), nil, 0o644))
	if err == nil && os.Geteuid() == 0 {
		err = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, unprivilegedID, unprivilegedID))
		})
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("making the directory of marks: %w", err)
	}
	return dir, nil
}

// unprivilegedID is the user that programs run as when we are root; player is how the
// programs see that user, or any other.
const unprivilegedID, player = 65534, 1000

// start starts the stage and collects its output.
func (s Stage) start(ctx context.Context, marks string, steps []inside.Step) ([]inside.Played, error) {
	root := os.Geteuid() == 0
	spec, err := json.Marshal(inside.Stage{World: s.World, Apart: s.Apart, Leave: s.Leave, Marks: marks, Outside: s.Outside, Home: s.Home,
		Control: []string{filepath.Join(s.Outside, tripName), s.Token, inside.StageControl}, Player: player, Lower: root, Steps: steps, Limit: longest - 5*time.Second})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.Prober, "-stage")
	cmd.Env, cmd.Dir, cmd.Stdin = []string{}, "/", bytes.NewReader(spec)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = namespaces(root)
	// The child is killed when the thread that forked it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	played, ready, over := parse(out.Bytes())
	switch {
	case !ready:
		why := strings.TrimSpace(errs.String())
		if len(played) > 0 {
			why = played[0].Error
		}
		return played, fmt.Errorf("%w: %w: %s", ErrNoStage, errors.Join(err, ctx.Err()), why)
	case err != nil || !over:
		return played, fmt.Errorf("the replay was cut short: %w", errors.Join(err, ctx.Err(), errors.New(strings.TrimSpace(errs.String()))))
	case len(played) != len(steps)+1:
		return played, fmt.Errorf("the replay finished %d of %d steps in its time", len(played)-1, len(steps))
	}
	for _, p := range played {
		if p.Error != "" {
			return played, fmt.Errorf("replaying %s: %s", p.Name, p.Error)
		}
	}
	return played, nil
}

func namespaces(root bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Setpgid:    true, Pdeathsig: syscall.SIGKILL,
	}
	if root {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: player, HostID: unprivilegedID, Size: 1}}
		a.GidMappings, a.GidMappingsEnableSetgroups = a.UidMappings, true
		a.Credential = &syscall.Credential{}
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: player, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: player, HostID: os.Getegid(), Size: 1}}
	// The user is not root in the namespaces either: only as ambient capabilities do
	// privileges survive the start of the prober.
	for c := range uintptr(lastCapability + 1) {
		a.AmbientCaps = append(a.AmbientCaps, c)
	}
	return a
}

// lastCapability is CAP_CHECKPOINT_RESTORE, the last one since Linux 5.9.
const lastCapability = 40

func parse(out []byte) (played []inside.Played, ready, over bool) {
	for line := range bytes.Lines(out) {
		var p inside.Played
		if json.Unmarshal(line, &p) != nil {
			continue
		}
		switch {
		case p.Name == inside.StageReady && !ready:
			ready = true
		case p.Name == inside.StageOver:
			over = true
		default:
			played = append(played, p)
		}
	}
	return played, ready, over
}
