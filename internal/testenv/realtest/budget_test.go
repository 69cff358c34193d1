package realtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// budget is the maximum number of system calls of a run of /bin/true, with all
// walls and the standard record: the measured number plus a tenth.
// docs/decisions/start.md has the time of each layer.
var budget = []struct {
	layer string
	call  *regexp.Regexp // process and call
	most  int
}{
	{"view and walls", regexp.MustCompile(`^holdfast-jan `), 480},
	{"command", regexp.MustCompile(`^(holdfast-cmd|true) `), 55},
	{"policy, scan, record: files", regexp.MustCompile(`^holdfast (open|\w*stat|readlink|getdents|close|mkdir|unlink|rename|f\w*sync)`), 1400},
	{"launch, sensors: processes, sockets, mounts", regexp.MustCompile(`^holdfast (clone|execve|pidfd|socket|bind|listen|recvmsg|sendmsg|ioctl|process_vm|open_tree|mount|ptrace|prctl|dup|pipe)`), 130},
}

// countedCalls excludes the calls with which the Go runtime and the receivers
// wait: their number varies with the load of the machine.
const countedCalls = "trace=!nanosleep,futex,epoll_pwait,epoll_wait,epoll_ctl,sched_yield,read,write,tgkill,getpid,gettid,rt_sigreturn,ppoll,restart_syscall"

// TestBudget counts the system calls of a start, which vary less than time. The
// cheapest of three runs counts: the first creates keys and directories. Files
// are counted only as root: without a control group for the limits, the machine's
// other processes are examined too.
func TestBudget(t *testing.T) {
	testenv.Need(t, "strace", func() error { return exec.Command("strace", "-V").Run() })
	p := newFixture(t, t.TempDir(), testenv.FUSE)
	p.write(map[string]string{"f": "x"})
	least := make([]int, len(budget))
	for range 3 {
		for i, n := range p.countCalls("run", "--", "/bin/true") {
			if least[i] == 0 || n < least[i] {
				least[i] = n
			}
		}
	}
	for i, row := range budget {
		t.Logf("%s: %d system calls, at most %d", row.layer, least[i], row.most)
		if os.Geteuid() != 0 && strings.HasSuffix(row.layer, "files") {
			continue
		}
		if least[i] > row.most || least[i] == 0 {
			t.Errorf("%s: %d system calls, at most %d are borne with", row.layer, least[i], row.most)
		}
	}
}

// tracedCall is a line of strace: process and call.
var tracedCall = regexp.MustCompile(`^\d+<(.*?)> (\w+)\(`)

// countCalls runs holdfast, and returns how many system calls each layer made.
func (p *fixture) countCalls(args ...string) []int {
	p.t.Helper()
	trace := filepath.Join(p.t.TempDir(), "trace")
	cmd := exec.Command("strace", append([]string{"-f", "-qq", "--decode-pids=comm", "-s0", "-e", "signal=none", "-e", countedCalls, "-o", trace, testenv.Binary(p.t)}, args...)...)
	cmd.Dir, cmd.Env = p.ws, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		p.t.Fatal(err)
	}
	counts := make([]int, len(budget))
	for line := range strings.Lines(string(text)) {
		m := tracedCall.FindStringSubmatch(line)
		if m == nil {
			continue // the second half of an interrupted call
		}
		for i, row := range budget {
			if row.call.MatchString(m[1] + " " + m[2]) {
				counts[i]++
				break
			}
		}
	}
	return counts
}
