//go:build linux

package targets

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// Peer is another project's sandbox. Make one with [Named].
type Peer struct {
	Kind  string // its name
	Path  string // of the program
	Owner string // of what it may leave behind: a process, see owner
}

// spec is what is specific to a peer.
type spec struct {
	name    string
	install string   // command that installs it
	version []string // arguments that make it print its version

	// locate follows a wrapper to the program itself; nil if there is none.
	locate func(path string) (string, error)
	// call translates a command. It changes nothing: the files and directories
	// that the call needs are listed in it.
	call func(p Peer, w *probe.World, c probe.Command, run invocation) (call, error)
	// refused recognises a refusal by the launcher, by its status and messages.
	// It is called only if the command has printed nothing.
	refused func(status int, said string) bool
	// prepare checks whether it can run here, and removes what killed runs have
	// left; nil if there is nothing to do.
	prepare func(ctx context.Context, p Peer) error
	// release removes what is left after the last run; nil if there is nothing.
	release func(ctx context.Context, p Peer) error
}

// invocation is one start of the command.
type invocation struct {
	name string // unique to this start, lower-case letters and digits
	argv []string
}

// call is a command line and what it requires.
type call struct {
	argv  []string
	env   []string          // NAME=VALUE, for the launcher
	dirs  []string          // created before
	files map[string]string // written before: path to content
	// killed runs after a run that was cut short, for what does not end with its
	// launcher; may be nil.
	killed func(context.Context) error
}

// specs are the supported peers, in the order in which they are listed.
func specs() []spec {
	return []spec{dockerSpec, podmanSpec, bwrapSpec, srtSpec, codexSpec, runscSpec, firejailSpec}
}

func (p Peer) spec() (spec, error) {
	for _, s := range specs() {
		if s.name == p.Kind {
			return s, nil
		}
	}
	return spec{}, fmt.Errorf("%w: %q", ErrUnknown, p.Kind)
}

// patience is how long a query command may take.
const patience = 20 * time.Second

// Name implements [probe.Target].
func (p Peer) Name() string { return p.Kind }

// Program implements [probe.Movable].
func (p Peer) Program() (string, error) { return p.Path, nil }

// At implements [probe.Movable].
func (p Peer) At(path string) probe.Target {
	p.Path = path
	return p
}

// Run implements [probe.Target].
func (p Peer) Run(ctx context.Context, w *probe.World, c probe.Command, argv []string) probe.Observation {
	s, err := p.spec()
	if err != nil {
		return probe.Observation{Err: err}
	}
	line, err := s.call(p, w, c, invocation{strings.ToLower(rand.Text()), argv})
	if err != nil {
		return probe.Observation{Err: err}
	}
	for _, dir := range line.dirs {
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
	}
	for path, content := range line.files {
		err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644))
	}
	if err != nil {
		return probe.Observation{Err: err}
	}
	o := probe.Start(ctx, w, c, line.argv, line.env)
	if ctx.Err() != nil && line.killed != nil {
		// The context that ended the run would end this too.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := line.killed(after); err != nil {
			o.Err = fmt.Errorf("removing what the interrupted run left: %w", err)
		}
	}
	o.Refused = o.Exit != 0 && s.refused(o.Exit, launcherOutput(o, c.Options.Terminal))
	return o
}

// launcherOutput is the launcher's own output: the standard error of a run in which the
// command has printed nothing. On a terminal both outputs are one.
func launcherOutput(o probe.Observation, terminal bool) string {
	switch {
	case terminal && !strings.Contains(string(o.Stdout), `"nonce"`):
		return string(o.Stdout)
	case len(o.Stdout) == 0:
		return string(o.Stderr)
	}
	return ""
}

// refusedByPrefix is a refused for launchers whose messages begin with one of marks. A
// failure to execute the command also comes from the launcher, but it is no
// refusal: the prober is not visible inside.
func refusedByPrefix(marks ...string) func(int, string) bool {
	return func(_ int, said string) bool {
		refusal := false
		for line := range strings.Lines(said) {
			if strings.Contains(line, "execvp") {
				return false
			}
			for _, m := range marks {
				refusal = refusal || strings.HasPrefix(strings.TrimSpace(line), m)
			}
		}
		return refusal
	}
}

func (p Peer) prepare(ctx context.Context) error {
	s, err := p.spec()
	if err != nil || s.prepare == nil {
		return err
	}
	return s.prepare(ctx, p)
}

func (p Peer) release(ctx context.Context) error {
	s, err := p.spec()
	if err != nil || s.release == nil {
		return err
	}
	return s.release(ctx, p)
}

// missingOption is the error for an option in o that can does not list, or nil.
func missingOption(o probe.Options, can string) error {
	for _, ask := range []struct {
		word  string
		asked bool
		what  string
	}{
		{"read", len(o.Read) > 0, "showing a path read-only"}, {"write", len(o.Write) > 0, "showing a path to write"},
		{"hide", len(o.Hide) > 0, "hiding a part of the workspace"}, {"env", len(o.Env) > 0, "giving a variable"},
		{"memory", o.Memory > 0, "a limit on memory"}, {"processes", o.Processes > 0, "a limit on processes"},
		{"files", o.Files > 0, "a limit on descriptors"}, {"filesize", o.FileSize > 0, "a limit on the size of a file"},
		{"disk", o.Disk > 0, "a limit on private storage"}, {"time", o.Time > 0, "a limit on time"},
		{"terminal", o.Terminal, "a terminal"}, {"reach", len(o.Reach) > 0, "destinations"},
		{"ports", len(o.HostPorts) > 0, "ports of the host"}, {"secrets", len(o.Secrets) > 0, "lent credentials"},
	} {
		if ask.asked && !strings.Contains(" "+can+" ", " "+ask.word+" ") {
			return fmt.Errorf("%s: %w", ask.what, probe.ErrUnsupported)
		}
	}
	return nil
}

// expandPaths expands the path templates; never nil.
func expandPaths(w *probe.World, templates []string) []string {
	out := []string{}
	for _, t := range templates {
		out = append(out, filepath.Clean(w.Path(t)))
	}
	return out
}
