//go:build linux

package native

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// diskWatch bounds what a run takes of the host's file systems. What the file
// system has left is asked for at every tick. Whether the run has taken it is
// measured when half of the limit is gone, for others write to the same file
// systems; and now and then where anything changed, for others also give back, and
// what they give back between two ticks hides what the run takes. What is gone
// counts as the run's where something of the run cannot be measured.
type diskWatch struct {
	process *process
	limit   int64     // bytes
	since   time.Time // when the run began, by the clock that file systems read
	layer   uint64    // device of the files of the workspace's view; 0 for none
	helpers []int     // processes of the boundary's own, by their numbers inside
	disks   []*disk
}

// usage is what is taken of a file system.
type usage struct{ bytes, nodes int64 }

func (u usage) plus(v usage) usage   { return usage{u.bytes + v.bytes, u.nodes + v.nodes} }
func (u usage) minus(v usage) usage  { return usage{u.bytes - v.bytes, u.nodes - v.nodes} }
func (u usage) exceeds(v usage) bool { return u.bytes > v.bytes || u.nodes > v.nodes }
func (u usage) least(v usage) usage  { return usage{min(u.bytes, v.bytes), min(u.nodes, v.nodes)} }
func (u usage) most(v usage) usage   { return usage{max(u.bytes, v.bytes), max(u.nodes, v.nodes)} }
func (u usage) half() usage          { return usage{u.bytes / 2, u.nodes / 2} }
func (u usage) words(at string) string {
	if u.nodes > 0 {
		return fmt.Sprintf("more than %d files, directories and links were made in %s", u.nodes, at)
	}
	return at + " grew by more"
}

// disk is one file system with the trees of it that are writable inside.
type disk struct {
	trees    []tree
	id       unix.Fsid
	device   uint64 // st_dev
	limit    usage
	start    usage     // of the whole file system, when the run began, or the least since
	last     usage     // likewise, when it was last measured, or the least since
	seen     usage     // likewise, at the last tick
	changed  bool      // it was otherwise at a tick since it was last measured
	next     time.Time // when it is next measured if it changed, even if not much space is gone
	measured bool
	passing  int   // consecutive measurements in which something was in transit and could not be counted
	first    usage // of the trees when the run began, as far as the first measurement shows
}

// tree is held open: a directory that is renamed meanwhile still counts.
type tree struct {
	path string
	fd   int // O_PATH
}

// passingLooks is how often in a row descriptors may be on their way between
// processes before what the file system lost counts as the run's. Programs that
// hand each other files leave them there for a moment; a run that hides a file so
// has them there at every look.
const passingLooks = 4

// measureAgain is how long it is at least from one measuring to the next where not
// much is gone, and measureRest how many times as long as the measuring took: of
// one processor it costs a fiftieth at most.
const (
	measureAgain = time.Second
	measureRest  = 50
)

// minNodes is how many files a run may make under the smallest limit.
const minNodes = 16 << 10

func newDiskWatch(p *process, parts []part, limit int64) (*diskWatch, error) {
	if limit <= 0 {
		return nil, nil
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return nil, fmt.Errorf("reading the coarse clock: %w", err)
	}
	w := &diskWatch{process: p, limit: limit, helpers: []int{1}, since: time.Unix(now.Unix())}
	for _, part := range parts {
		if part.source == "" || part.access != policy.Write {
			continue
		}
		if err := w.add(part.source); err != nil {
			w.close()
			return nil, fmt.Errorf("measuring the disk of %s: %w", part.source, err)
		}
	}
	if len(w.disks) == 0 {
		return nil, nil
	}
	return w, nil
}

