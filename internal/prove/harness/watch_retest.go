//go:build linux

package harness

import (
	"context"
	"time"

	"holdfast.dev/holdfast/internal/prove/report"
)

// test plays the rows against a program that changed, and compares.
func (w *watch) test(ctx context.Context, i int, it *watched, is string) error {
	e := WatchEvent{Kind: WatchChanged, Name: it.Name, Path: it.Path, Was: it.tested, Is: is}
	if it.failed == 0 && it.tested != "" {
		if err := w.o.Tell(e); err != nil {
			return err
		}
	}
	if it.Untested {
		return w.done(it, is, WatchEvent{Kind: WatchUntested, Name: it.Name, Path: it.Path, Was: it.tested, Is: is})
	}
	run, err := w.o.Retest(ctx, it.Name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return w.failed(it, is, err)
	}
	after, err := fingerprint(ctx, it.Path, w.armNotices(i))
	if err != nil || after != is { // another program was tested than the one there now
		it.pending, it.due = "", time.Now().Add(w.o.Quiet)
		return ctx.Err()
	}
	base, saved, err := w.o.Files.baseline(it.Watched)
	if err != nil {
		return err
	}
	e.Run = run
	if !saved {
		e.Kind = WatchFirst
		if err := w.o.Files.save(it.Watched, run); err != nil {
			return err
		}
		return w.done(it, is, e)
	}
	e.Changes = report.Compare(base, run)
	e.Kind = verdictOf(e.Changes)
	return w.done(it, is, e)
}

// verdictOf returns the result of a comparison in one word.
func verdictOf(c report.Changes) string {
	switch {
	case c.Weaker():
		return WatchWeaker
	case len(c.Changed)+len(c.Vanished) > 0:
		return WatchDifferent
	case len(c.Better) > 0:
		return WatchBetter
	}
	return WatchSame
}

// done reports the final event of a program. Only then is the program stored as
// tested: after a watch killed in between, the next one tests it again.
func (w *watch) done(it *watched, is string, e WatchEvent) error {
	if err := w.o.Tell(e); err != nil {
		return err
	}
	it.tested, it.pending, it.failed, it.restive, it.reported = is, "", 0, time.Time{}, false
	return w.o.Files.saveTested(it.Watched, is)
}

// failed repeats a test that could not run, later each time, and finally reports
// it. It is not stored as tested then: the next watch tries it once more.
func (w *watch) failed(it *watched, is string, cause error) error {
	if it.failed++; it.failed < watchTries {
		it.due = time.Now().Add(w.o.Quiet << it.failed)
		return nil
	}
	err := w.o.Tell(WatchEvent{Kind: WatchUntested, Name: it.Name, Path: it.Path, Was: it.tested, Is: is, Err: cause})
	it.tested, it.pending, it.failed, it.restive = is, "", 0, time.Time{}
	return err
}
