//go:build linux

package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// outputCap bounds what is kept of each output stream, in bytes.
const outputCap = 1 << 20

// Target is a way to run a command: a sandbox, or none.
type Target interface {
	Name() string
	// Run starts argv for w and returns when it has ended. It fills in Exit,
	// Refused, Stdout, Stderr and Err.
	Run(ctx context.Context, w *World, c Command, argv []string) Observation
}

// None runs the command as it is, beside a proxy that believes everything where
// there is a network. Nearly every row must escape there.
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
	return start(ctx, w, c, argv, c.Options.Env)
}

// Bwrap is bubblewrap as it is commonly called: everything in view read-only,
// the workspace writable.
type Bwrap struct{ Path string }

// Name implements Target.
func (Bwrap) Name() string { return "bwrap" }

// Run implements Target.
func (b Bwrap) Run(ctx context.Context, w *World, c Command, argv []string) Observation {
	if c.Options.Memory+c.Options.Processes+c.Options.Files+c.Options.FileSize+c.Options.Disk != 0 || c.Options.Time != 0 {
		return Observation{Err: fmt.Errorf("limits: %w", ErrUnsupported)}
	}
	if len(c.Options.Hide) > 0 {
		return Observation{Err: fmt.Errorf("hiding a part of the workspace: %w", ErrUnsupported)}
	}
	if len(c.Options.Reach)+len(c.Options.HostPorts)+len(c.Options.Secrets) > 0 {
		return Observation{Err: fmt.Errorf("destinations: %w", ErrUnsupported)}
	}
	path := b.Path
	if path == "" {
		path = "bwrap"
	}
	args := []string{path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--unshare-all", "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--bind", w.W, w.W}
	for _, p := range c.Options.Write {
		args = append(args, "--bind", w.Path(p), w.Path(p))
	}
	for _, e := range c.Options.Env {
		if k, v, ok := strings.Cut(e, "="); ok {
			args = append(args, "--setenv", k, v)
		}
	}
	args = append(args, "--chdir", w.W, "--")
	return start(ctx, w, c, append(args, argv...), nil)
}

// Holdfast is this product, as a binary.
type Holdfast struct {
	Path  string
	Extra []string // flags added to every run, for ablation
}

// Name implements Target.
func (Holdfast) Name() string { return "holdfast" }

// Run implements Target.
func (h Holdfast) Run(ctx context.Context, w *World, c Command, argv []string) Observation {
	args := append([]string{h.Path, "run", "--workspace", w.W}, h.Extra...)
	for _, p := range c.Options.Read {
		args = append(args, "--ro", w.Path(p))
	}
	for _, p := range c.Options.Write {
		args = append(args, "--rw", w.Path(p))
	}
	for _, p := range c.Options.Hide {
		args = append(args, "--hide", strings.TrimPrefix(w.Path(p), w.W))
	}
	for _, e := range c.Options.Env {
		args = append(args, "--env", e)
	}
	if sections := limitsYAML(c.Options) + networkYAML(c.Options); sections != "" {
		policy := w.B + "/policy-" + hexes(4) + ".yaml"
		if err := os.WriteFile(policy, []byte("version: 1\nextends: local\n"+sections), 0o644); err != nil {
			return Observation{Err: err}
		}
		args = append(args, "--policy", policy)
	}
	o := start(ctx, w, c, append(append(args, "--"), argv...), nil)
	// 125 is also what a command may return; one that ran has said so.
	o.Refused = o.Exit == 125 && len(o.Stdout) == 0 && len(o.Stderr) > 0
	return o
}

func limitsYAML(o Options) string {
	var b strings.Builder
	for _, l := range []struct {
		name  string
		value int64
		unit  string
	}{
		{"memory", o.Memory, "B"}, {"processes", o.Processes, ""}, {"files", o.Files, ""},
		{"filesize", o.FileSize, "B"}, {"disk", o.Disk, "B"}, {"time", int64(o.Time / time.Millisecond), "ms"},
	} {
		if l.value != 0 {
			fmt.Fprintf(&b, "  %s: %d%s\n", l.name, l.value, l.unit)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "limits:\n" + b.String()
}

func networkYAML(o Options) string {
	var b strings.Builder
	list := func(v any) string {
		return strings.ReplaceAll(strings.Trim(fmt.Sprintf("%q", v), "[]"), "\" \"", "\", \"")
	}
	for _, r := range o.Reach {
		fmt.Fprintf(&b, "    - {host: %q, ports: [%s], kind: %s", r.Host, strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Ports), " ", ", "), "[]"), r.Kind)
		for _, part := range []struct {
			name, value string
			given       bool
		}{
			{"methods", "[" + list(r.Methods) + "]", len(r.Methods) > 0}, {"paths", "[" + list(r.Paths) + "]", len(r.Paths) > 0},
			{"credential", r.Credential, r.Credential != ""}, {"internal", "true", r.Internal}, {"inspect", "true", r.Inspect},
		} {
			if part.given {
				fmt.Fprintf(&b, ", %s: %s", part.name, part.value)
			}
		}
		b.WriteString("}\n")
	}
	out := ""
	if b.Len() > 0 {
		out = "  allow:\n" + b.String()
	}
	if len(o.HostPorts) > 0 {
		out += "  host-ports: " + strings.ReplaceAll(fmt.Sprint(o.HostPorts), " ", ", ") + "\n"
	}
	if out != "" {
		out = "network:\n" + out
	}
	for i, s := range o.Secrets {
		if i == 0 {
			out += "credentials:\n"
		}
		out += fmt.Sprintf("  - {name: secret%d, source: {env: %s}, hosts: [%s], header: %q, env: %s}\n", i, s.Env, s.Host, s.Header, s.Env)
	}
	return out
}

// start runs argv as a launcher is run: in a process group of its own, with
// the environment of the world and nothing of ours.
func start(ctx context.Context, w *World, c Command, argv, env []string) Observation {
	argv = slices.Concat(w.Under, argv)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append([]string{"HOME=" + w.H, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb"}, w.Env...)
	for _, e := range env {
		if strings.Contains(e, "=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = w.W
	}
	cmd.ExtraFiles = w.Files
	var out, errs capped
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	if c.Options.Terminal {
		return onTerminal(cmd)
	}
	err := cmd.Run()
	return observe(cmd, err, &out, &errs)
}

func observe(cmd *exec.Cmd, err error, stdout, stderr *capped) Observation {
	o := Observation{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Flooded: stdout.over || stderr.over}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && cmd.ProcessState == nil {
		o.Err = err
		return o
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		o.Exit = 128 + int(st.Signal())
	} else {
		o.Exit = cmd.ProcessState.ExitCode()
	}
	return o
}

// capped keeps the first outputCap bytes and swallows the rest.
type capped struct {
	bytes.Buffer
	over bool
}

func (c *capped) Write(b []byte) (int, error) {
	if room := outputCap - c.Len(); room > 0 {
		c.Buffer.Write(b[:min(room, len(b))])
	}
	c.over = c.over || c.Len() >= outputCap
	return len(b), nil
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
