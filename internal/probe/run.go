//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Runner plays rows against targets.
type Runner struct {
	Prober string // static binary of inside/prober
	Dir    string // where worlds are made; a place that no sandbox hides, such as below the home
	// Outside is the network that the launcher is started in; without one no row
	// that needs a network is played.
	Outside *Outside
}

// NewRunner builds the prober below the home, where a user's projects are and
// where worlds are then made: a sandbox with a private /tmp would hide them
// there without any merit. done removes what it built. PROBE_PROBER names a
// prober that is built already, for a host without a compiler.
func NewRunner(ctx context.Context) (n Runner, done func() error, err error) {
	done = func() error { return nil }
	home, err := os.UserHomeDir()
	if err != nil {
		return Runner{}, done, err
	}
	if p := os.Getenv("PROBE_PROBER"); p != "" {
		return Runner{Prober: p, Dir: home}, done, nil
	}
	dir, err := os.MkdirTemp("", "prober-")
	if err != nil {
		return Runner{}, done, err
	}
	done = func() error { return os.RemoveAll(dir) }
	prober, err := BuildProber(ctx, dir)
	return Runner{Prober: prober, Dir: home}, done, err
}

// Unheld are the results that speak against a target: escapes, and runs that
// proved nothing, but those of the rows in lacking for which the host or the
// target lacks something.
func Unheld(results []Result, lacking ...string) []Result {
	var out []Result
	for _, r := range results {
		held := r.Verdict == Held || r.Verdict == Residual
		if !held && !(r.Missing && slices.Contains(lacking, r.Row.ID)) {
			out = append(out, r)
		}
	}
	return out
}

// Session is one row being played; Drive works with it.
type Session struct {
	World  *World
	Target Target
	Row    Row
	ctx    context.Context
	obs    []Observation
}

// Run starts the prober in the target once. What it printed counts for the
// verdict. A zero Command field means what the row says.
func (s *Session) Run(c Command) Observation {
	o := s.Start(c)()
	return o
}

// Fail says that the row could not be played as it is meant.
func (s *Session) Fail(err error) { s.obs = append(s.obs, Observation{Err: err}) }

// Start is Run for a command that others overlap with; the function that it
// returns waits for the end. It may be called from one goroutine only.
func (s *Session) Start(c Command) (wait func() Observation) {
	if c.Action == "" {
		c.Action, c.Args = s.Row.Action, s.Row.Args
	}
	args := []string{"W=" + s.World.W, "O=" + s.World.O, "H=" + s.World.H, "R=" + s.World.R}
	for _, a := range append(slices.Clone(c.Args), s.World.args...) {
		k, v, _ := strings.Cut(a, "=")
		lines := strings.Split(v, "\n")
		for i := range lines {
			lines[i] = s.World.Path(lines[i])
		}
		args = append(args, k+"="+strings.Join(lines, "\n"))
	}
	nonce := hexes(12)
	c.Args = args
	limit := s.Row.Timeout
	if limit == 0 {
		limit = 20 * time.Second
	}
	done := make(chan Observation, 1)
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, limit)
		defer cancel()
		begun := time.Now()
		o := s.Target.Run(ctx, s.World, c, append([]string{s.World.prober, nonce, c.Action}, args...))
		o.Nonce, o.Took, o.TimedOut = nonce, time.Since(begun), ctx.Err() == context.DeadlineExceeded
		done <- o
	}()
	return func() Observation {
		o := <-done
		s.obs = append(s.obs, o)
		return o
	}
}

