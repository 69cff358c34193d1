//go:build unix

package audit

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// typical is an event of the most frequent kind: a write seen by its system call.
func typical(n uint64) event.Event {
	return event.Event{
		Time: time.Unix(1_800_000_000, int64(n)*1000), Sensor: event.Syscall, N: n, Action: event.FileWrite,
		Object: "node_modules/some-package/dist/module.js", Resolved: "/home/user/work/project/node_modules/some-package/dist/module.js",
		Verdict: event.Allowed, Process: event.Process{PID: 123456, Exec: 17},
		Detail: typicalDetail,
	}
}

var typicalDetail = map[string]string{"mode": "0644", "flags": "O_WRONLY|O_CREAT|O_TRUNC"}

// huge is a log of n typical events.
func huge(tb testing.TB, n int) string {
	tb.Helper()
	l, err := Create(filepath.Join(tb.TempDir(), "log"), Options{Session: "huge", MaxBytes: 4 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	l.budget.buckets[classPlain].tokens = 1e12
	for i := range n {
		if err := l.Observe(typical(uint64(i + 1))); err != nil {
			tb.Fatal(err)
		}
	}
	end(tb, l, uint64(n))
	return l.Path()
}

// end closes a log whose events were all of Syscall.
func end(tb testing.TB, l *Log, n uint64) {
	tb.Helper()
	e := event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.task": "1", "count.syscall": fmt.Sprint(n)}}
	if err := l.Emit(e); err != nil {
		tb.Fatal(err)
	}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
}

// rate reports the records per second, by the clock and by processor time:
// other programs slow down the first and hardly the second.
func rate(b *testing.B, records int, since time.Duration) {
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(records)/(cpu()-since).Seconds(), "records/cpu-s")
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkObserve(b *testing.B) {
	runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(runtime.NumCPU())
	l, err := Create(filepath.Join(b.TempDir(), "log"), Options{Session: "bench", MaxBytes: 64 << 30})
	if err != nil {
		b.Fatal(err)
	}
	l.budget.buckets[classPlain].tokens = 1e12
	b.ReportAllocs()
	n := uint64(0)
	before := cpu()
	for b.Loop() {
		n++
		if err := l.Observe(typical(n)); err != nil {
			b.Fatal(err)
		}
	}
	end(b, l, n)
	rate(b, b.N, before)
}

func BenchmarkEmit(b *testing.B) {
	runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(runtime.NumCPU())
	l, err := Create(filepath.Join(b.TempDir(), "log"), Options{Session: "bench", MaxBytes: 64 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := uint64(0)
	before := cpu()
	for b.Loop() {
		n++
		if err := l.Emit(typical(n)); err != nil {
			b.Fatal(err)
		}
	}
	end(b, l, n)
	rate(b, b.N, before)
}

func BenchmarkVerify(b *testing.B) {
	const n = 300_000
	path := huge(b, n)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			before := cpu()
			for b.Loop() {
				r, err := Verify(context.Background(), path, VerifyOptions{Workers: workers})
				if err != nil || r.Verdict != Complete {
					b.Fatal(err, r)
				}
			}
			rate(b, n*b.N, before)
		})
	}
}

func BenchmarkScan(b *testing.B) {
	const n = 300_000
	path := huge(b, n)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			before := cpu()
			for b.Loop() {
				found := 0
				err := Scan(context.Background(), path, workers, func(r *Record) (bool, error) {
					v, _ := r.Field("verdict")
					o, _ := r.Field("resolved")
					s, _ := o.(string)
					return v == "denied" || strings.HasPrefix(s, "/etc"), nil
				}, func(*Record) error { found++; return nil })
				if err != nil || found != 0 {
					b.Fatal(err, found)
				}
			}
			rate(b, n*b.N, before)
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "log")
	i := 0
	for b.Loop() {
		i++
		l, err := Create(dir, Options{Session: fmt.Sprint("s", i)})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		l.Close()
		b.StartTimer()
	}
}
