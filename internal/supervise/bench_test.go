//go:build linux

package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// opens opens a file n times and returns the nanoseconds for each.
func opens(n int, path string) int64 {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		panic(err)
	}
	began := time.Now()
	for range n {
		openClose(name)
	}
	return time.Since(began).Nanoseconds() / int64(n)
}

// lastSink keeps nothing.
type lastSink struct{ last event.Event }

func (l *lastSink) Emit(e event.Event) error    { l.last = e; return nil }
func (l *lastSink) Observe(e event.Event) error { l.last = e; return nil }

// BenchmarkOpen is one openat and close of a program, in nanoseconds of the
// wall and of both programs' processor time.
func BenchmarkOpen(b *testing.B) {
	testenv.Need(b, testenv.Seccomp, nil)
	dir := b.TempDir()
	path := dir + "/file"
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		object  string
		level   Level
		watched bool
	}{
		{"bare", path, Full, false},
		{"passed", path, Standard, true},
		{"absolute", path, Full, true},
		{"relative", "file", Full, true},
	} {
		b.Run(tt.name, func(b *testing.B) {
			role := fmt.Sprintf("%s=opens %d %s", roleVar, b.N, tt.object)
			if !tt.watched {
				b.ReportMetric(float64(opens(b.N, tt.object)), "ns/op")
				return
			}
			before := testenv.ProcessorTime(b, unix.RUSAGE_SELF) + testenv.ProcessorTime(b, unix.RUSAGE_CHILDREN)
			r := start(b, []string{"/proc/self/exe"}, level(tt.level), in(dir), environment(role), sink(&lastSink{}))
			if status := r.wait(); status != 0 {
				b.Fatalf("status %d: %s", status, r.out.String())
			}
			wall, err := strconv.Atoi(strings.TrimSpace(r.out.String()))
			if err != nil {
				b.Fatal(err)
			}
			spent := testenv.ProcessorTime(b, unix.RUSAGE_SELF) + testenv.ProcessorTime(b, unix.RUSAGE_CHILDREN) - before
			b.ReportMetric(float64(wall), "ns/op")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

func environment(vars ...string) option {
	return func(r *run, _ *Config, _ *exec.Cmd) { r.cmd.Env = append(os.Environ(), vars...) }
}

func sink(s Sink) option { return func(_ *run, c *Config, _ *exec.Cmd) { c.Sink = s } }
