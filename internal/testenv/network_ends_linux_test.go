package testenv

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/netlab"
)

// endsRole is the variable that makes this binary one of the processes of
// TestNetworkEnds.
const endsRole = "TESTENV_ENDS_ROLE"

// TestNetworkEnds kills the process in a network, or the one that requested it:
// neither side may remain, nor any process in between. When the processes have
// ended, so have the namespaces and the link in them.
func TestNetworkEnds(t *testing.T) {
	switch os.Getenv(endsRole) {
	case "wants":
		wantNetwork(t)
		return
	case "has":
		haveNetwork(t)
		return
	}
	Need(t, UserNS, nil)
	for _, killed := range []string{"wants", "has"} {
		t.Run("the process that "+killed+" it is killed", func(t *testing.T) {
			pids := startBoth(t)
			if err := syscall.Kill(pids[killed][0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for role, all := range pids {
				if role == "wants" && killed == "has" {
					continue
				}
				for _, pid := range all {
					gone(t, role, pid)
				}
			}
		})
	}
}

// startBoth starts a process that requests a network and one in it, and returns
// their PIDs and those of the processes in the network, by role.
func startBoth(t *testing.T) map[string][]int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestNetworkEnds$")
	cmd.Env = append(os.Environ(), endsRole+"=wants")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pids := map[string][]int{}
	for lines := bufio.NewScanner(out); len(pids["in"]) == 0 && lines.Scan(); {
		role, rest, _ := strings.Cut(lines.Text(), " ")
		for _, f := range strings.Fields(rest) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids[role] = append(pids[role], pid)
			}
		}
	}
	if len(pids["wants"]) != 1 || len(pids["has"]) != 1 || len(pids["in"]) != 2 {
		t.Fatalf("started were %v", pids)
	}
	return pids
}

// gone waits until a process has ended.
func gone(t *testing.T, role string, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, state, _ := strings.Cut(string(stat), ") "); err != nil || strings.HasPrefix(state, "Z") {
			return
		}
	}
	t.Errorf("process %d (%s) is left", pid, role)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func wantNetwork(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := netlab.Command(context.Background(), nil, exe, "-test.run=^TestNetworkEnds$")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(slices.Clone(cmd.Env), endsRole+"=has")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	runtime.LockOSThread() // it gets a signal when the thread ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("wants", os.Getpid())
	fmt.Println("has", cmd.Process.Pid)
	_ = cmd.Wait()
	time.Sleep(20 * time.Second) // it is killed before that
}

// haveNetwork starts a process that is independent of this one.
func haveNetwork(t *testing.T) {
	if inNetwork == nil {
		t.Fatal("there is no network")
	}
	sleep := exec.Command("sleep", "60")
	sleep.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	var children []byte
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			t.Fatal(err)
		}
		children = append(append(children, b...), ' ')
	}
	fmt.Println("in", string(children)) // the other side, and the sleeping process
	time.Sleep(20 * time.Second)
}
