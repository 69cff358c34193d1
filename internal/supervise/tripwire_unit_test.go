//go:build linux

package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestParseCall(t *testing.T) {
	for _, c := range []struct {
		line string
		nr   int
		arg  uint64 // the second
		ok   bool
	}{
		{"257 0xffffffffffffff9c 0x7ffd1234 0x80000 0x0 0x0 0x0 0x7ffd0000 0x7f1234\n", 257, 0x7ffd1234, true},
		{"running\n", 0, 0, false},
		{"-1 0x7ffd0000 0x7f1234\n", 0, 0, false},
		{"", 0, 0, false},
		{"x 1 2 3 4 5 6 7", 0, 0, false},
		{"1 1 x 3 4 5 6 7", 0, 0, false},
	} {
		nr, args, ok := parseCall(c.line)
		if ok != c.ok || ok && (nr != c.nr || args[1] != c.arg) {
			t.Errorf("%q: %d %x %v", c.line, nr, args, ok)
		}
	}
}

// What is recorded of a look-up, by what the asker asked for.
func TestRecordedLookup(t *testing.T) {
	tr := newTree()
	root := tr.get(fuseRoot)
	home, _ := tr.add(root, "home", unix.S_IFDIR, nil)
	for _, c := range []struct {
		name             string
		dir              *node
		missing          string
		asked            pendingCall
		object, resolved string
		detail           map[string]string
	}{
		{"a path", home, "u", pendingCall{call: "open", path: "/home/u/.ssh/id"}, "/home/u/.ssh/id", "", map[string]string{"call": "open"}},
		{"dots", root, "x", pendingCall{path: "/usr/../x/./y"}, "/usr/../x/./y", "/x/y", nil},
		{"a relative path", root, "x", pendingCall{path: "../../x", dir: "/home/agent", cwd: true}, "../../x", "/x", nil},
		{"a directory that is not known", root, "x", pendingCall{path: "../../x/y"}, "../../x/y", "/x", nil},
		{"a link of another name", home, "u", pendingCall{path: "/tmp/l/.netrc"}, "/tmp/l/.netrc", "/home/u", nil},
		{"the second path", root, "nix", pendingCall{path: "/usr/bin/env", second: "/nix/x"}, "/nix/x", "", nil},
		{"nothing known", home, "u", pendingCall{pid: 7, tid: 7}, "/home/u", "", map[string]string{"partial": "true"}},
		{"an interpreter", root, "nix", pendingCall{call: "execve", path: "/home/agent/s", executes: true}, "/nix", "", map[string]string{"call": "execve", "for": "/home/agent/s"}},
		{"bytes", root, "\xff", pendingCall{path: "/\xff/\x1b[2J"}, "/\xff/\x1b[2J", "", nil},
		{"a thread", root, "x", pendingCall{pid: 7, tid: 8, path: "/x"}, "/x", "", map[string]string{"thread": "8"}},
	} {
		sink := &memorySink{}
		w := &Tripwire{config: TripwireConfig{Sink: sink}}
		w.flood = newFlood(w.observe, nil)
		w.record(miss{path: c.dir.childPath(c.missing), name: c.missing}, c.asked)
		w.flood.close()
		events := sink.all()
		if len(events) != 1 {
			t.Fatalf("%s: %d events", c.name, len(events))
		}
		e := events[0]
		if e.Object != c.object || e.Resolved != c.resolved || len(e.Detail) != len(c.detail) {
			t.Errorf("%s: %q, %q, %v; want %q, %q, %v", c.name, e.Object, e.Resolved, e.Detail, c.object, c.resolved, c.detail)
		}
		for k, v := range c.detail {
			if e.Detail[k] != v {
				t.Errorf("%s: %s is %q, want %q", c.name, k, e.Detail[k], v)
			}
		}
	}
}

func TestLeadsTo(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"in": "sub", "away": "/absent/x", "twice": "in/away2", "up": "../" + filepath.Base(dir) + "/in", "round": "round"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(dir+"/sub", 0o755), os.Symlink("/absent/y", dir+"/sub/away2")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, looked, want string }{
		{dir + "/away", "/absent", "/absent/x"},
		{dir + "/away/z", "/absent", "/absent/x/z"},
		{dir + "/twice/z", "/absent", "/absent/y/z"},
		{"/proc/self/root/proc/1/root" + dir + "/away/z", "/absent", "/absent/x/z"},
		{dir + "/up/no/z", dir + "/sub/no", dir + "/sub/no/z"},
		{dir + "/round/z", "/absent", "/absent"},
		{dir + "/in/z", "/absent", "/absent"},
		{"", "/absent", "/absent"},
	} {
		if got := leadsTo(os.Getpid(), c.path, c.looked); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}

func TestFloodCountsEverything(t *testing.T) {
	var out []event.Event
	f := newFlood(func(e event.Event) { out = append(out, e) }, func(e event.Event) bool { return e.Object == "/home/u/.ssh/id" })
	add := func(pid int, object string) {
		f.add(event.Event{Object: object, Process: event.Process{PID: pid}, Detail: map[string]string{"call": "open"}})
	}
	sent := 0
	for i := range 3 * floodKeys {
		add(i%3, "/"+strconv.Itoa(i))
		add(i%3, "/same")
		sent += 2
	}
	add(1, "/home/u/.ssh/id")
	sent++
	marked := out[len(out)-1].Object == "/home/u/.ssh/id"
	f.close()
	if !marked {
		t.Error("what is marked was summarised")
	}
	if len(out) > floodKeys+20 {
		t.Errorf("%d events", len(out))
	}
	total := 0
	for _, e := range out {
		n := 1
		if e.Detail["count"] != "" {
			n, _ = strconv.Atoi(e.Detail["count"])
		}
		total += n
	}
	if total != sent {
		t.Errorf("%d, want %d", total, sent)
	}
	if len(f.held)+len(f.others) != 0 {
		t.Error("something is left")
	}
}

// Both ways to translate a pid agree.
func TestPIDSpace(t *testing.T) {
	p, err := newPIDSpace(0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	self := os.Getpid()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "\nNSpid:") {
		t.Fatal("no NSpid")
	}
	if pid, tid := p.search(self); pid != self || tid != self {
		t.Errorf("by search: %d %d, want %d", pid, tid, self)
	}
	if pid, tid := p.outer(self); pid != self || tid != self {
		t.Errorf("by ioctl: %d %d, want %d", pid, tid, self)
	}
	for _, none := range []int{0, -1, 1 << 22, 1 << 30} {
		if pid, tid := p.outer(none); pid != 0 || tid != 0 {
			t.Errorf("%d: %d %d", none, pid, tid)
		}
	}
	p.scan = true
	if pid, tid := p.outer(self); pid != self || tid != self {
		t.Errorf("on an older kernel: %d %d", pid, tid)
	}
}

func TestRootPIDSpaceOfAView(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.FUSE, nil)
	v := startView(t, "4321", nil)
	for _, scan := range []bool{false, true} {
		v.wire.pids.scan = scan
		if pid, tid := v.wire.pids.outer(1); pid != v.cmd.Process.Pid || tid != pid {
			t.Errorf("scan %v: pid 1 is %d %d, want %d", scan, pid, tid, v.cmd.Process.Pid)
		}
	}
	v.goOn()
	v.finish()
}
