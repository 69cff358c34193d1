//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// A test that watches a program starts this binary once more. That one puts a
// filter on itself, hands the listener over, and executes the program.
const launchVar = "HOLDFAST_SUPERVISE_LAUNCH" // level of the filter

func init() {
	if level := os.Getenv(launchVar); level != "" {
		fmt.Fprintln(os.Stderr, "launching:", launchFiltered(level))
		os.Exit(99)
	}
}

func launchFiltered(level string) error {
	runtime.LockOSThread()
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := mountAll(os.Getenv(mountsVar)); err != nil {
		return err
	}
	prog := testFilter(level == "full")
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const waitKillable = 1 << 5
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|waitKillable, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return fmt.Errorf("installing the filter: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{1}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return fmt.Errorf("handing the listener over: %w", err)
	}
	unix.Close(int(fd))
	if _, err := unix.Read(3, make([]byte, 1)); err != nil {
		return err
	}
	unix.Close(3)
	os.Unsetenv(launchVar)
	return unix.Exec(path, os.Args[1:], os.Environ())
}

// refusedCalls are answered with EPERM in tests.
var refusedCalls = []uint32{unix.SYS_UNSHARE, unix.SYS_PTRACE, unix.SYS_IO_URING_SETUP}

// testFilter is simple: every call that the loop knows, opens by their flags
// and sendto by its address.
func testFilter(full bool) []unix.SockFilter {
	ld := func(off uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	const notify, allow = unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_ALLOW
	prog := []unix.SockFilter{ld(0)}
	on := func(nr uint32, then ...unix.SockFilter) {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: uint8(len(then))})
		prog = append(prog, then...)
	}
	writes := func(arg uint32) []unix.SockFilter {
		return []unix.SockFilter{ld(16 + 8*arg),
			{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC, Jf: 1}, ret(notify), ret(allow)}
	}
	for nr, c := range callTable() {
		switch {
		case c.shape == shapeOpen && c.flags >= 0 && !full:
			on(nr, writes(uint32(c.flags))...)
		case c.shape == shapeMessage: // except the one that hands the listener over
			on(nr, ld(16), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 3, Jf: 1}, ret(allow), ret(notify))
		case c.shape == shapeMessages:
			on(nr, ret(notify))
		case c.action == event.SockSend:
			on(nr, ld(16+8*4), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jf: 1}, ret(allow), ret(notify))
		default:
			on(nr, ret(notify))
		}
	}
	for _, nr := range refusedCalls {
		on(nr, ret(notify))
	}
	return append(prog, ret(allow))
}

// recorder is a sink that keeps everything.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
	fail   func(event.Event) error
}

func (r *recorder) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(e); err != nil {
			return err
		}
	}
	r.events = append(r.events, e)
	return nil
}

func (r *recorder) Observe(e event.Event) error { return r.Emit(e) }

// run is a program that is watched.
type run struct {
	t    testing.TB
	cmd  *exec.Cmd
	sink *recorder
	sup  *Supervisor
	out  strings.Builder

	lookups bool // opens for reading arrive at the level standard, too
}

// option changes how a program is watched.
type option func(*run, *Config, *exec.Cmd)

func level(l Level) option { return func(_ *run, c *Config, _ *exec.Cmd) { c.Level = l } }

func trees(trees ...policy.Tree) option {
	return func(_ *run, c *Config, _ *exec.Cmd) { c.View.Trees = trees }
}

func in(dir string) option { return func(_ *run, _ *Config, cmd *exec.Cmd) { cmd.Dir = dir } }

