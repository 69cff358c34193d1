//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// roleSwaps starts n processes that each execute one thing while another thread
// writes another into the same memory: "argument" of /bin/echo, "variable" of
// /usr/bin/env, or the "path".
func roleSwaps(n int, what string) {
	for range n {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVar+"=swap 0 "+what)
		cmd.Stdout = os.Stdout
		err := cmd.Run()
		fmt.Println("ended:", err)
	}
}

// word is eight bytes that are exchanged at once.
func word(s string) uint64 {
	b := make([]byte, 8)
	copy(b, s)
	return *(*uint64)(unsafe.Pointer(&b[0]))
}

func roleSwap(what string) {
	runtime.LockOSThread()
	path := append([]byte("/bin/echo"), 0)
	arg := new(uint64)
	good, bad, at := word("status"), word("pushed"), unsafe.Pointer(&path[0])
	if what == "path" {
		good, bad, at = word("./good"), word("./harm"), unsafe.Pointer(arg)
	}
	name := append([]byte("made"), 0)
	argv := []unsafe.Pointer{unsafe.Pointer(&name[0]), unsafe.Pointer(arg), nil}
	if what == "path" {
		argv[1] = unsafe.Pointer(&name[0])
	}
	var envp unsafe.Pointer
	if what == "variable" {
		program, zero := append([]byte("/usr/bin/env"), 0), append([]byte("-0"), 0)
		good, bad, at = word("A=good"), word("A=push"), unsafe.Pointer(&program[0])
		argv[1] = unsafe.Pointer(&zero[0])
		envp = unsafe.Pointer(&[]unsafe.Pointer{unsafe.Pointer(arg), nil}[0])
	}
	atomic.StoreUint64(arg, good)
	go func() {
		runtime.LockOSThread()
		for n := 0; ; n++ {
			atomic.StoreUint64(arg, bad)
			for range n % 50 {
				runtime.Gosched()
			}
			atomic.StoreUint64(arg, good)
			for range n % 70 {
				runtime.Gosched()
			}
		}
	}()
	time.Sleep(time.Millisecond)
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(at), uintptr(unsafe.Pointer(&argv[0])), uintptr(envp))
	runtime.KeepAlive(argv)
	runtime.KeepAlive(envp)
	os.Exit(int(errno))
}

// TestWhatRunsIsWhatWasJudged exchanges what is executed after it was looked at.
func TestWhatRunsIsWhatWasJudged(t *testing.T) {
	for _, tt := range []struct {
		what  string
		harm  string // what "path" leads to
		human *human
		about func(event.Attempt) bool
	}{
		{"argument", "/bin/true", &human{deny: hasArg("pushed")}, (&human{}).about("echo")},
		{"argument", "/bin/true", &human{ask: hasArg("pushed"), granted: hasArg("status"), answer: no}, (&human{}).about("none")},
		{"variable", "/bin/true", &human{deny: hasVariable("A=push")}, (&human{}).about("env")},
		{"variable", "/bin/true", &human{ask: hasVariable("A=push"), granted: hasVariable("A=good"), answer: no}, (&human{}).about("env")},
		{"path", "/usr/bin/touch", &human{deny: (&human{}).about("touch")}, (&human{}).about("touch")},
		// It does nothing itself: a child does, when it has ended.
		{"path", "/bin/dash", &human{deny: (&human{}).about("dash")}, (&human{}).about("dash")},
	} {
		t.Run(tt.what, func(t *testing.T) {
			const n = 25
			dir := makeTree(t)
			if err := errors.Join(os.Symlink("/bin/true", dir+"/good"), os.Symlink(tt.harm, dir+"/harm")); err != nil {
				t.Fatal(err)
			}
			if tt.harm == "/bin/dash" {
				if err := os.WriteFile(dir+"/made", []byte("( : > forked ) & exit"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			r := start(t, []string{"/proc/self/exe"}, in(dir), environment(fmt.Sprintf("%s=swaps %d %s", roleVar, n, tt.what)),
				gateOf(tt.human, tt.about, event.KindExec))
			if status := r.wait(); status != 0 {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			out := r.out.String()
			if strings.Contains(out, "push") {
				t.Errorf("what nobody allowed ran: %s", r.dump())
			}
			file := "/made"
			if tt.harm == "/bin/dash" {
				file = "/forked"
			}
			if _, err := os.Lstat(dir + file); err == nil {
				t.Errorf("what nobody allowed made a file: %s", r.dump())
			}
			killed, other := strings.Count(out, "killed"), 0
			for _, e := range r.eventsOf(event.ProcExec) {
				if e.Detail["instead_of"] != "" {
					other++
					if e.Verdict != event.Denied || e.Layer != event.LayerConsent || e.Process.SHA256 == "" || e.Object == "" || e.Process.Executable == "" || len(e.Process.Argv) != 2 {
						t.Errorf("%+v", e)
					}
				}
			}
			t.Logf("%d killed, %d ran something else, %d went well, %d were refused", killed, other, strings.Count(out, "nil"), strings.Count(out, "13"))
			if killed != other && tt.harm != "/bin/dash" {
				t.Errorf("%d were killed, and %d ran something else", killed, other)
			}
		})
	}
}

// roleExec executes in a way that no shell does.
func roleExec(how string) {
	open := func(path string, flags int) uintptr {
		fd, err := unix.Open(path, flags, 0)
		if err != nil {
			panic(err)
		}
		return uintptr(fd)
	}
	list := func(words ...string) unsafe.Pointer {
		all := make([]*byte, 0, len(words)+1)
		for _, w := range words {
			all = append(all, unsafe.StringData(w+"\x00"))
		}
		all = append(all, nil)
		return unsafe.Pointer(&all[0])
	}
	var fd uintptr
	path, argv := "", list("inner", "by", how)
	switch how {
	case "memory":
		text, err := os.ReadFile("/bin/echo")
		if err != nil {
			panic(err)
		}
		m, err := unix.MemfdCreate("echo", 0)
		if err != nil {
			panic(err)
		}
		if _, err := unix.Write(m, text); err != nil {
			panic(err)
		}
		fd, argv = uintptr(m), list("echo", "memory")
	case "script":
		fd, argv = open("inner", unix.O_PATH), list("inner", "by", "descriptor")
	case "directory":
		fd, path = open(".", unix.O_PATH|unix.O_DIRECTORY), "inner"
	case "none":
		fd, argv = open("/bin/true", unix.O_PATH), nil
	}
	name := append([]byte(path), 0)
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, fd, uintptr(unsafe.Pointer(&name[0])), uintptr(argv), 0, unix.AT_EMPTY_PATH, 0)
	fmt.Println(errno)
	os.Exit(1)
}
