//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/holdfast/internal/prove/report"
)

// Watched is a program to watch.
type Watched struct {
	Name string // of the target, as passed to Retest and Files
	Path string // absolute, of its program or of a directory, as it is called: links on the way are watched too
	// Untested is set if nothing can be played against it; a change is reported all the
	// same.
	Untested bool
}

// The kinds of a WatchEvent.
const (
	WatchBegun     = "watching"  // unchanged since the last test
	WatchFirst     = "baseline"  // there was no baseline; the first run now is one
	WatchChanged   = "changed"   // another program is there; it is tested next
	WatchSame      = "as before" // tested, and nothing differs from the baseline
	WatchWeaker    = "weaker"    // it holds less than the baseline
	WatchDifferent = "different" // it holds as much, and fails differently
	WatchBetter    = "better"    // rows are held that were not
	WatchGone      = "gone"      // it does not exist any more
	WatchUnsteady  = "unsteady"  // it keeps changing
	WatchUntested  = "untested"  // it changed, and could not be tested
	WatchBlind     = "timer"     // the kernel reports nothing: only the timer is left
)

// WatchEvent is something that Watch noticed.
type WatchEvent struct {
	Kind    string
	Name    string // of Watched; "" if it is about all of them
	Path    string
	Was, Is string // fingerprints, hexadecimal; "" if unknown
	Run     report.Run
	Changes report.Changes
	Err     error
}

// WatchOptions configure Watch. Every function is called on one goroutine.
type WatchOptions struct {
	Watched []Watched
	// Retest plays the rows against the target of this name.
	Retest func(ctx context.Context, name string) (report.Run, error)
	Files  WatchFiles
	// Tell is called with every event. Its error ends the watch: what cannot be
	// recorded must not pass for quiet.
	Tell func(WatchEvent) error

	Every time.Duration // between two checks of everything; 0 is 15 minutes
	Quiet time.Duration // how long a program must be unchanged before it is tested; 0 is 5 s
	Gone  time.Duration // how long it may be missing, as during an update; 0 is a minute
	Once  bool          // check everything once, test what changed, and end
}

// How often a test that cannot run is tried.
const watchTries = 3

// watched is one program and what is known of it. It is owned by the goroutine of
// Watch.
type watched struct {
	Watched
	tested   string    // fingerprint of what was tested last, or counts as such
	pending  string    // a different one, seen at since
	since    time.Time // when pending was first seen
	restive  time.Time // when it began to change; zero while it does not
	missing  time.Time // since when it cannot be read; zero while it can
	reported bool      // it was reported missing, or unsteady
	due      time.Time // when to check next; zero for not before the timer
	noticed  time.Time // the first notice that due waits for
	failed   int       // tests in a row that could not run
}

// Watch watches programs until ctx ends, which is not an error: by kernel events
// (inotify) and also by a timer, because events can be lost and do not cover
// writes through memory maps. Times are those of a monotonic clock.
func Watch(ctx context.Context, o WatchOptions) error {
	o.defaults()
	w := &watch{o: o}
	if err := w.begin(ctx); err != nil {
		w.notices.close()
		return w.end(ctx, err)
	}
	defer w.notices.close()
	if o.Once {
		return w.end(ctx, w.settle(ctx))
	}
	return w.end(ctx, w.loop(ctx))
}

func (o *WatchOptions) defaults() {
	if o.Every <= 0 {
		o.Every = 15 * time.Minute
	}
	if o.Quiet <= 0 {
		o.Quiet = 5 * time.Second
	}
	if o.Gone <= 0 {
		o.Gone = time.Minute
	}
}

type watch struct {
	o       WatchOptions
	all     []*watched
	notices *notices // nil if the kernel reports nothing
}

