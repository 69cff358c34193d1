//go:build linux

package supervise

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// inletFor opens an inlet to a new file.
func inletFor(t *testing.T, ins *inlets, limit uint64, over <-chan struct{}) (fd int, path string) {
	t.Helper()
	path = makeTree(t) + "/file"
	file, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if fd, err = ins.open(file, limit, false, over); err != nil {
		t.Fatal(err)
	}
	return fd, path
}

// endOf waits until the reading end of an inlet is closed.
func endOf(t *testing.T, fd int) {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(fd)}}
	if n, err := unix.Poll(poll, 10_000); n != 1 || poll[0].Revents&unix.POLLERR == 0 {
		t.Fatalf("%d, %v: %+v", n, err, poll)
	}
	if _, err := unix.Write(fd, []byte("more")); err != unix.EPIPE {
		t.Errorf("a write after the end: %v", err)
	}
	unix.Close(fd)
}

func closeInlets(t *testing.T, ins *inlets) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ins.close(ctx); err != nil || len(ins.all) != 0 {
		t.Errorf("%v, %d are left", err, len(ins.all))
	}
}

// TestWhoOpensAFileFindsWhatWasWritten reads the file after each write, without
// anything else that would make it wait.
func TestWhoOpensAFileFindsWhatWasWritten(t *testing.T) {
	var ins inlets
	for range 20 {
		fd, path := inletFor(t, &ins, math.MaxUint64, nil)
		want := strings.Repeat("text", 1000)
		if _, err := unix.Write(fd, []byte(want)); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
		}
	}
	closeInlets(t, &ins)
}

func TestInletsEndWithTheirApproval(t *testing.T) {
	var ins inlets
	over := make(chan struct{})
	fd, path := inletFor(t, &ins, math.MaxUint64, over)
	if _, err := unix.Write(fd, []byte("text")); err != nil {
		t.Fatal(err)
	}
	ins.settle()
	close(over)
	endOf(t, fd)
	if got, err := os.ReadFile(path); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	closeInlets(t, &ins)
}

func TestInletsKeepTheLimitOfFileSizes(t *testing.T) {
	var ins inlets
	fd, path := inletFor(t, &ins, 4, nil)
	for _, text := range []string{"text", "more"} {
		if _, err := unix.Write(fd, []byte(text)); err != nil && !errors.Is(err, unix.EPIPE) {
			t.Fatal(err)
		}
		ins.settle()
	}
	endOf(t, fd)
	if got, err := os.ReadFile(path); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	closeInlets(t, &ins)
}

// TestInletsAreBounded opens as many as there may be, and one more.
func TestInletsAreBounded(t *testing.T) {
	var ins inlets
	var fds []int
	for range inletsMost {
		fd, _ := inletFor(t, &ins, math.MaxUint64, nil)
		fds = append(fds, fd)
	}
	one := func() (int, error) {
		file, err := unix.Open(makeTree(t)+"/file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return ins.open(file, math.MaxUint64, false, nil)
	}
	if fd, err := one(); err != unix.ENFILE {
		t.Errorf("one more: %d, %v", fd, err)
	}
	unix.Close(fds[0])
	for end := time.Now().Add(10 * time.Second); !ins.room() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	fd, err := one()
	if err != nil {
		t.Errorf("after one ended: %v", err)
	}
	for _, fd := range append(fds[1:], fd) {
		unix.Close(fd)
	}
	closeInlets(t, &ins)
}

// TestWhatIsHandedInIsForWritingAlone tries everything that a descriptor of the file
// itself would allow other than writing to it.
func TestWhatIsHandedInIsForWritingAlone(t *testing.T) {
	ws, out := grounds(t)
	open := func(name string, flags, as int) aCall {
		return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, name, flags, 0o644}, As: as}
	}
	rows := []struct {
		call aCall
		want string
	}{
		{open(out+"/file", unix.O_RDWR, 30), "-"},
		{aCall{NR: unix.SYS_READ, Args: []any{30, make([]byte, 4), 4}}, "EBADF"},
		{aCall{NR: unix.SYS_MMAP, Args: []any{0, 4, unix.PROT_READ, unix.MAP_SHARED, 30, 0}}, "EACCES"},
		{open(out+"/other", unix.O_RDONLY|unix.O_CREAT, 31), "-"},
		{aCall{NR: unix.SYS_READ, Args: []any{31, make([]byte, 4), 4}}, "EBADF"},
		{aCall{NR: unix.SYS_FTRUNCATE, Args: []any{30, 0}}, "EINVAL"},
		{aCall{NR: unix.SYS_FCHMOD, Args: []any{30, 0o777}}, ""},
		{aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, "/proc/self/fd/30", 0o777}}, ""},
		{aCall{NR: unix.SYS_FSETXATTR, Args: []any{30, "user.x", []byte("y"), 1, 0}}, ""},
		{aCall{NR: unix.SYS_FCHOWN, Args: []any{30, os.Getuid(), os.Getgid()}}, ""},
		{open("/proc/self/fd/30", unix.O_WRONLY|unix.O_TRUNC, 32), ""},
		{aCall{NR: unix.SYS_WRITE, Args: []any{30, []byte("new"), 3}}, "-"},
	}
	var calls []aCall
	for _, r := range rows {
		calls = append(calls, r.call)
	}
	h := &human{ask: below(out), answer: yes}
	_, got := makeCalls(t, ws, calls, gate(h, event.KindFile), trees(policy.Tree{Path: ws, Access: policy.Write}, policy.Tree{Path: "/proc", Access: policy.Copy}), carry())
	for i, r := range rows {
		if r.want != "" && got[i] != r.want {
			t.Errorf("call %d, number %d: %s, want %s", i, r.call.NR, got[i], r.want)
		}
	}
	for name, want := range map[string]string{"/file": "newt", "/other": "text"} {
		text, err := os.ReadFile(out + name)
		info, serr := os.Stat(out + name)
		if err != nil || serr != nil || string(text) != want || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %q, %v, %v %v", name, text, info.Mode(), err, serr)
		}
		if n, err := unix.Getxattr(out+name, "user.x", nil); err == nil {
			t.Errorf("%s has an attribute of %d bytes", name, n)
		}
	}
}
