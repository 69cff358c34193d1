//go:build linux

package supervise

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/testenv"
)

// tried is what is done in a view, how it ends and what is recorded of it.
var tried = []struct {
	do, result             string
	call, object, resolved string // of the event; "" for none
	cwd                    string
	interpreterOnly        bool // a program was found, its interpreter was not
}{
	{do: "stat /home/agent", result: "ok"},
	{do: "stat /bin/sh", result: "ok"},
	{do: "readlink /bin", result: "usr/bin<nil>"},
	{do: "cat /etc/passwd", result: "300000"},
	{do: "list /", result: "[bin dev etc home proc tmp usr] <nil>"},
	{do: "stat /home/agent/absent", result: "ENOENT"},
	{do: "stat /usr/absent", result: "ENOENT"},
	{do: "open /home/u/.ssh/id_rsa", result: "ENOENT", call: "openat", object: "/home/u/.ssh/id_rsa"},
	{do: "open /home/u/.aws/credentials", result: "ENOENT", call: "openat", object: "/home/u/.aws/credentials"},
	{do: "open /usr/lib/../../home/./v//x", result: "ENOENT", call: "openat", object: "/usr/lib/../../home/./v//x", resolved: "/home/v/x"},
	{do: "stat /proc/self/root/root/x", result: "ENOENT", call: "newfstatat", object: "/proc/self/root/root/x", resolved: "/root/x"},
	{do: "link /home/w/.netrc /tmp", result: "ENOENT", call: "openat", object: "LINK/.netrc", resolved: "/home/w/.netrc"},
	{do: "mkdir /x", result: "EROFS", call: "mkdirat", object: "/x"},
	{do: "mkdir /home", result: "EEXIST"},
	{do: "create /new", result: "EROFS", call: "openat", object: "/new"},
	{do: "write /etc/passwd", result: "EROFS"},
	{do: "connect /run/docker.sock", result: "ENOENT", call: "connect", object: "/run/docker.sock"},
	{do: "rename /usr/bin/env /nix/x", result: "ENOENT", call: "renameat", object: "/nix/x"},
	{do: "chdir /opt/it", result: "ENOENT", call: "chdir", object: "/opt/it"},
	{do: "exec /snap/bin/lxd", result: "ENOENT", call: "execve", object: "/snap/bin/lxd"},
	{do: "script /sbin/nothing", result: "ENOENT", call: "execve", object: "/sbin", interpreterOnly: true},
	{do: "relative ../../media/x", result: "ENOENT", call: "openat", object: "../../media/x", resolved: "/media/x", cwd: "/home/agent"},
	{do: "beneath ../srv/x", result: "ENOENT", call: "openat", object: "../srv/x", resolved: "/srv/x"},
	{do: "stat /quiet", result: "ENOENT"},
	{do: "stat /quiet/below", result: "ENOENT"},
	{do: "stat /sys/kernel/mm/x", result: "ENOENT"},
	{do: "stat /sys/kernel/mmx", result: "ENOENT", call: "newfstatat", object: "/sys/kernel/mmx"},
	{do: "xattr /etc/passwd", result: "ENOTSUP"},
	{do: "statfs /", result: "ok"},
	{do: "seek /etc/passwd", result: "300000"},
	{do: "mmap /etc/passwd", result: "root:x"},
	{do: "ioctl /etc/passwd", result: "ENOTTY"},
	{do: "landlock / /usr/bin/env", result: "ok"},
	{do: "landlock /usr /etc/passwd", result: "EACCES"},
	{do: "thread /home/other/thread", result: "ENOENT", call: "newfstatat", object: "/home/other/thread"},
}

func TestRootTripwireRecordsWhatIsOutsideTheView(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	for _, uid := range []string{"0", "4321"} {
		t.Run("uid "+uid, func(t *testing.T) { tryAll(t, uid) })
	}
}

func TestTripwireOfAnOrdinaryUser(t *testing.T) {
	testenv.Need(t, testenv.FUSE, nil)
	testenv.Need(t, testenv.UserNS, nil)
	tryAll(t, itoa(os.Getuid()))
}