// end returns the error of Watch.
func (w *watch) end(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// begin checks everything for the first time. What changed since the last watch,
// or has no baseline, is to be tested.
func (w *watch) begin(ctx context.Context) error {
	var err error
	if w.notices, err = newNotices(); err != nil {
		if err := w.o.Tell(WatchEvent{Kind: WatchBlind, Err: err}); err != nil {
			return err
		}
	}
	for i, one := range w.o.Watched {
		it := &watched{Watched: one}
		w.all = append(w.all, it)
		is, err := fingerprint(ctx, it.Path, w.armNotices(i))
		if err != nil {
			return fmt.Errorf("looking at %s: %w", it.Path, err)
		}
		known, err := w.o.Files.readTested(one)
		if err != nil {
			return err
		}
		_, saved, err := w.o.Files.baseline(one)
		switch {
		case err != nil:
			return err
		case known == is && (saved || one.Untested):
			it.tested = is
			err = w.o.Tell(WatchEvent{Kind: WatchBegun, Name: it.Name, Path: it.Path, Is: is})
		case one.Untested && known == "":
			it.tested = is
			err = errors.Join(w.o.Files.saveTested(one, is), w.o.Tell(WatchEvent{Kind: WatchBegun, Name: it.Name, Path: it.Path, Is: is}))
		default:
			it.tested, it.pending, it.since, it.due = known, is, time.Now(), time.Now().Add(w.o.Quiet)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// armNotices returns a function that watches a directory for the program i.
func (w *watch) armNotices(i int) func(dir string, names ...string) {
	return func(dir string, names ...string) { w.notices.watchPath(i, dir, names) }
}

// settle waits until everything that changed has been tested.
func (w *watch) settle(ctx context.Context) error {
	for {
		next := w.next(time.Time{})
		if next.IsZero() {
			return nil
		}
		if err := pause(ctx, time.Until(next)); err != nil {
			return err
		}
		if err := w.checkDue(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loop checks when it is time, and when the kernel reports a change.
func (w *watch) loop(ctx context.Context) error {
	all := time.Now().Add(w.o.Every)
	for {
		timer := time.NewTimer(time.Until(w.next(all)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-w.notices.wake():
			timer.Stop()
			w.postponeChecks(w.notices.takeDirty())
			continue
		case <-timer.C:
		}
		if now := time.Now(); !now.Before(all) {
			all = now.Add(w.o.Every)
			for _, it := range w.all {
				if it.due.IsZero() {
					it.due = now
				}
			}
		}
		if err := w.checkDue(ctx); err != nil {
			return err
		}
	}
}

// next returns when the next check is due, last at the latest; zero for never.
func (w *watch) next(last time.Time) time.Time {
	for _, it := range w.all {
		if !it.due.IsZero() && (last.IsZero() || it.due.Before(last)) {
			last = it.due
		}
	}
	return last
}

// postponeChecks postpones checks while notices go on, but not for ever.
func (w *watch) postponeChecks(which []int) {
	now := time.Now()
	for _, i := range which {
		it := w.all[i]
		if it.noticed.IsZero() {
			it.noticed = now
		}
		it.due = now.Add(w.o.Quiet)
		if most := it.noticed.Add(4 * w.o.Quiet); it.due.After(most) {
			it.due = most
		}
	}
}

// checkDue checks everything that is due.
func (w *watch) checkDue(ctx context.Context) error {
	for i, it := range w.all {
		if it.due.IsZero() || time.Now().Before(it.due) {
			continue
		}
		if err := w.checkProgram(ctx, i, it); err != nil {
			return err
		}
	}
	return nil
}

// checkProgram compares a program with what was tested. It is tested once it has been
// unchanged for Quiet: an update is written in pieces.
func (w *watch) checkProgram(ctx context.Context, i int, it *watched) error {
	it.due, it.noticed = time.Time{}, time.Time{}
	now := time.Now()
	is, err := fingerprint(ctx, it.Path, w.armNotices(i))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return w.handleAbsent(it, now, err)
	}
	it.missing = time.Time{}
	if is == it.tested {
		it.pending, it.restive, it.reported, it.failed = "", time.Time{}, false, 0
		return nil
	}
	if is != it.pending {
		it.pending, it.since, it.due, it.failed = is, now, now.Add(w.o.Quiet), 0
		if it.restive.IsZero() {
			it.restive = now
		}
		if !it.reported && now.Sub(it.restive) > max(w.o.Gone, 20*w.o.Quiet) {
			it.reported = true
			return w.o.Tell(WatchEvent{Kind: WatchUnsteady, Name: it.Name, Path: it.Path, Was: it.tested, Is: is})
		}
		return nil
	}
	if left := w.o.Quiet - now.Sub(it.since); left > 0 {
		it.due = now.Add(left)
		return nil
	}
	return w.test(ctx, i, it, is)
}

// handleAbsent handles a program that cannot be read: during an update that is normal
// for a moment.
func (w *watch) handleAbsent(it *watched, now time.Time, cause error) error {
	if it.missing.IsZero() {
		it.missing, it.reported = now, false
	}
	it.pending = ""
	if it.reported {
		return nil // the timer checks again
	}
	if now.Sub(it.missing) < w.o.Gone {
		it.due = now.Add(min(w.o.Quiet, w.o.Gone))
		return nil
	}
	it.reported = true
	return w.o.Tell(WatchEvent{Kind: WatchGone, Name: it.Name, Path: it.Path, Was: it.tested, Err: cause})
}
