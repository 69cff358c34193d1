//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// behave is testdata/behave.c as a static program.
var behave = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "supervise-behave-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "behave")
	out, err := exec.Command("gcc", "-static", "-pthread", "-O1", "-w", "-o", path, "testdata/behave.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return path, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := behave(); err == nil && behaved.Load() {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

var behaved atomic.Bool

func behaviour(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.GCC, nil)
	path, err := behave()
	behaved.Store(true)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestManyConnectsAtOnce has a Go program connect more often at once than it may have
// threads: it ends where calls wait longer than it takes to make a thread.
func TestManyConnectsAtOnce(t *testing.T) {
	const many = 12_000
	r := start(t, []string{"/proc/self/exe"}, environment(fmt.Sprintf("%s=dials %d", roleVar, many)))
	if status := r.wait(); status != 0 || r.out.String() != fmt.Sprintln(many, "refused") {
		t.Fatalf("status %d: %.300s", status, r.out.String())
	}
	if n := len(r.eventsOf(event.SockConnect)); n != many {
		t.Errorf("%d connects stand in the record", n)
	}
}

// TestMessagesWithAnAddressAreRecorded has a program send one message that names its
// address and one that need not, because its socket is connected.
func TestMessagesWithAnAddressAreRecorded(t *testing.T) {
	r := start(t, []string{"/proc/self/exe"}, environment(roleVar+"=sends 9"))
	if status := r.wait(); status != 0 || r.out.String() != "<nil>\n" {
		t.Fatalf("status %d: %.300s", status, r.out.String())
	}
	if sent := r.eventsOf(event.SockSend); len(sent) != 1 || sent[0].Object != "127.0.0.1:9" {
		t.Errorf("recorded as sent: %+v", sent)
	}
	if dialled := r.eventsOf(event.SockConnect); len(dialled) != 1 || dialled[0].Object != "127.0.0.1:10" {
		t.Errorf("recorded as connected: %+v", dialled)
	}
}

// TestProgramsBehaveTheSame runs programs that break easily when they are observed.
func TestProgramsBehaveTheSame(t *testing.T) {
	path := behaviour(t)
	for _, tt := range []struct {
		name  string
		check func(*testing.T, *run)
	}{
		{"vfork", executed(40, 40)},
		{"spawn", executed(40, 0)},
		{"restart", wrote("alarmed", 3000)},
		{"interrupt", wrote("alarmed", 3000)},
		{"threads", func(t *testing.T, r *run) {
			if n, m := len(r.eventsOf(event.FileWrite)), len(r.eventsOf(event.FileUnlink)); n != 2400 || m != 2400 {
				t.Errorf("%d creations and %d removals, want 2400", n, m)
			}
			onePID(t, r, event.FileUnlink)
		}},
		{"short-lived", func(t *testing.T, r *run) {
			wrote("touched", 400)(t, r)
			onePID(t, r, event.FileWrite)
		}},
		{"thread-executes", executed(1, 0)},
		{"killed", nil},
		{"stopped", nil},
		{"race", func(t *testing.T, r *run) {
			for _, e := range r.eventsOf(event.FileWrite) {
				if !strings.HasPrefix(e.Object, "race-") {
					t.Errorf("object %q", e.Object)
				}
			}
		}},
		{"edge", checkEdge},
		{"shared-directory", func(t *testing.T, r *run) {
			if e := r.about(event.FileWrite, "within"); e.Resolved != r.cmd.Dir+"/sub/within" {
				t.Errorf("%+v", e)
			}
		}},
		{"orphan", func(t *testing.T, r *run) {
			e, seen := r.about(event.FileWrite, "orphaned"), r.last(event.ProcSeen)
			if e.Process.PID != seen.Process.PID || seen.Process.Executable != path || len(seen.Process.Argv) != 2 || seen.Detail["unknown"] == "" {
				t.Errorf("%+v, %+v", seen, e)
			}
		}},
		{"chain", func(t *testing.T, r *run) {
			if n := len(r.eventsOf(event.ProcExec)); n != 31 {
				t.Errorf("%d executions, want 31", n)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := makeTree(t)
			r := start(t, []string{path, tt.name}, in(dir))
			if status := r.wait(); status != 0 {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			if tt.check != nil {
				tt.check(t, r)
			}
			if n := len(r.eventsOf(event.ProcExit)); n == 0 || len(r.sup.table.procs) != 0 {
				t.Errorf("%d ends, %d processes left", n, len(r.sup.table.procs))
			}
		})
	}
}

// executed wants so many successful executions of /bin/true, and of /absent.
func executed(yes, no int) func(*testing.T, *run) {
	return func(t *testing.T, r *run) {
		got, failed := 0, 0
		for _, e := range r.eventsOf(event.ProcExec) {
			switch {
			case e.Object == "/bin/true" && e.Error == "" && e.Process.SHA256 != "":
				got++
			case e.Object == "/absent" && e.Error == "ENOENT":
				failed++
			}
		}
		if got != yes || failed != no {
			t.Errorf("%d executions and %d that fail, want %d and %d", got, failed, yes, no)
		}
		ok := 0
		for _, e := range r.eventsOf(event.ProcExit) {
			if e.Detail["status"] == "0" && e.Object == real(t, "/bin/true") {
				ok++
			}
		}
		if linux6(15) && ok != yes {
			t.Errorf("%d of them ended, want %d", ok, yes)
		}
	}
}

func wrote(name string, n int) func(*testing.T, *run) {
	return func(t *testing.T, r *run) {
		got := 0
		for _, e := range r.eventsOf(event.FileWrite) {
			if e.Object == name && e.Verdict == event.Allowed {
				got++
			}
		}
		if got != n {
			t.Errorf("%d times, want %d", got, n)
		}
	}
}

func onePID(t *testing.T, r *run, action string) {
	t.Helper()
	for _, e := range r.eventsOf(action) {
		if e.Process.PID != r.cmd.Process.Pid || e.Process.Exec != 1 {
			t.Fatalf("%+v is not of process %d", e, r.cmd.Process.Pid)
		}
	}
}

func checkEdge(t *testing.T, r *run) {
	writes := r.eventsOf(event.FileWrite)
	if len(writes) != 5 {
		t.Fatalf("%d events: %s", len(writes), r.dump())
	}
	for i, want := range []string{"lastpage", "twopages", "xxxx", "", ""} {
		e := writes[i]
		if e.Object != want || (i > 1) != (e.Error == "EFAULT") || (i > 1) != (e.Detail["unknown"] != "") {
			t.Errorf("%+v", e)
		}
	}
	execs := r.eventsOf(event.ProcExec)[1:]
	if len(execs) != 2 || execs[0].Detail["unknown"] != "argv: EFAULT" || execs[1].Detail["unknown"] == "" {
		t.Errorf("executions with arguments that cannot be read: %+v", execs)
	}
}

// TestStormsOnOneProcessor must not wait for itself.
func TestStormsOnOneProcessor(t *testing.T) {
	path := behaviour(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, name := range []string{"threads", "vfork", "killed", "thread-executes"} {
		r := start(t, []string{path, name}, in(makeTree(t)), level(Full))
		if status := r.wait(); status != 0 {
			t.Errorf("%s: status %d: %s", name, status, r.out.String())
		}
	}
}

// TestBrokenSink refuses everything from the first record that is lost.
func TestBrokenSink(t *testing.T) {
	for _, action := range []string{event.ProcExec, event.FileWrite} {
		t.Run(action, func(t *testing.T) {
			dir := makeTree(t)
			var calls atomic.Int32
			why := make(chan error, 9)
			rec := &recorder{fail: func(e event.Event) error {
				if e.Action == action && e.Process.Exec > 1 || calls.Load() > 0 {
					calls.Add(1)
					return errors.New("disk full")
				}
				return nil
			}}
			r := start(t, []string{"/bin/sh", "-c", "/usr/bin/touch first; echo > second; /usr/bin/touch third; mkdir fourth; exit 0"}, in(dir), sink(rec),
				func(_ *run, c *Config, _ *exec.Cmd) { c.Failed = func(err error) { why <- err } })
			r.cmd.Wait()
			if err := r.sup.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
				t.Errorf("closing: %v", err)
			}
			if err := <-why; !strings.Contains(err.Error(), "disk full") || len(why) != 0 {
				t.Errorf("failed with %v, and %d more", err, len(why))
			}
			if calls.Load() != 1 {
				t.Errorf("the sink was called %d times after it broke", calls.Load()-1)
			}
			for _, name := range []string{"second", "third", "fourth"} {
				if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
					t.Errorf("%s was made after the record broke: %s", name, r.out.String())
				}
			}
		})
	}
}

// TestSlowSink holds the program up: nothing is queued.
func TestSlowSink(t *testing.T) {
	dir := makeTree(t)
	gate, held := make(chan struct{}), make(chan struct{}, 8)
	rec := &recorder{fail: func(e event.Event) error {
		if e.Action == event.FileMkdir {
			held <- struct{}{}
			<-gate
		}
		return nil
	}}
	r := start(t, []string{"/bin/mkdir", "a", "b", "c", "d"}, in(dir), sink(rec))
	<-held
	time.Sleep(200 * time.Millisecond) // it could be ahead by then
	if _, err := os.Lstat(dir + "/c"); err == nil {
		t.Error("the program is ahead of its record")
	}
	close(gate)
	if status := r.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestNewWantsAListener(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no listener is no error")
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Listener: f}); err == nil {
		t.Error("no sink is no error")
	}
	if f.Close() == nil {
		t.Error("the listener was not taken over")
	}
}

// TestNothingIsLeftOpen looks for descriptors that a run leaves.
func TestNothingIsLeftOpen(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	once := func() {
		r := start(t, []string{"/bin/sh", "-c", "for i in 1 2 3; do /bin/true; done; (echo > file); ls -R /etc/ssl > /dev/null"}, in(makeTree(t)), level(Full))
		r.wait()
	}
	once()
	before := count()
	for range 3 {
		once()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}
