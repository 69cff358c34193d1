//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// Pool plays rows that need a network, in worker processes that each have a
// network of their own. A worker plays one row at a time. One that dies, hangs or
// sends nonsense makes its row inconclusive, and is replaced. Nothing of it is
// left after [Pool.Close], or when this process dies.
type Pool struct {
	program     []string
	dir, prober string
	slots       chan *workerProcess

	// World is where they play; the zero value is the default one.
	World World
	// Limit is how long a row may take, with all of its commands; 0 means what its own
	// limits allow.
	Limit time.Duration

	mu     sync.Mutex
	worked bool  // a worker has started
	broken error // why no worker has started, and none will
}

// NewPool makes a pool of n workers, each started when first needed. program is
// the command line that runs [Worker]. Worlds are made below dir, with the static
// program prober.
func NewPool(program []string, dir, prober string, n int) *Pool {
	p := &Pool{program: slices.Clone(program), dir: dir, prober: prober, slots: make(chan *workerProcess, max(n, 1))}
	for range cap(p.slots) {
		p.slots <- nil
	}
	return p
}

// Needs reports whether a row needs a Pool.
func Needs(r probe.Row) bool { return slices.Contains(r.Needs, "network") }

// Play plays r against t as soon as a worker is free. It may be called from many
// goroutines. When ctx ends, the worker is ended and the row is inconclusive.
func (p *Pool) Play(ctx context.Context, t probe.Target, r probe.Row) probe.Result {
	begun := time.Now()
	res := probe.Result{Row: r, Target: t.Name()}
	target, err := nameTarget(t)
	if err != nil {
		res.Reason = "not played: " + err.Error()
		return res
	}
	var c *workerProcess
	select {
	case c = <-p.slots:
	case <-ctx.Done():
		res.Reason = "not played: " + ctx.Err().Error()
		return res
	}
	defer func() { p.slots <- c }()
	if c == nil {
		if c, err = p.start(ctx); err != nil {
			res.Reason, res.Missing = "no network: "+err.Error(), ctx.Err() == nil
			return res
		}
	}
	answer, err := c.playRow(ctx, request{Row: r.ID, RefusalHolds: r.RefusalHolds, Timeout: r.Timeout, Target: target, World: p.World.Name, Dir: c.dir, Prober: p.prober}, p.limit(r))
	if err != nil {
		if died := c.end(ctx.Err() == nil); died != nil {
			err = fmt.Errorf("%w: %w", err, died)
		}
		res.Reason = "not judged: " + err.Error()
		res.Took, c = time.Since(begun), nil
		return res
	}
	return answer.result(r)
}

// limit returns more time than a row can take that works as intended: its drive
// may run it a few times, one after the other.
func (p *Pool) limit(r probe.Row) time.Duration {
	if p.Limit != 0 {
		return p.Limit
	}
	return 3*max(r.Timeout, 20*time.Second) + 30*time.Second
}

// start starts a worker. If the first one cannot start, none can, and it is not
// tried again for every row.
func (p *Pool) start(ctx context.Context) (*workerProcess, error) {
	p.mu.Lock()
	broken := p.broken
	p.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	dir, err := os.MkdirTemp(p.dir, "lab-")
	if err != nil {
		return nil, err
	}
	err = os.Chmod(dir, 0o755) // a target may run as another user
	var c *workerProcess
	if err == nil {
		c, err = startWorker(ctx, p.program, dir)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(dir))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worked = p.worked || err == nil
	if err != nil && !p.worked && ctx.Err() == nil {
		p.broken = err
	}
	return c, err
}

// Close ends the workers, which are idle or whose rows are being interrupted, and
// removes their files. Nothing can be played afterwards.
func (p *Pool) Close() error {
	var all []*workerProcess
	for range cap(p.slots) {
		all = append(all, <-p.slots)
	}
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, c := range all {
		if c != nil {
			group.Go(func() { errs[i] = c.end(false) })
		}
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending the workers: %w", err)
	}
	return nil
}
