package consent

import (
	"context"
	"slices"
	"sync"
)

// watcher is notified when something changes.
type watcher struct {
	changed chan struct{}
	stop    func() bool
}

// Watch returns a channel that signals that Pending, Grants or Attended may
// have changed; several changes may be one signal. It is closed when ctx ends
// or the queue closes.
func (q *Queue) Watch(ctx context.Context) <-chan struct{} {
	w := &watcher{changed: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		close(w.changed)
		return w.changed
	}
	q.watchers[w] = struct{}{}
	w.stop = context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.drop(w)
	})
	return w.changed
}

// drop ends a watcher. The lock is held.
func (q *Queue) drop(w *watcher) {
	if _, here := q.watchers[w]; here {
		delete(q.watchers, w)
		close(w.changed)
	}
}

// wake notifies all watchers. The lock is held.
func (q *Queue) wake() {
	for w := range q.watchers {
		select {
		case w.changed <- struct{}{}:
		default: // it has not read the last signal yet
		}
	}
}

func (q *Queue) notifyWatchers() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake()
}

func (q *Queue) unwatch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := range q.watchers {
		w.stop()
		q.drop(w)
	}
}

// Attend says that somebody is there to answer, until leave is called.
func (q *Queue) Attend() (leave func()) {
	q.attend(1)
	return sync.OnceFunc(func() { q.attend(-1) })
}

func (q *Queue) attend(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attended += n
	q.wake()
}

// Attended reports whether somebody is there to answer.
func (q *Queue) Attended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.attended > 0
}

// Grants returns the live approvals, the oldest first.
func (q *Queue) Grants() []Grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.moment()
	var list []Grant
	for _, g := range q.grants {
		if g.live(now) {
			c := g.Grant
			c.Covers.Argv, c.Covers.Interpreted, c.Signature = slices.Clone(c.Covers.Argv), slices.Clone(c.Covers.Interpreted), slices.Clone(c.Signature)
			c.Covers.Environment = slices.Clone(c.Covers.Environment)
			list = append(list, c)
		}
	}
	return list
}
