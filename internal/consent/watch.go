package consent

import (
	"context"
	"slices"
	"sync"
)

// watcher is somebody who wants to know that something changed.
type watcher struct {
	changed chan struct{}
	stop    func() bool
}

// Watch returns a channel that says that Pending, Grants or Attended may be
// different from before; several changes may be one. It is closed when ctx ends
// or the desk closes.
func (d *Desk) Watch(ctx context.Context) <-chan struct{} {
	w := &watcher{changed: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		close(w.changed)
		return w.changed
	}
	d.watchers[w] = struct{}{}
	w.stop = context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.drop(w)
	})
	return w.changed
}

// drop ends a watcher. The lock is held.
func (d *Desk) drop(w *watcher) {
	if _, here := d.watchers[w]; here {
		delete(d.watchers, w)
		close(w.changed)
	}
}

// wake tells all watchers. The lock is held.
func (d *Desk) wake() {
	for w := range d.watchers {
		select {
		case w.changed <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}

func (d *Desk) changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake()
}

func (d *Desk) unwatch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		w.stop()
		d.drop(w)
	}
}

// Attend says that somebody is there to answer, until leave is called.
func (d *Desk) Attend() (leave func()) {
	d.attend(1)
	return sync.OnceFunc(func() { d.attend(-1) })
}

func (d *Desk) attend(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attended += n
	d.wake()
}

// Attended reports whether somebody is there to answer.
func (d *Desk) Attended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attended > 0
}

// Grants are the live approvals, the oldest first.
func (d *Desk) Grants() []Grant {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.moment()
	var list []Grant
	for _, g := range d.grants {
		if g.live(now) {
			c := g.Grant
			c.Covers.Argv, c.Covers.Interpreted, c.Signature = slices.Clone(c.Covers.Argv), slices.Clone(c.Covers.Interpreted), slices.Clone(c.Signature)
			c.Covers.Environment = slices.Clone(c.Covers.Environment)
			list = append(list, c)
		}
	}
	return list
}