// add notes a tree with the file system that it is on. The limit of bytes says
// which share of a disk a run may take; it may take the same share of its inodes.
func (w *diskWatch) add(path string) error {
	fd, err := openPlain(path)
	if err != nil {
		return err
	}
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Fstatfs(fd, &fs), unix.Fstat(fd, &st)); err != nil {
		unix.Close(fd)
		return err
	}
	i := slices.IndexFunc(w.disks, func(d *disk) bool { return d.id == fs.Fsid })
	if i < 0 {
		i = len(w.disks)
		now := usageOf(&fs)
		share := float64(w.limit) / float64(max(1, int64(fs.Blocks)*fs.Bsize))
		w.disks = append(w.disks, &disk{id: fs.Fsid, device: st.Dev, start: now, last: now, seen: now, next: time.Now().Add(measureAgain),
			limit: usage{w.limit, max(minNodes, int64(share*float64(fs.Files)))}})
	}
	d := w.disks[i]
	d.trees = append(d.trees, tree{path, fd})
	return nil
}

func (w *diskWatch) close() {
	for _, d := range w.disks {
		for _, t := range d.trees {
			unix.Close(t.fd)
		}
	}
}

// usageOf is what is taken of a file system: of what it has for this user.
func usageOf(fs *unix.Statfs_t) usage {
	return usage{(int64(fs.Blocks) - int64(fs.Bavail)) * fs.Bsize, int64(fs.Files) - int64(fs.Ffree)}
}

// excess says what outgrew the limit, in words; "" for nothing.
func (w *diskWatch) excess() string {
	for _, d := range w.disks {
		if what := w.excessOn(d); what != "" {
			return what
		}
	}
	return ""
}

func (w *diskWatch) excessOn(d *disk) string {
	at := d.trees[0].path
	var fs unix.Statfs_t
	if err := unix.Fstatfs(d.trees[0].fd, &fs); err != nil {
		return fmt.Sprintf("the free space of %s cannot be read (%v)", at, err)
	}
	now := usageOf(&fs)
	d.start, d.last = d.start.least(now), d.last.least(now)
	d.changed, d.seen = d.changed || now != d.seen, now
	began := time.Now()
	if !now.minus(d.last).exceeds(d.limit.half()) && (!d.changed || began.Before(d.next)) {
		return ""
	}
	c := w.count(d)
	d.changed, d.next = false, time.Now().Add(max(measureAgain, measureRest*time.Since(began)))
	after := now
	if unix.Fstatfs(d.trees[0].fd, &fs) == nil {
		after = usageOf(&fs)
	}
	if after.minus(now).exceeds(d.limit.half()) {
		c.blind, c.passing = "it kept growing while it was measured", false
	}
	if !d.measured {
		// What was made since the run began was not there before, nor was what changed
		// since, as far as it left the file system: a run may have taken all of it
		// before this first look.
		gone := now.most(after).minus(d.start)
		d.measured, d.first = true, c.sum.minus(c.made).minus(c.fresh.least(gone))
	}
	if d.passing++; !c.passing {
		d.passing = 0
	}
	grown := c.sum.minus(d.first)
	switch gone := now.minus(d.start); {
	case grown.bytes > d.limit.bytes:
		return usage{}.words(at)
	case grown.nodes > d.limit.nodes:
		return d.limit.words(at)
	case c.passing && d.passing < passingLooks && gone.exceeds(d.limit):
		return "" // and d.last stays, so that the next tick looks again
	case c.blind != "" && gone.exceeds(d.limit):
		return fmt.Sprintf("the disk of %s lost more than that, and %s, so it counts as used by this run", at, c.blind)
	}
	d.last = now
	return ""
}

// count measures what the run has on d.
func (w *diskWatch) count(d *disk) *diskCounter {
	c := newDiskCounter(w.onDisk, w.process.done)
	c.since = w.since
	for _, t := range d.trees {
		c.tree(t)
	}
	c.countUnnamed(descendants(w.process.first, nil), w.helpers)
	return c
}

// onDisk reports whether an open file without a name takes space on a disk: on the file
// system of a tree, which may be in memory, or on any that is not. A file of a layer
// does if the layer is the workspace's view and not of private storage.
func (w *diskWatch) onDisk(fs int64, device uint64) bool {
	return slices.ContainsFunc(w.disks, func(d *disk) bool { return d.device == device }) || !inMemory(fs) && (fs != unix.OVERLAYFS_SUPER_MAGIC || device == w.layer)
}
