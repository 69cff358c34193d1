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

// watch keeps the limits for which the kernel gives this user nothing: memory
// of all processes together without a control group, and growth of the host's
// file systems that are writable inside, which have no quota a run.
func (l *launch) watch(p *process) {
	if l.omit["limits"] {
		return
	}
	limits := l.spec.Plan.Limits
	memory := limits.Memory > 0 && !slices.Contains(p.Limited(), policy.MemoryLimit)
	disks := newDiskWatch(p, l.grown(), limits.Disk)
	if !memory && disks == nil {
		return
	}
	var used *memoryWatch
	if memory {
		used = newMemoryWatch(p, limits.Memory)
	}
	if storePart(l.spec).at != "" {
		layer := p.layerDevice(l.spec.Plan.Workspace)
		if memory {
			used.layer = layer
		}
		if disks != nil {
			disks.layer = layer
		}
	}
	go func() {
		if memory {
			defer used.close()
		}
		tick := time.NewTicker(watchPeriod)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-tick.C:
			}
			if memory && used.over() {
				p.Kill("memory limit of " + size(limits.Memory))
			}
			if dir := disks.over(); dir != "" {
				p.Kill(fmt.Sprintf("disk limit of %s: %s grew by more", size(limits.Disk), dir))
			}
		}
	}()
}
