//go:build linux

package supervise

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// copyOf copies a program into the working directory of a test, with a mode.
func copyOf(t *testing.T, from, to string, mode os.FileMode, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		b = change(b)
	}
	if err := programs.Write(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, mode); err != nil {
		t.Fatal(err)
	}
}

// loaderOf is the dynamic loader that a program names.
func loaderOf(t *testing.T, program string) string {
	t.Helper()
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := loader(int(f.Fd()))
	if _, err := os.Stat(name); err != nil {
		t.Fatalf("%s names %q: %v", program, name, err)
	}
	return name
}

// TestWhatCannotBeReadIsNotExecuted plays each way to a program that an ordinary
// user may execute and not read; root reads it, and sees what it does.
func TestWhatCannotBeReadIsNotExecuted(t *testing.T) {
	ld := loaderOf(t, "/bin/true")
	for _, tt := range []struct {
		name, script string
		make         func(t *testing.T, dir string)
	}{
		{"a program of its own", "./program", func(t *testing.T, dir string) { copyOf(t, "/bin/true", dir+"/program", 0o111, nil) }},
		{"by a descriptor that cannot be read through", "exec 3<.; cd /; /proc/self/fd/3/program", func(t *testing.T, dir string) { copyOf(t, "/bin/true", dir+"/program", 0o111, nil) }},
		{"behind a link", "./shortcut", func(t *testing.T, dir string) {
			copyOf(t, "/bin/true", dir+"/program", 0o111, nil)
			if err := os.Symlink("program", dir+"/shortcut"); err != nil {
				t.Fatal(err)
			}
		}},
		{"the interpreter of a script", "./script", func(t *testing.T, dir string) {
			copyOf(t, "/bin/true", dir+"/program", 0o111, nil)
			copyOf(t, "/bin/true", dir+"/script", 0o755, func([]byte) []byte { return []byte("#!" + dir + "/program\n") })
		}},
		{"the loader of a program", "./dynamic", func(t *testing.T, dir string) {
			copyOf(t, ld, dir+"/ld", 0o111, nil)
			copyOf(t, "/bin/true", dir+"/dynamic", 0o755, func(b []byte) []byte {
				name := make([]byte, len(ld))
				copy(name, "./ld")
				return bytes.Replace(b, []byte(ld), name, 1)
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := makeTree(t)
			tt.make(t, dir)
			r := start(t, []string{"/bin/sh", "-c", tt.script}, in(dir))
			status, e := r.wait(), r.last(event.ProcExec)
			switch {
			case os.Geteuid() == 0:
				if status != 0 || e.Verdict != event.Allowed {
					t.Errorf("status %d: %s: %+v", status, r.out.String(), e)
				}
			case status != 126 || e.Verdict != event.Denied || e.Layer != event.LayerPermissions || e.Error != "EACCES" || e.Detail["reason"] != unreadable:
				t.Errorf("status %d: %s: %+v", status, r.out.String(), e)
			}
		})
	}
}

// TestWhoCannotBeSeenIsEnded hides a process as the kernel hides one that runs
// what got unreadable while it was executed: here no user namespace is ours, so
// that PR_SET_DUMPABLE is enough.
func TestWhoCannotBeSeenIsEnded(t *testing.T) {
	path := behaviour(t)
	dir := makeTree(t)
	r := start(t, []string{path, "undumpable"}, in(dir))
	status := r.wait()
	_, err := os.Lstat(dir + "/undumpable")
	if os.Geteuid() == 0 {
		if status != 0 || err != nil || len(r.eventsOf(event.RecordDrop)) != 0 || r.last(event.FileWrite).Object != "undumpable" {
			t.Errorf("status %d, %v: %s", status, err, r.dump())
		}
		return
	}
	lost := r.last(event.RecordDrop)
	if status == 0 || err == nil || lost.Detail["of"] != "syscall" || lost.Detail["reason"] == "" || lost.Process.PID != r.last(event.ProcExec).Process.PID {
		t.Errorf("status %d, %v: %+v", status, err, lost)
	}
}

// TestDescriptorsOfTheHiddenAreTaken reads a descriptor in the way that is left
// where /proc is closed.
func TestDescriptorsOfTheHiddenAreTaken(t *testing.T) {
	r := newResolver(newPlaces(View{}))
	defer r.flush()
	dir := makeTree(t)
	f, err := os.Create(dir + "/open")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	p := &proc{pid: cmd.Process.Pid}
	for range 3 {
		if errno := r.copyDescriptor(p, p.pid, 3); errno != 0 {
			t.Fatal(errno)
		}
		if at, errno := r.pathOf(r.taken); at != dir+"/open" || errno != 0 {
			t.Errorf("%s, %v", at, errno)
		}
	}
	if errno := r.copyDescriptor(p, p.pid, 999); errno != unix.ENOENT || r.taken != -1 {
		t.Errorf("%v, %d", errno, r.taken)
	}
}
