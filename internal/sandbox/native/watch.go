//go:build linux

package native

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
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
	disks := newDiskWatch(l.builder.parts, limits.Disk)
	if !memory && disks == nil {
		return
	}
	go func() {
		tick := time.NewTicker(watchPeriod)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-tick.C:
			}
			if memory && exceeds(p.first, limits.Memory) {
				p.Kill(fmt.Sprintf("memory limit of %d MiB", limits.Memory>>20))
			}
			if dir := disks.over(); dir != "" {
				p.Kill(fmt.Sprintf("disk limit: the file system of %s lost more than %d MiB since the run began", dir, limits.Disk>>20))
			}
		}
	}()
}

// diskWatch remembers how much was free when the run began. What others write
// to the same file system counts too: a false alarm is better than a full disk.
type diskWatch struct {
	limit int64
	free  map[string]int64 // directory → bytes
}

func newDiskWatch(parts []part, limit int64) *diskWatch {
	if limit <= 0 {
		return nil
	}
	w := &diskWatch{limit: limit, free: map[string]int64{}}
	seen := map[unix.Fsid]bool{}
	for _, p := range parts {
		if p.source == "" || p.access != policy.Write {
			continue
		}
		if free, id, err := freeBytes(p.source); err == nil && !seen[id] {
			seen[id] = true
			w.free[p.source] = free
		}
	}
	return w
}

// over names a directory whose file system lost more than the limit.
func (w *diskWatch) over() string {
	if w == nil {
		return ""
	}
	for dir, before := range w.free {
		if now, _, err := freeBytes(dir); err == nil && before-now > w.limit {
			return dir
		}
	}
	return ""
}

func freeBytes(dir string) (int64, unix.Fsid, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, unix.Fsid{}, err
	}
	return int64(st.Bavail) * st.Bsize, st.Fsid, nil
}
