//go:build linux

package probe

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// outputCap limits what is kept of each output stream, in bytes.
const outputCap = 1 << 20

// Target is a way to run a command: a sandbox, or none.
type Target interface {
	Name() string
	// Run starts argv for w and returns when it has ended. It fills in Exit, Refused,
	// Stdout, Stderr and Err.
	Run(ctx context.Context, w *World, c Command, argv []string) Observation
}

// None runs the command without a sandbox; if there is a network, beside a proxy
// that believes everything. Nearly every row must escape there.
type None struct{}

// Name implements Target.
func (None) Name() string { return "none" }

// Run implements Target.
func (None) Run(ctx context.Context, w *World, c Command, argv []string) Observation {
	if w.net != nil {
		stop, err := naive()
		if err != nil {
			return Observation{Err: err}
		}
		defer stop()
	}
	return Start(ctx, w, c, argv, c.Options.Env)
}

// Policied is a target that takes its policy from a file.
type Policied interface {
	// WithPolicy returns the target called with the policy at path, whatever is there.
	WithPolicy(path string) Target
}

// Movable is a target whose program also runs from another location.
type Movable interface {
	// Program returns the path of the program.
	Program() (string, error)
	// At returns the target run from a copy of the program at path.
	At(path string) Target
}

// Start runs argv as a launcher: in a process group of its own, with the
// environment of the world, the variables of env that have a value, and nothing
// of ours. When ctx ends the whole group is killed.
func Start(ctx context.Context, w *World, c Command, argv, env []string) Observation {
	argv = slices.Concat(w.Under, argv)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append([]string{"HOME=" + w.Home(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb"}, w.Env...)
	for _, e := range env {
		if strings.Contains(e, "=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = w.Work()
	}
	cmd.Env = append(cmd.Env, "PWD="+cmd.Dir) // as a shell sets it, possibly through a link
	cmd.ExtraFiles = w.Files
	var out, errs cappedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	if c.Options.Terminal {
		return onTerminal(cmd, w)
	}
	excess, err := runWithin(cmd, w)
	o := observe(cmd, err, &out, &errs)
	o.Excess = excess
	return o
}

func observe(cmd *exec.Cmd, err error, stdout, stderr *cappedBuffer) Observation {
	o := Observation{Stdout: stdout.kept.Bytes(), Stderr: stderr.kept.Bytes(), Flooded: stdout.over || stderr.over}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && cmd.ProcessState == nil {
		o.Err = err
		return o
	}
	o.Used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.Peak = usage.Maxrss << 10
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		o.Exit = 128 + int(st.Signal())
	} else {
		o.Exit = cmd.ProcessState.ExitCode()
	}
	return o
}

// cappedBuffer keeps the first outputCap bytes and discards the rest. It embeds no
// buffer: io.Copy would find the buffer's ReadFrom, which keeps everything.
type cappedBuffer struct {
	kept bytes.Buffer
	over bool
}

func (c *cappedBuffer) Write(b []byte) (int, error) {
	if room := outputCap - c.kept.Len(); room > 0 {
		c.kept.Write(b[:min(room, len(b))])
	}
	c.over = c.over || c.kept.Len() >= outputCap
	return len(b), nil
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
