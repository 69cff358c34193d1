package testenv

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTakesItsLength distinguishes linear growth from faster growth.
func TestTakesItsLength(t *testing.T) {
	spin := func(d time.Duration) {
		for begun := ProcessorTime(t, unix.RUSAGE_THREAD); ProcessorTime(t, unix.RUSAGE_THREAD)-begun < d; {
		}
	}
	for _, tt := range []struct {
		name   string
		cost   func(size int) time.Duration
		failed bool
	}{
		{"linear", func(size int) time.Duration { return time.Duration(size) * 10 * time.Millisecond }, false},
		{"quadratic", func(size int) time.Duration { return time.Duration(size*size) * 10 * time.Millisecond }, true},
	} {
		s := &spy{TB: t}
		TakesItsLength(s, tt.name, 1, func(size int) func() { return func() { spin(tt.cost(size)) } })
		if failed := s.ended != ""; failed != tt.failed {
			t.Errorf("%s: failed %v, want %v: %q", tt.name, failed, tt.failed, s.ended)
		}
	}
}
