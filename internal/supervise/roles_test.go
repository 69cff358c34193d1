//go:build linux

package supervise

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// roleVar makes this binary a program that is watched: a word and its arguments.
const roleVar = "HOLDFAST_SUPERVISE_ROLE"

// umaskVar is what the umask of that program is, octal.
const umaskVar = "HOLDFAST_SUPERVISE_UMASK"

func init() {
	role := os.Getenv(roleVar)
	if role == "" || os.Getenv(launchVar) != "" {
		return
	}
	word := strings.Fields(role)
	n := 0
	if len(word) > 1 {
		n, _ = strconv.Atoi(word[1])
	}
	switch word[0] {
	case "opens":
		fmt.Println(opens(n, word[2]))
	case "spawns":
		fmt.Println(spawns(n, word[2]))
	case "swaps":
		roleSwaps(n, word[2])
	case "swap":
		roleSwap(word[2])
	case "waiters":
		roleWaiters(n, word[2])
	case "race":
		roleRace(n, word[2])
	case "elsewhere":
		roleElsewhere(n)
	case "flip":
		roleFlip()
	case "fifo":
		roleFifo()
	case "exec":
		roleExec(word[2])
	case "calls":
		roleCalls()
	case "storm":
		roleStorm(n)
	case "stores":
		roleStores(word[2])
	case "dials":
		roleDials(n)
	case "sends":
		fmt.Println(roleSends(n))
	case "exit":
		os.Exit(n)
	}
	os.Exit(0)
}

// roleDials connects n times at once to a port without a listener, as a Go program
// does, which keeps a thread for each connect(2) that takes a moment.
func roleDials(n int) {
	var all sync.WaitGroup
	var refused atomic.Int32
	for range n {
		all.Go(func() {
			if _, err := net.DialTimeout("tcp", "127.0.0.1:1", time.Minute); errors.Is(err, unix.ECONNREFUSED) {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Println(refused.Load(), "refused")
}

// roleSends sends two messages to loopback with sendmsg(2): one that names port n,
// and one that names no address, for its socket is connected.
func roleSends(n int) error {
	to := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: n}
	unnamed, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	connected, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	// The filter of tests lets sendmsg pass on descriptor 3.
	const high = 100
	return errors.Join(unix.Dup3(unnamed, high, 0), unix.Dup3(connected, high+1, 0),
		unix.Connect(high+1, &unix.SockaddrInet4{Addr: to.Addr, Port: n + 1}),
		unix.Sendmsg(high, []byte("x"), nil, to, 0), unix.Sendmsg(high+1, []byte("x"), nil, nil, 0))
}

// aCall is one system call for the role to make.
type aCall struct {
	NR   uintptr
	Args []any
	Dir  string // changed to first, on this thread
	As   int    // what is opened becomes this descriptor
}

func init() {
	gob.Register([]byte(nil))
}

// roleCalls makes the calls listed on its standard input and prints the result of each.
func roleCalls() {
	runtime.LockOSThread()
	if mask, err := strconv.ParseInt(os.Getenv(umaskVar), 8, 32); err == nil {
		unix.Umask(int(mask))
	}
	var calls []aCall
	if err := gob.NewDecoder(os.Stdin).Decode(&calls); err != nil {
		fmt.Println("decoding:", err)
		os.Exit(1)
	}
	for _, c := range calls {
		if c.Dir != "" {
			if err := os.Chdir(c.Dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		result, errno := doCall(c.NR, c.Args...)
		if c.As > 0 && errno == 0 {
			errno = asErrno(unix.Dup3(int(result), c.As, 0))
		}
		name := unix.ErrnoName(errno)
		if name == "" {
			name = "-"
		}
		fmt.Println(name)
	}
}

// roleWaiters has n threads that each make a file in dir, while the first makes others
// where it may, and prints the result.
func roleWaiters(n int, dir string) {
	var all sync.WaitGroup
	var made, refused, mine atomic.Int32
	done := make(chan struct{})
	for i := range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_, errno := doCall(unix.SYS_OPENAT, unix.AT_FDCWD, fmt.Sprintf("%s/w%d", dir, i), unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
			switch errno {
			case 0:
				made.Add(1)
			case unix.EACCES:
				refused.Add(1)
			}
		})
	}
	go func() {
		all.Wait()
		close(done)
	}()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		select {
		case <-done:
			fmt.Println(made.Load(), refused.Load(), mine.Load() > 3)
			return
		default:
		}
		if fd, errno := doCall(unix.SYS_OPENAT, unix.AT_FDCWD, "mine", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); errno == 0 {
			unix.Close(int(fd))
			mine.Add(1)
		}
	}
}

// roleStorm has n threads that open, create and remove without end; the first
// to be through ends all.
func roleStorm(n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			runtime.LockOSThread()
			for j := range 30 {
				name := fmt.Sprintf("storm-%d-%d", i, j)
				doCall(unix.SYS_OPENAT, unix.AT_FDCWD, name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
				doCall(unix.SYS_UNLINKAT, unix.AT_FDCWD, name, 0)
			}
		})
	}
	all.Wait()
}

func standardInput(b []byte) option {
	return func(r *run, _ *Config, _ *exec.Cmd) { r.cmd.Stdin = bytes.NewReader(b) }
}

// makeCalls runs calls in dir under watch and returns what each came to.
func makeCalls(t *testing.T, dir string, calls []aCall, options ...option) (*run, []string) {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(calls); err != nil {
		t.Fatal(err)
	}
	options = append([]option{in(dir), environment(roleVar + "=calls"), standardInput(b.Bytes())}, options...)
	r := start(t, []string{"/proc/self/exe"}, options...)
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	got := strings.Fields(r.out.String())
	if len(got) != len(calls) {
		t.Fatalf("%d results of %d calls: %s", len(got), len(calls), r.out.String())
	}
	return r, got
}
