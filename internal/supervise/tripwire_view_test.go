//go:build linux

package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// memorySink is a sink that remembers.
type memorySink struct {
	mu     sync.Mutex
	events []event.Event
	err    error
}

func (k *memorySink) Emit(e event.Event) error { return k.Observe(e) }

func (k *memorySink) Observe(e event.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
	return k.err
}

func (k *memorySink) all() []event.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]event.Event(nil), k.events...)
}

// wiredView is a process in a view whose root is a tripwire.
type wiredView struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  strings.Builder
	wire *Tripwire // nil for a tmpfs
	sink *memorySink
	peer int // our end of the socket to it
}

// startView starts this test binary in a view whose root is of a kind: a
// tripwire that belongs to a uid, or "tmpfs". It stops before the lines, which
// say what it is to do there.
func startView(t *testing.T, kind string, change func(*TripwireConfig), lines ...string) *wiredView {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	defer theirs.Close()
	v := &wiredView{t: t, sink: &memorySink{}, peer: pair[0], cmd: exec.Command("/proc/self/exe", lines...)}
	t.Cleanup(func() { unix.Close(v.peer) })
	id, _ := strconv.Atoi(kind)
	if os.Geteuid() != 0 {
		id = os.Getuid()
	}
	ids := []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	v.cmd.Env = []string{insideVar + "=" + kind, "GOMAXPROCS=2"}
	v.cmd.Stdout, v.cmd.Stderr = &v.out, &v.out
	v.cmd.ExtraFiles = []*os.File{theirs}
	v.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
		UidMappings:                ids,
		GidMappings:                ids,
		GidMappingsEnableSetgroups: os.Geteuid() == 0,
		AmbientCaps:                []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_DAC_OVERRIDE},
		Pdeathsig:                  syscall.SIGKILL,
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.cmd.Process.Kill(); v.cmd.Wait() })
	if kind != "tmpfs" {
		c := TripwireConfig{Device: v.device(), Root: v.cmd.Process.Pid, UID: id, GID: id, Sink: v.sink, Failed: func(err error) { t.Error(err) }}
		if change != nil {
			change(&c)
		}
		if v.wire, err = NewTripwire(c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.wire.Close() })
		go v.wire.Serve()
	}
	if n, err := unix.Read(v.peer, make([]byte, 8)); err != nil || n == 0 {
		v.cmd.Wait()
		t.Fatalf("the view was not built: %v\n%s", err, &v.out)
	}
	if v.wire != nil {
		v.wire.Seal()
	}
	return v
}

// device receives the descriptor that the view opened.
func (v *wiredView) device() *os.File {
	v.t.Helper()
	oob := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(v.peer, make([]byte, 16), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		v.cmd.Wait()
		v.t.Fatalf("no device: %v\n%s", err, &v.out)
	}
	c, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		v.t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&c[0])
	if err != nil {
		v.t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "/dev/fuse")
}

// goOn lets the process do what it is to do.
func (v *wiredView) goOn() {
	v.t.Helper()
	if _, err := unix.Write(v.peer, []byte("go")); err != nil {
		v.t.Fatal(err)
	}
}

// finish waits for the process, and returns the result of each line.
func (v *wiredView) finish() map[string]string {
	v.t.Helper()
	if err := v.cmd.Wait(); err != nil {
		v.t.Fatalf("%v\n%s", err, &v.out)
	}
	results := map[string]string{}
	for line := range strings.Lines(v.out.String()) {
		what, result, _ := strings.Cut(strings.TrimSpace(line), " = ")
		results[what] = result
	}
	if v.wire != nil {
		if err := v.wire.Close(); err != nil {
			v.t.Error(err)
		}
	}
	return results
}

func itoa(n int) string { return strconv.Itoa(n) }
