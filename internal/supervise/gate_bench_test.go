//go:build linux

package supervise

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/testenv"
)

// smallest writes the smallest program: it ends.
func smallest(t testing.TB, dir string) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Fatal("only written for amd64")
	}
	code := []byte{0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05} // exit(0)
	le := binary.LittleEndian
	b := make([]byte, 120, 256)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], 62)
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[24:], 0x400078)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint32(b[64:], 1)
	le.PutUint32(b[68:], 5)
	le.PutUint64(b[80:], 0x400000)
	le.PutUint64(b[88:], 0x400000)
	le.PutUint64(b[96:], uint64(120+len(code)))
	le.PutUint64(b[104:], uint64(120+len(code)))
	le.PutUint64(b[112:], 4096)
	path := filepath.Join(dir, "smallest")
	if err := programs.Write(path, append(b, code...), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// spawns executes a program n times and returns the nanoseconds for each.
func spawns(n int, path string) int64 {
	began := time.Now()
	for range n {
		pid, err := syscall.ForkExec(path, []string{path, "status"}, &syscall.ProcAttr{})
		if err != nil {
			panic(err)
		}
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
			panic(err)
		}
	}
	return time.Since(began).Nanoseconds() / int64(n)
}

// BenchmarkExec is one fork, execution and end of the smallest program, as
// BenchmarkOpen.
func BenchmarkExec(b *testing.B) {
	testenv.Need(b, testenv.Seccomp, nil)
	path := smallest(b, b.TempDir())
	time.Sleep(1100 * time.Millisecond) // its hash is remembered once it is that old
	h := &quiet{}
	for _, tt := range []struct {
		name    string
		watched bool
		options []option
	}{
		{"bare", false, nil},
		{"recorded", true, nil},
		{"no rule", true, []option{gateOf(h, nil)}},
		{"unmatched", true, []option{gateOf(h, func(event.Attempt) bool { return false }, event.KindExec)}},
		{"looked at", true, []option{gateOf(h, nil, event.KindExec)}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			if !tt.watched {
				b.ReportMetric(float64(spawns(b.N, path)), "ns/op")
				return
			}
			before := testenv.ProcessorTime(b, unix.RUSAGE_SELF) + testenv.ProcessorTime(b, unix.RUSAGE_CHILDREN)
			options := append([]option{environment(fmt.Sprintf("%s=spawns %d %s", roleVar, b.N, path)), sink(&lastSink{})}, tt.options...)
			r := start(b, []string{"/proc/self/exe"}, options...)
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

// quiet allows everything.
type quiet struct{}

func (quiet) Judge(event.Attempt) event.Ruling { return event.Ruling{Verdict: event.Allowed} }
