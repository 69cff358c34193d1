//go:build linux

package native

import (
	"fmt"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// watchPeriod is how often the watches look. What a run can use beyond a limit
// is what it can use in this time.
const watchPeriod = 100 * time.Millisecond

// portalPID is the number inside of the process that hands out sockets of the
// inner network: the third, after the first and the command.
const portalPID = 3

// watches keep the limits for which the kernel gives this user nothing: memory
// of all processes together without a control group, and growth of the host's
// file systems that are writable inside, which have no quota a run. Each is nil
// where there is nothing to keep.
type watches struct {
	memory *memoryWatch
	disk   *diskWatch
}

// newWatches prepares the watches while nothing of the command runs yet.
func (l *launch) newWatches(p *process) (w watches, err error) {
	if l.omit["limits"] {
		return w, nil
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	limits := l.spec.Plan.Limits
	if limits.Memory > 0 && !slices.Contains(p.Limited(), policy.MemoryLimit) {
		if w.memory, err = l.newMemoryWatch(p, limits.Memory); err != nil {
			return w, err
		}
	}
	if w.disk, err = newDiskWatch(p, l.grown(), limits.Disk); err != nil || w.disk == nil {
		return w, err
	}
	if storePart(l.spec).at != "" {
		if w.disk.layer, err = l.layerDevice(p); err != nil {
			return w, err
		}
	}
	if len(l.spec.Plan.Publish) > 0 {
		w.disk.helpers = append(w.disk.helpers, portalPID)
	}
	return w, nil
}

// close releases what the watches hold, if they were not started.
func (w watches) close() {
	if w.memory != nil {
		w.memory.close()
	}
	if w.disk != nil {
		w.disk.close()
	}
}

// start runs each watch in its own goroutine, so that a slow one (a tree to measure)
// does not delay the other.
func (w watches) start(p *process, limits policy.Limits) {
	if m := w.memory; m != nil {
		p.watching.Go(func() {
			defer m.close()
			p.eachTick(func() {
				if m.isExceeded() {
					p.Kill("memory limit of " + policy.FormatSize(limits.Memory))
				}
			})
		})
	}
	if d := w.disk; d != nil {
		p.watching.Go(func() {
			defer d.close()
			p.eachTick(func() {
				if what := d.excess(); what != "" {
					p.Kill(fmt.Sprintf("disk limit of %s: %s", policy.FormatSize(limits.Disk), what))
				}
			})
		})
	}
}

// closed reports whether a channel is, to which nothing is sent.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// eachTick calls look at every tick until the command has ended.
func (p *process) eachTick(look func()) {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			look()
		}
	}
}