// start starts argv under a filter of its own.
func start(t testing.TB, argv []string, options ...option) *run {
	t.Helper()
	testenv.Need(t, testenv.Seccomp, nil)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	r := &run{t: t, sink: &recorder{}, cmd: exec.Command("/proc/self/exe", argv...)}
	c := Config{Sink: r.sink, Refuse: refuseInTests, View: View{Trees: []policy.Tree{{Path: "/", Access: policy.Write}}, UID: os.Geteuid(), GID: os.Getegid()}}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.ExtraFiles = []*os.File{theirs}
	for _, o := range options {
		o(r, &c, r.cmd)
	}
	word := "standard"
	if c.Level == Full || r.lookups {
		word = "full"
	}
	if r.cmd.Env == nil {
		r.cmd.Env = os.Environ()
	}
	r.cmd.Env = append(r.cmd.Env, launchVar+"="+word)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	defer func() {
		if c.Listener == nil {
			r.cmd.Wait()
			t.Log(r.out.String())
		}
	}()
	c.Listener = receiveFile(t, ours)
	if r.sup, err = New(c); err != nil {
		t.Fatal(err)
	}
	go r.sup.Serve()
	ours.Write([]byte{1})
	return r
}

func refuseInTests(nr uint32, _ [6]uint64) (syscall.Errno, bool) {
	for _, r := range refusedCalls {
		if nr == r {
			return unix.EPERM, true
		}
	}
	return 0, false
}

func receiveFile(t testing.TB, from *os.File) *os.File {
	t.Helper()
	buf, oob := make([]byte, 8), make([]byte, 64)
	n, oobn, _, _, err := unix.Recvmsg(int(from.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n != 1 {
		t.Fatalf("waiting for the listener: %d bytes, %v", n, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		t.Fatalf("waiting for the listener: %v %v", messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("waiting for the listener: %v %v", fds, err)
	}
	return os.NewFile(uintptr(fds[0]), "listener")
}

// wait waits for the end of the program and of the record. It returns the exit
// status as a shell gives it.
func (r *run) wait() int {
	r.t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(3 * time.Minute): // hundreds of waiters under the race detector take one
		r.cmd.Process.Kill()
		r.t.Fatalf("%v did not end; it wrote %q", r.cmd.Args[1:], r.out.String())
	}
	if err = closeRun(r, err); err != nil {
		r.t.Error(err)
	}
	ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

func closeRun(r *run, err error) error {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, io.EOF) {
		r.t.Error(err)
	}
	return r.sup.Close()
}

// eventsOf returns the events of an action.
func (r *run) eventsOf(action string) (found []event.Event) {
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	for _, e := range r.sink.events {
		if e.Action == action {
			found = append(found, e)
		}
	}
	return found
}

// denied counts the events that say denied.
func (r *run) denied() (n int) {
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	for _, e := range r.sink.events {
		if e.Verdict == event.Denied {
			n++
		}
	}
	return n
}

// about returns the one event of an action on an object.
func (r *run) about(action, object string) event.Event {
	r.t.Helper()
	var found []event.Event
	for _, e := range r.eventsOf(action) {
		if e.Object == object {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		r.t.Fatalf("%d events %s of %q, want 1; all: %s", len(found), action, object, r.dump())
	}
	return found[0]
}

func (r *run) dump() string {
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	var b strings.Builder
	for _, e := range r.sink.events {
		fmt.Fprintf(&b, "\n%s %q -> %q %v %s %s pid %d exec %d %q %v", e.Action, e.Object, e.Resolved, e.Verdict, e.Layer, e.Error,
			e.Process.PID, e.Process.Exec, e.Process.Argv, e.Detail)
	}
	return b.String()
}

// openClose opens a file and closes it.
func openClose(name *byte) {
	at := unix.AT_FDCWD
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(name)), unix.O_RDONLY, 0, 0, 0)
	if errno != 0 {
		panic(errno)
	}
	unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
}

// doCall makes one system call; strings become pointers to their bytes and a
// zero, byte slices pointers to their bytes.
func doCall(nr uintptr, args ...any) (uintptr, syscall.Errno) {
	var a [6]uintptr
	var keep [6][]byte
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			keep[i] = append([]byte(v), 0)
			a[i] = uintptr(unsafe.Pointer(&keep[i][0]))
		case []byte:
			keep[i] = append([]byte(nil), v...)
			a[i] = uintptr(unsafe.Pointer(&keep[i][0]))
		case int:
			a[i] = uintptr(v)
		}
	}
	r, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	runtime.KeepAlive(&keep)
	return r, errno
}
