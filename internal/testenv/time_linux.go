package testenv

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is the processor time that who has used so far: who is one of the
// RUSAGE constants of getrusage(2). Unlike elapsed time it depends little on what
// else the machine does.
func ProcessorTime(t testing.TB, who int) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TakesItsLength fails the test if the function that make returns takes more than
// 24 times as long for eight times size: linear growth is eight, an attack
// sixty-four. It compares the processor time of the thread, as a ratio, because
// the race detector and a busy machine make absolute times large. make itself is
// not measured.
func TakesItsLength(t testing.TB, name string, size int, make func(size int) func()) {
	t.Helper()
	const factor, allowed = 8, 24
	short, long := make(size), make(size*factor)
	small, large := time.Hour, time.Hour
	for range 3 { // other load makes it longer, never shorter
		// The kernel may count in ticks of 4 ms: less than two ticks is noise.
		small = max(min(small, took(t, short)), 8*time.Millisecond)
		if large = min(large, took(t, long)); large <= allowed*small {
			return
		}
	}
	t.Errorf("%s: %v for %d, and %v for %d times as many", name, small, size, large, factor)
}

// took is the processor time of f, on the thread that runs it.
func took(t testing.TB, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ProcessorTime(t, unix.RUSAGE_THREAD)
	f()
	return ProcessorTime(t, unix.RUSAGE_THREAD) - before
}
