//go:build linux

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// Runner plays rows against targets.
type Runner struct {
	Prober string // static binary of inside/prober
	Dir    string // where worlds are made; a place that no sandbox hides, such as below the home
	Layout Layout // of the worlds
	Second bool   // a second hostile run is alive in the workspace of each row
	Apart  string // where LayoutApart has workspaces: a directory far from the home
	// Outside is the network that the launcher is started in; without it, rows that
	// need a network are not played.
	Outside *Outside
	// Workers is how many rows are played at a time; 0 means 1. Rows that require it
	// are played alone, and so are those that share a network.
	Workers int
	// Networked plays a row that needs a network, beside others; if nil, it is played
	// here, in Outside, and alone.
	Networked func(context.Context, Target, Row) Result
	// Done is called with each result, one at a time; may be nil.
	Done func(Result)

	host *sync.Map // shell commands, and whether they succeeded
}

// Unheld returns the results that count against a target: escapes, and runs that
// proved nothing, except those of the rows in lacking for which the host or the
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
	cut    bool // a limit ended the command of the row: see [cutShort]
}

// Run starts the prober in the target once. Its output counts for the verdict. A
// zero field of Command means the value of the row.
func (s *Session) Run(c Command) Observation {
	o := s.Start(c)()
	return o
}

// Fail reports that the row could not be played as intended.
func (s *Session) Fail(err error) { s.obs = append(s.obs, Observation{Err: err}) }

// Start is Run for a command that overlaps with others; the function that it
// returns waits for the end. It may be called from one goroutine only.
func (s *Session) Start(c Command) (wait func() Observation) {
	if c.Action == "" {
		c.Action, c.Args = s.Row.Action, s.Row.Args
	}
	args := []string{"W=" + s.World.W, "O=" + s.World.O, "H=" + s.World.H, "R=" + s.World.R, "S=" + s.World.S}
	for _, a := range append(slices.Clone(c.Args), s.World.args...) {
		k, v, _ := strings.Cut(a, "=")
		lines := strings.Split(v, "\n")
		for i := range lines {
			lines[i] = s.World.Path(lines[i])
		}
		args = append(args, k+"="+strings.Join(lines, "\n"))
	}
	nonce, key := hexes(12), []byte(hexes(inside.KeySize/2))
	sealed := filepath.Join(filepath.Dir(s.World.prober), nonce)
	args = append(args, "key="+sealed)
	if s.Row.Least > 0 {
		args = append(args, "least="+strconv.Itoa(s.Row.Least))
	}
	spellings, err := s.tellSpellings()
	if c.Args = append(args, spellings...); err == nil {
		err = os.WriteFile(sealed, key, 0o644)
	}
	args = c.Args
	if err != nil {
		return func() Observation { o := Observation{Err: err}; s.obs = append(s.obs, o); return o }
	}
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
		// The timer of ctx may run late on a busy machine; the clock does not.
		o.Nonce, o.Key, o.Took = nonce, key, time.Since(begun)
		o.TimedOut = o.Took >= limit || ctx.Err() == context.DeadlineExceeded
		done <- o
	}()
	return func() Observation {
		o := <-done
		s.obs = append(s.obs, o)
		return o
	}
}

// tellSpellings writes those of the row beside the prober and returns the argument
// with their location.
func (s *Session) tellSpellings() ([]string, error) {
	if len(s.Row.Spellings) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(s.Row.Spellings)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(filepath.Dir(s.World.prober), "spellings.json")
	return []string{"spellings=" + path}, os.WriteFile(path, b, 0o644)
}

// Play plays one row against one target. A row that must be alone on the machine
// first waits until no other program plays such a row.
func (n Runner) Play(ctx context.Context, t Target, r Row) Result {
	if r.Alone != "" {
		end, err := takeTurn(ctx)
		if err != nil {
			return Result{Row: r, Target: t.Name(), Reason: err.Error()}
		}
		defer end()
	}
	return n.playNow(ctx, t, r)
}

// playNow is Play without waiting.
func (n Runner) playNow(ctx context.Context, t Target, r Row) (res Result) {
	begun := time.Now()
	if n.host == nil {
		n.host = &sync.Map{}
	}
	res = Result{Row: r, Target: t.Name()}
	defer func() { res.Took = time.Since(begun) }()
	if missing := n.unmetNeed(r.Needs); missing != "" {
		res.Reason, res.Missing = ErrMissing.Error()+": "+missing, true
		return res
	}
	w, err := n.newWorld(r.Workspace)
	if err != nil {
		res.Reason = "no world: " + err.Error()
		return res
	}
	defer func() {
		if err := w.remove(); err != nil && res.Verdict != Escaped {
			res.Verdict, res.Reason = Inconclusive, "not cleaned up: "+err.Error()
		}
	}()
	if n.Second && r.Beside == nil {
		r.Beside = &Command{Action: "roam"}
		if r.Kind != Control { // for a control, everything tried must work
			r.Beside.Args = []string{"outside=O/canary"}
		}
	}
	w.target, w.outside, w.reach = t, n.Outside, r.Options.Reach
	if err := errors.Join(w.arrange(r), w.adopt()); err != nil {
		res.Reason = "set-up: " + err.Error()
		if errors.Is(err, ErrMissing) {
			res.Reason, res.Missing = err.Error(), true
		}
		return res
	}
	w.net.begin()
	s := &Session{World: w, Target: t, Row: r, ctx: ctx}
	end := s.startBeside()
	if r.Drive != nil {
		r.Drive(s)
	} else {
		s.Run(Command{Options: r.Options})
	}
	end()
	n.verdict(s, &res)
	return res
}