func tryAll(t *testing.T, uid string) {
	var lines []string
	for _, row := range tried {
		lines = append(lines, row.do)
	}
	v := startView(t, uid, func(c *TripwireConfig) {
		c.Quiet = []string{"/quiet", "/sys/kernel/mm"}
		c.Process = func(pid int) event.Process { return event.Process{Exec: 7} }
	}, lines...)
	seenFromOutside(t, v)
	v.goOn()
	results := v.finish()
	for _, row := range tried {
		if got := results[row.do]; got != row.result {
			t.Errorf("%s: %s, want %s", row.do, got, row.result)
		}
	}
	events := v.sink.all()
	for _, row := range tried {
		if row.call == "" {
			continue
		}
		if len(events) == 0 {
			t.Errorf("%s: no event", row.do)
			continue
		}
		e := events[0]
		events = events[1:]
		object := strings.ReplaceAll(row.object, "LINK", "/tmp/holdfast-tripwire-link-"+uid)
		if e.Detail["call"] != row.call || e.Object != object || e.Resolved != row.resolved || e.Process.Cwd != row.cwd ||
			(e.Detail["for"] != "") != row.interpreterOnly || e.Verdict != event.Denied || e.Layer != event.LayerView ||
			e.Process.PID != v.cmd.Process.Pid || e.Process.Exec != 7 || e.Sensor != event.Tripwire {
			t.Errorf("%s: event %+v", row.do, e)
		}
	}
	for _, e := range events {
		t.Errorf("and %+v", e)
	}
}

// seenFromOutside checks that only a process with the ids of the task may walk through
// the root, and that this is no event.
func seenFromOutside(t *testing.T, v *wiredView) {
	t.Helper()
	root := "/proc/" + itoa(v.cmd.Process.Pid) + "/root"
	uid := int(v.wire.fs.uid)
	if err := sys.AsTask(uid, uid, func() error {
		_, err := os.Stat(root + "/etc/passwd")
		return err
	}); err != nil {
		t.Errorf("with the ids of the task: %v", err)
	}
	if err := sys.AsTask(uid, uid, func() error {
		_, err := os.Stat(root + "/absent")
		return err
	}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there, from outside: %v", err)
	}
	if _, err := os.Stat(root + "/etc/passwd"); uid != os.Geteuid() && !errors.Is(err, os.ErrPermission) {
		t.Errorf("with other ids: %v", err)
	}
}

