//go:build linux

package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/prove/probe"
)

// Options choose between installations of a target.
type Options struct {
	Holdfast string // our own program; "" for the running one
	Path     string // the program of any other target; "" to look for its name in PATH
}

// ErrNotHere is wrapped by the error for a target whose program is missing.
var ErrNotHere = errors.New("it is not installed")

// ErrUnknown is wrapped by the error for a name that no target has.
var ErrUnknown = errors.New("there is no target with this name")

// hinted is an error with a hint.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint is the next command to type.
func (h hinted) Hint() string { return h.hint }

// Names are the targets that Named knows, our own first.
func Names() []string {
	names := []string{"holdfast", "none"}
	for _, s := range specs() {
		names = append(names, s.name)
	}
	return names
}

// Named returns the target of that name. If its program is missing, the error
// says what to install, with the next command to type as its Hint.
func Named(name string, o Options) (probe.Target, error) {
	switch name {
	case "none":
		return probe.None{}, nil
	case "holdfast":
		if o.Holdfast == "" {
			self, err := os.Executable()
			return Holdfast{Path: self}, err
		}
		path, err := filepath.Abs(o.Holdfast)
		return Holdfast{Path: path}, err
	}
	p := Peer{Kind: name}
	s, err := p.spec()
	if err != nil {
		return nil, hinted{err, "the targets are " + strings.Join(Names(), ", ") + "; anything else: --target-cmd 'PROG --flags -- {}'"}
	}
	if p.Path, err = find(s, o.Path); err != nil {
		return nil, err
	}
	if p.Owner, err = owner(os.Getpid()); err != nil {
		return nil, err
	}
	return p, nil
}

// find is the absolute path of the program of a peer.
func find(s spec, path string) (string, error) {
	if path == "" {
		path = s.name
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", hinted{fmt.Errorf("target %s: %w: %w", s.name, ErrNotHere, err), s.install}
	}
	if found, err = filepath.Abs(found); err != nil {
		return "", fmt.Errorf("target %s: %w", s.name, err)
	}
	if s.locate != nil {
		return s.locate(found)
	}
	return found, nil
}

// owner identifies a process uniquely: by PID and start time.
func owner(pid int) (string, error) {
	fields, err := sys.StatFields(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%s", pid, fields[sys.StatStarted]), nil
}

// isAlive reports whether that process still runs.
func isAlive(name string) bool {
	var pid int
	if _, err := fmt.Sscanf(name, "%d-", &pid); err != nil {
		return false
	}
	now, err := owner(pid)
	return err == nil && now == name
}

// preparer is a target that must inspect the machine before it runs anything.
type preparer interface {
	prepare(ctx context.Context) error
}

// releaser is a target that leaves something outside the worlds.
type releaser interface {
	release(ctx context.Context) error
}

// Ready checks that a target runs the prober at all. If not, the error says why,
// and its Hint what to do next: a target in which the prober is not visible would
// otherwise be inconclusive in every row. Call Release after all rows, also after
// an error.
func Ready(ctx context.Context, n probe.Runner, t probe.Target) error {
	if p, ok := t.(preparer); ok {
		if err := p.prepare(ctx); err != nil {
			return fmt.Errorf("target %s: %w", t.Name(), err)
		}
	}
	seen := &witness{Target: t}
	n.Done = nil
	res := n.Play(ctx, seen, probe.Row{ID: probe.SmokeID, Kind: probe.Control, Action: "nothing"})
	if res.Verdict == probe.Held {
		return nil
	}
	err := fmt.Errorf("target %s runs nothing: %s", t.Name(), res.Reason)
	switch {
	case proberHidden(seen.last, seen.prober):
		return hinted{fmt.Errorf("the prober %s is not visible in the target %s: %s", seen.prober, t.Name(), res.Reason),
			"mount it read-only, or its directory, the workspace, at the same path; in --target-cmd {W} stands for the workspace"}
	case seen.last.Flooded:
		return hinted{err, "silence the output of the target itself; the prober says what it found on standard output"}
	case seen.last.TimedOut || ctx.Err() != nil:
		return hinted{err, "the target must end when its command does; does it wait for a terminal or for a question to be answered?"}
	}
	return hinted{err, "try it by hand with a command such as /bin/true, in a directory below the home"}
}

// witness keeps the last observation.
type witness struct {
	probe.Target
	prober string
	last   probe.Observation
}

// Run implements [probe.Target].
func (s *witness) Run(ctx context.Context, w *probe.World, c probe.Command, argv []string) probe.Observation {
	s.prober = argv[0]
	s.last = s.Target.Run(ctx, w, c, argv)
	s.last.TimedOut = ctx.Err() != nil
	return s.last
}

// proberHidden reports whether a launcher complained that the prober is missing: shells
// and container engines do so with the status 126 or 127, the others with the
// message of ENOENT.
func proberHidden(o probe.Observation, prober string) bool {
	if o.Exit == 0 || o.Flooded || strings.Contains(string(o.Stdout), `"nonce"`) {
		return false
	}
	output := strings.ToLower(string(o.Stdout) + string(o.Stderr))
	if o.Exit == 127 {
		return true
	}
	named := strings.Contains(output, strings.ToLower(prober)) || strings.Contains(output, "exec") || strings.Contains(output, "chdir")
	return named && (strings.Contains(output, "no such file or directory") || strings.Contains(output, "not found"))
}

// Release removes what the runs of t have left outside their worlds.
func Release(ctx context.Context, t probe.Target) error {
	if r, ok := t.(releaser); ok {
		if err := r.release(ctx); err != nil {
			return fmt.Errorf("target %s: removing what it left: %w", t.Name(), err)
		}
	}
	return nil
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}
