//go:build linux

package native

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

// seccompChildVar makes a re-executed test binary a probe: its value is the
// mode, and every line of its input is one call.
const seccompChildVar = "HOLDFAST_TEST_SECCOMP_CHILD"

// Modes of the probe.
const (
	childFiltered = "filtered" // the calls, under the filter
	childPlain    = "plain"    // the calls, without it
	childOmit     = "omit:"    // under a filter without the group that follows
	childExec     = "exec"     // executes its arguments under the filter
	childCost     = "cost:"    // measures calls, filtered or plain as follows
)

func init() {
	mode := os.Getenv(seccompChildVar)
	if mode == "" {
		return
	}
	if err := seccompChild(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func seccompChild(mode string) error {
	if rest, ok := strings.CutPrefix(mode, childCost); ok {
		return seccompCost(rest)
	}
	if mode != childPlain {
		var opts filterOptions
		if group, ok := strings.CutPrefix(mode, childOmit); ok {
			opts.Omit = []string{group}
		}
		if err := seccompInstall(opts); err != nil {
			return err
		}
	}
	if mode == childExec {
		path, err := exec.LookPath(os.Args[1])
		if err != nil {
			return err
		}
		if err := os.Unsetenv(seccompChildVar); err != nil {
			return err
		}
		return unix.Exec(path, os.Args[1:], os.Environ())
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		c, err := parseSeccompCall(in.Text())
		if err != nil {
			return err
		}
		fmt.Println(c.invoke())
	}
	return in.Err()
}

// seccompInstall puts the filter on every thread of this process, and finds out
// when it did not get there: with TSYNC a positive result is the id of a thread
// that could not be synchronised, and no filter has been installed.
func seccompInstall(opts filterOptions) error {
	prog, err := filter(runtime.GOARCH, opts)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return fmt.Errorf("installing the filter: %w", errno)
	}
	if r != 0 {
		return fmt.Errorf("installing the filter: thread %d could not be synchronised", r)
	}
	return nil
}

// seccompCall is one call of a probe.
type seccompCall struct {
	door string // "native", or "int80"
	nr   uint32
	args [6]uint64
}

func (c seccompCall) String() string {
	return fmt.Sprintf("%s %d %d %d %d %d %d %d", c.door, c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
}

func parseSeccompCall(s string) (seccompCall, error) {
	var c seccompCall
	a := &c.args
	_, err := fmt.Sscan(s, &c.door, &c.nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5])
	return c, err
}

// invoke gives the errno, 0 for success.
func (c seccompCall) invoke() int {
	if c.door == "int80" {
		if r := seccompInt80(c.nr); r < 0 {
			return int(-r)
		}
		return 0
	}
	a := c.args
	_, _, errno := unix.Syscall6(uintptr(c.nr), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
	return int(errno)
}

// seccompProbe runs calls in a process of their own. killed is set when SIGSYS
// ended it; results holds what came before.
func seccompProbe(t *testing.T, mode string, calls []seccompCall) (results []int, killed bool) {
	t.Helper()
	testenv.Need(t, testenv.Seccomp, nil)
	cmd := exec.Command("/proc/self/exe")
	// Its own session: a hang-up or a signal to the group stays with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{seccompChildVar + "=" + mode, "GOTRACEBACK=none"}
	cmd.Dir = t.TempDir()
	var in strings.Builder
	for _, c := range calls {
		fmt.Fprintln(&in, c)
	}
	var errText strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), &errText
	out, err := cmd.Output()
	for _, line := range strings.Fields(string(out)) {
		var n int
		if _, err := fmt.Sscan(line, &n); err != nil {
			t.Fatalf("the probe wrote %q: %v", line, err)
		}
		results = append(results, n)
	}
	if err == nil {
		return results, false
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == unix.SIGSYS {
			return results, true
		}
	}
	t.Fatalf("the probe ended with %v after %d of %d calls: %s", err, len(results), len(calls), errText.String())
	return nil, false
}