func TestRootTripwireAttestation(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	v := startView(t, "4321", nil)
	raw, err := os.ReadFile("/proc/" + itoa(v.cmd.Process.Pid) + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if want := " / / ro,nosuid,nodev,relatime - fuse holdfast rw,user_id=4321,group_id=4321,default_permissions\n"; !strings.Contains(string(raw), want) {
		t.Errorf("no mount %q among\n%s", want, raw)
	}
	v.goOn()
	v.finish()
}

// When the supervisor dies, what is inside finds nothing any more.
func TestRootTripwireFailsClosed(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	v := startView(t, "4321", nil, "stat /absent", "mkdir /home", "stat /etc/new")
	if err := v.wire.Close(); err != nil { // the last descriptor goes, as at a death
		t.Fatal(err)
	}
	v.goOn()
	results := v.finish()
	for what, got := range results {
		if got != "ENOTCONN" {
			t.Errorf("%s: %s, want ENOTCONN", what, got)
		}
	}
}

// What cannot be recorded must end the run.
func TestRootTripwireSaysThatTheRecordFailed(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	failed := make(chan error, 1)
	v := startView(t, "4321", func(c *TripwireConfig) { c.Failed = func(err error) { failed <- err } }, "stat /absent")
	v.sink.mu.Lock()
	v.sink.err = errors.New("disk full")
	v.sink.mu.Unlock()
	v.goOn()
	v.cmd.Wait()
	select {
	case err := <-failed:
		if err.Error() != "disk full" {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("nobody was told")
	}
	if err := v.wire.Close(); err == nil {
		t.Error("Close knows nothing of it")
	}
}

// A flood is counted, each of it, and the same look-up is one event.
func TestRootTripwireFlood(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	const same, different = 3000, 6000
	v := startView(t, "4321", nil, "same /absent "+itoa(same), "misses /foo "+itoa(different))
	v.goOn()
	results := v.finish()
	t.Logf("a look-up outside: %s", results["misses /foo "+itoa(different)])
	total, events := 0, v.sink.all()
	for _, e := range events {
		total++
		if n := e.Detail["count"]; n != "" {
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			total += count - 1
		}
	}
	// A summary covers what came after the first, which has an event.
	if total != same+different {
		t.Errorf("%d look-ups by the events, want %d", total, same+different)
	}
	if len(events) > floodKeys+100 {
		t.Errorf("%d events", len(events))
	}
}

// Threads that look up at the same time lose nothing of their paths.
func TestRootTripwireOfManyThreads(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	v := startView(t, "4321", nil, "parallel /home/absent 16")
	v.goOn()
	v.finish()
	whole, partial := map[string]bool{}, 0
	for _, e := range v.sink.all() {
		switch {
		case strings.HasPrefix(e.Object, "/home/absent/"):
			whole[e.Object] = true
		case e.Detail["partial"] != "" && e.Detail["count"] != "": // a summary covers what came after the first
			n, _ := strconv.Atoi(e.Detail["count"])
			partial += n
		case e.Detail["partial"] != "":
			partial++
		default:
			t.Logf("%+v", e)
		}
	}
	if len(whole)+partial < 1600 { // how many are partial is a matter of how busy the machine is
		t.Errorf("%d paths, and %d of which only the beginning is known", len(whole), partial)
	}
}

// A path that lies in a page of the tripwire's own file, which has to be read
// again, must not bring it to a halt: it would wait for itself.
func TestRootTripwireIsNotHeldByItsOwnFiles(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	v := startView(t, "4321", nil, "selfish /etc/path 8")
	v.goOn()
	done := make(chan struct{})
	go func() { defer close(done); v.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it hangs")
	}
	err := v.wire.Close()
	if err != nil || len(v.sink.all()) == 0 || v.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("%v\n%s", err, &v.out)
	}
}

// Trees on the tripwire cost what they cost on a tmpfs.
func TestRootTripwireCostsAllowedTreesNothing(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	open := "bench /usr/lib/os-release"
	best := map[string]time.Duration{}
	ratio := 2.0
	for range 12 { // until a quiet moment: other load must not fail the test
		for _, kind := range []string{"4321", "tmpfs"} {
			v := startView(t, kind, nil, open)
			v.goOn()
			results := v.finish()
			d, err := time.ParseDuration(results[open])
			if err != nil {
				t.Fatal(results)
			}
			if best[kind] == 0 || d < best[kind] {
				best[kind] = d
			}
		}
		if ratio = float64(best["4321"]) / float64(best["tmpfs"]); ratio <= 1.05 {
			break
		}
	}
	t.Logf("open and close of /usr/lib/os-release: tripwire %v, tmpfs %v: %.3f", best["4321"], best["tmpfs"], ratio)
	if ratio > 1.25 { // the goal is 1.05
		t.Errorf("%.3f times the cost", ratio)
	}
}

// A launch that failed may close what was never served, in any order.
func TestTripwireClosedBeforeItServes(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewTripwire(TripwireConfig{Device: f, Sink: &memorySink{}, Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	w.Serve()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewTripwireRefusesWhatIsIncomplete(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewTripwire(TripwireConfig{Device: f}); err == nil {
		t.Error("no sink, no error")
	}
	if _, err := NewTripwire(TripwireConfig{Sink: &memorySink{}}); err == nil {
		t.Error("no device, no error")
	}
	if _, err := NewTripwire(TripwireConfig{Device: f, Sink: &memorySink{}, Root: 1 << 30}); err == nil {
		t.Error("no such process, no error")
	}
	if _, err := f.Stat(); err == nil {
		t.Error("the device was not taken over")
	}
}