// collectEffects collects what everything outside saw. Of an incomplete run only what got
// through counts: its launcher could not do its work at the end, such as moving
// files away, naming them or closing the record.
func (n Runner) collectEffects(s *Session) []string {
	effects := append(s.World.proof(), s.World.leaks(s.obs)...)
	remains, broke := s.World.remains(), s.brokeOff()
	if !broke {
		effects = append(effects, remains...)
	}
	if s.Row.Oracle != nil && !s.neverRan() && (!broke || s.Row.Proof) {
		var last Observation
		if len(s.obs) > 0 {
			last = s.obs[len(s.obs)-1]
		}
		effects = append(effects, s.Row.Oracle(s.World, last)...)
	}
	return effects
}

// neverRan reports that every command failed to start: then what an oracle finds
// missing was not prevented.
func (s *Session) neverRan() bool {
	for _, o := range s.ownObservations() {
		if o.Err == nil {
			return false
		}
	}
	return len(s.ownObservations()) > 0
}

// brokeOff reports whether a command was incomplete, or none was started.
func (s *Session) brokeOff() bool {
	return len(s.obs) == 0 || slices.ContainsFunc(s.obs, func(o Observation) bool { return brokeOff(s.Row, o, parse(o)) != "" })
}

// controlled checks from outside that the last command that was not refused could
// write the workspace, as it must.
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

// SmokeID is the row that Run plays first.
const SmokeID = "RUN-000"

// mostAgain is how many rows may prove nothing for want of time, such as a race that
// was run too few times, and are played again. More have another reason.
const mostAgain = 4

// Run plays rows and returns the results in their order, after that of a row that
// only shows that the target runs anything. A refusal to start counts as a
// defence only for a target that has started something else before. A few that prove
// nothing are played once more at the end, with nothing beside them. When ctx ends,
// rows that have not begun are inconclusive.
func (n Runner) Run(ctx context.Context, t Target, rows []Row) []Result {
	out := make([]Result, len(rows)+1)
	n.host = &sync.Map{}
	out[0] = n.Play(ctx, t, Row{ID: SmokeID, Kind: Control, Action: "nothing", Title: "the target runs a command at all"})
	n.reportResult(out[0])
	result := func(r Row) Result {
		if out[0].Verdict != Held {
			r.RefusalHolds = false
		}
		switch {
		case ctx.Err() != nil:
			return Result{Row: r, Target: t.Name(), Reason: "not played: " + context.Canceled.Error()}
		case n.playedElsewhere(r):
			return n.Networked(ctx, t, r)
		}
		return n.Play(ctx, t, r)
	}
	var mu sync.Mutex
	var unproved []int
	play := func(i int) {
		res := result(rows[i])
		mu.Lock()
		defer mu.Unlock()
		out[i+1] = res
		if res.Verdict == Inconclusive && !res.Missing && len(unproved) < mostAgain && out[0].Verdict == Held && ctx.Err() == nil {
			unproved = append(unproved, i)
			return
		}
		n.reportResult(res)
	}
	var group sync.WaitGroup
	room := make(chan struct{}, max(n.Workers, 1))
	together, alone := n.order(rows)
	for _, i := range together {
		room <- struct{}{}
		group.Go(func() { play(i); <-room })
	}
	group.Wait()
	for _, i := range alone {
		play(i)
	}
	for _, i := range unproved {
		if first := out[i+1].Reason; ctx.Err() == nil {
			out[i+1] = result(rows[i])
			out[i+1].Reason += "; it was played twice, because the first time: " + first
		}
		n.reportResult(out[i+1])
	}
	return out
}

func needsNetwork(r Row) bool { return slices.Contains(r.Needs, "network") }

// playedElsewhere reports whether r is played by Networked.
func (n Runner) playedElsewhere(r Row) bool {
	return needsNetwork(r) && n.Networked != nil && n.Outside == nil
}

func (n Runner) reportResult(r Result) {
	if n.Done != nil {
		n.Done(r)
	}
}