// Play plays one row against one target.
func (n Runner) Play(ctx context.Context, t Target, r Row) (res Result) {
	begun := time.Now()
	res = Result{Row: r, Target: t.Name()}
	defer func() { res.Took = time.Since(begun) }()
	if missing := n.unmet(r.Needs); missing != "" {
		res.Reason, res.Missing = ErrMissing.Error()+": "+missing, true
		return res
	}
	w, err := newWorld(n.Dir, n.Prober, r.Workspace)
	if err != nil {
		res.Reason = "no world: " + err.Error()
		return res
	}
	defer func() {
		if err := w.remove(); err != nil {
			res.Verdict, res.Reason = Inconclusive, "not cleaned up: "+err.Error()
		}
	}()
	w.outside, w.reach = n.Outside, r.Options.Reach
	if err := w.arrange(r); err != nil {
		res.Reason = "set-up: " + err.Error()
		if errors.Is(err, ErrMissing) {
			res.Reason, res.Missing = err.Error(), true
		}
		return res
	}
	if err := w.adopt(); err != nil {
		res.Reason = "set-up: " + err.Error()
		return res
	}
	w.net.begin()
	s := &Session{World: w, Target: t, Row: r, ctx: ctx}
	if r.Drive != nil {
		r.Drive(s)
	} else {
		s.Run(Command{Options: r.Options})
	}
	res.Effects = n.look(s)
	for _, o := range s.obs {
		said, _, _ := parse(o)
		res.Said = append(res.Said, said...)
	}
	res.Verdict, res.Reason = judge(r, s.obs, res.Effects)
	res.Missing = res.Verdict == Inconclusive && slices.ContainsFunc(s.obs, func(o Observation) bool { return errors.Is(o.Err, ErrUnsupported) })
	if res.Verdict == Held && !s.controlled() {
		res.Verdict, res.Reason = Inconclusive, "control failed: W/ok.txt was not written, as seen from outside"
	}
	return res
}

// look asks everything outside what it saw.
func (n Runner) look(s *Session) []string {
	effects := s.World.changes()
	effects = append(effects, s.World.leaks(s.obs)...)
	if s.Row.Oracle != nil {
		var last Observation
		if len(s.obs) > 0 {
			last = s.obs[len(s.obs)-1]
		}
		effects = append(effects, s.Row.Oracle(s.World, last)...)
	}
	return effects
}

// controlled looks from the outside whether the last command that was not
// refused could write the workspace, which it had to.
func (s *Session) controlled() bool {
	b, err := readSome(filepath.Join(s.World.W, "ok.txt"))
	refused := true
	for _, o := range s.obs {
		refused = refused && o.Refused
		if err == nil && string(b) == o.Nonce && o.Nonce != "" {
			return true
		}
	}
	return refused
}

// Run plays rows one after the other. A refusal to start counts as a defence
// only for a target that has started something else before.
func (n Runner) Run(ctx context.Context, t Target, rows []Row) []Result {
	smoke := n.Play(ctx, t, Row{ID: "RUN-000", Kind: Control, Action: "nothing", Title: "the target runs a command at all"})
	out := []Result{smoke}
	for _, r := range rows {
		if smoke.Verdict != Held {
			r.RefusalHolds = false
		}
		out = append(out, n.Play(ctx, t, r))
	}
	return out
}

// Table prints results for a terminal.
func Table(out io.Writer, results []Result) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.Row.ID, r.Target, r.Verdict, r.Row.Title, r.Reason)
	}
	return tw.Flush()
}

// ErrMissing is wrapped by a set-up that finds that the host lacks something.
var ErrMissing = errors.New("precondition missing")

// unmet names the first need that the host does not meet, or "".
func (n Runner) unmet(needs []string) string {
	for _, need := range needs {
		if need == "network" {
			if n.Outside == nil {
				return need
			}
			continue
		}
		met, ok := hostHas[need]
		if !ok {
			return need + " (unknown)"
		}
		if !met() {
			return need
		}
	}
	return ""
}

// hostHas are the preconditions that a row may name in Needs.
var hostHas = map[string]func() bool{
	"root":        func() bool { return os.Geteuid() == 0 },
	"user":        func() bool { return os.Geteuid() != 0 },
	"sysrq":       func() bool { return exists("/proc/sysrq-trigger") },
	"binfmt_misc": func() bool { return exists("/proc/sys/fs/binfmt_misc/register") },
	"bwrap":       func() bool { return onPath("bwrap") },
	"tar":         func() bool { return onPath("tar") },
	"git":         func() bool { return onPath("git") },
	"bash":        func() bool { return onPath("bash") },
	"python":      func() bool { return onPath("python3") },
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
