package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/testenv"
)

// waiting is a run whose command waits until end is called.
func waiting(t *testing.T) (cmd *exec.Cmd, end func()) {
	t.Helper()
	cmd = exec.Command(testenv.Binary(t), "run", "--", "sh", "-c", "echo up; read wait")
	cmd.Dir, cmd.Env = t.TempDir(), testenv.HomeEnv(testenv.TempHome(t))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Error(line, err)
	}
	return cmd, func() {
		in.Close()
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Error(err)
		}
	}
}

// TestRootTheSupervisorIsRoots: threads of root's supervisor take the ids of the task,
// but never the first thread, whose ids are those of the process. It happened in one
// run of fourteen.
func TestRootTheSupervisorIsRoots(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	for range 20 {
		cmd, end := waiting(t)
		var st syscall.Stat_t
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err == nil {
			err = syscall.Stat(fmt.Sprintf("/proc/%d", cmd.Process.Pid), &st)
		}
		end()
		if uids := sys.StatusField(raw, "Uid"); err != nil || !slices.Equal(uids, []string{"0", "0", "0", "0"}) || st.Uid != 0 {
			t.Fatalf("the ids of the supervisor are %v, its directory in /proc is of user %d, %v", uids, st.Uid, err)
		}
	}
}

// TestTheSupervisorIsPrivate looks at a run as another program of the same user
// would: nothing of the supervisor and the janitor can be read, and neither leaves
// a core file.
func TestTheSupervisorIsPrivate(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	cmd, end := waiting(t)
	t.Cleanup(end)
	for _, pid := range append(childrenOf(t, cmd.Process.Pid), fmt.Sprint(cmd.Process.Pid)) {
		name, _ := os.ReadFile("/proc/" + pid + "/comm")
		limits, err := os.ReadFile("/proc/" + pid + "/limits")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(limits)) {
			if f := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && (f[4] != "1" || f[5] != "1") {
				t.Errorf("%s may leave a core file: %s", name, line)
			}
		}
		var st syscall.Stat_t
		if err := syscall.Stat("/proc/"+pid+"/environ", &st); err != nil {
			t.Fatal(err)
		}
		if st.Uid != 0 { // root's own are its own in any case
			t.Errorf("%s is dumpable", name)
		}
	}
}

// childrenOf are the processes that a process started.
func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Fields(string(text))...)
	}
	if len(all) == 0 {
		t.Fatal("the supervisor has no janitor")
	}
	return all
}
