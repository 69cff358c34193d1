package audit

import "time"

// scheduleFlush has buf written: by a timer while it is small, else at once. mu
// is held, and released for writing.
func (l *Log) scheduleFlush() error {
	if len(l.buf) < flushAt {
		l.startFlushTimer()
		return nil
	}
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.flush()
}

// startFlushTimer writes at intervals until there is nothing to write: a timer
// that is armed for one event and disarmed by the next wakes a thread each
// time, which costs more than recording both. mu is held.
func (l *Log) startFlushTimer() {
	if l.timers.flush != nil || l.closed {
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(flushEvery, func() {
		l.mu.Lock()
		over := l.timers.flush != mine
		if !over && len(l.buf) == 0 {
			l.timers.flush, over = nil, true
		}
		l.mu.Unlock()
		if !over && l.flush() == nil { // its error is kept
			mine.Reset(flushEvery)
		}
	})
	l.timers.flush = mine
}

// arm starts a timer unless it runs: the timer calls do, and writes. mu is held.
func (l *Log) arm(t **time.Timer, after time.Duration, do func() error) {
	if *t != nil || l.closed {
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(after, func() {
		l.mu.Lock()
		if *t != mine { // it was disarmed meanwhile
			l.mu.Unlock()
			return
		}
		*t = nil
		if l.usable() == nil {
			do() // its error is kept
		}
		l.mu.Unlock()
		l.flush() // likewise
	})
	*t = mine
}

// disarm stops a timer. mu is held.
func (l *Log) disarm(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// flush writes buf, with what other goroutines added meanwhile.
func (l *Log) flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	out, err := l.buf, l.err
	if len(out) > 0 && err == nil {
		l.buf = l.spare[:0]
	}
	l.mu.Unlock()
	if err != nil || len(out) == 0 {
		return err
	}
	if _, err := l.file.Write(out); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.fail(err)
	}
	l.spare = nil
	if cap(out) <= 2*flushAt {
		l.spare = out
	}
	return nil
}
