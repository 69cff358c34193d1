//go:build linux

package native

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// patience is how long what happens at once may take on a busy machine.
const patience = 20 * time.Second

// TestKilledSupervisor kills the supervisor with SIGKILL while the launch is paused
// before each of its steps, and while the command runs. Soon nothing of the run may be
// left, and the orphaned command has run.
func TestKilledSupervisor(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	dir := temporary(t)
	testenv.NoLeaks(t, dir)
	spec, err := scene(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := programOf(t, spec)
	outside := stepIndex(t, whole, "close janitor socket")
	supervise, command := stepIndex(t, whole, "hide first process"), stepIndex(t, whole, "be dumpable")
	ready := stepIndex(t, whole, "report ready")
	for n, o := range whole.ops {
		if o.nr == noCall || o.name == "exit" {
			continue
		}
		killedAt(t, dir, n, o.name, n > 2, n > outside && n <= supervise || n >= command && n <= ready)
	}
	killedAt(t, dir, -1, "the run", true, false)
}

// killedAt kills a supervisor that is paused before step n, or runs for -1.
func killedAt(t *testing.T, dir string, n int, name string, spawned, early bool) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", dir, strconv.Itoa(n))
	cmd.Args[0] = "supervisor"
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	standsStill(out, n)
	for limit := time.Now().Add(patience); spawned && !begun(pid) && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	for limit := time.Now().Add(patience); !rests(pid) && time.Now().Before(limit); { // so that it gets to the step
	}
	cmd.Process.Kill()
	cmd.Wait()
	mark := dir + "/orphaned"
	deadline := time.Now().Add(patience)
	var left []string
	for time.Now().Before(deadline) {
		_, err := os.Lstat(mark)
		if left = remains(dir, pid); len(left) == 0 && (err == nil || !spawned) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("killed before step %d, %s: left %q", n, name, left)
	}
	if _, err := os.Lstat(mark); err != nil && spawned {
		t.Errorf("killed before step %d, %s: the orphaned command did not run", n, name)
	}
	os.Remove(mark)
	if _, err := os.Lstat(dir + "/work/ran"); early && err == nil {
		t.Errorf("killed before step %d, %s: the command ran", n, name)
	}
	os.Remove(dir + "/work/ran")
	want := map[string]bool{".git": true, "ran": true}
	entries, _ := os.ReadDir(dir + "/work")
	for _, e := range entries {
		if !want[e.Name()] {
			t.Errorf("killed before step %d, %s: %s is left in the workspace", n, name, e.Name())
		}
	}
}

// standsStill waits until the supervisor has said that it launches or, for -1,
// that the command runs.
func standsStill(out io.Reader, n int) {
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "launching" && n >= 0 {
	}
	if n < 0 {
		for lines.Text() != "running" && lines.Scan() {
		}
	}
}

// begun reports whether the janitor of a supervisor has a child.
func begun(supervisor int) bool {
	for _, pid := range descendants(supervisor, nil) {
		if pid != supervisor && len(descendants(pid, nil)) > 1 {
			return true
		}
	}
	return false
}

// rests reports whether the processes that a supervisor started all slept for a
// while: one that has still to get somewhere runs, or wants to.
func rests(supervisor int) bool {
	before, asleep := states(supervisor)
	time.Sleep(10 * time.Millisecond)
	after, _ := states(supervisor)
	return asleep && after == before
}

// states lists what the processes below a supervisor do, and how often each switched to
// something else (proc_pid_status(5)). Before the first of them exists, no process can
// clean up.
func states(supervisor int) (all string, asleep bool) {
	below := descendants(supervisor, nil)[1:]
	asleep = len(below) > 0
	for _, pid := range below {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "State:") || strings.Contains(line, "ctxt_switches:") {
				all += fmt.Sprint(pid, " ", line)
			}
		}
		asleep = asleep && strings.Contains(string(status), "State:\tS")
	}
	return all, asleep
}

// remains lists the processes that bear dir in their environment, arguments or
// mounts, and the control groups of a supervisor.
func remains(dir string, supervisor int) []string {
	var left []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		if filepath.Base(p) == strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, f := range []string{"cmdline", "environ", "mountinfo"} {
			if b, err := os.ReadFile(p + "/" + f); err == nil && strings.Contains(string(b), dir) {
				args, _ := os.ReadFile(p + "/cmdline")
				left = append(left, fmt.Sprintf("%s %q", p, args))
				break
			}
		}
	}
	for _, g := range possibleGroups(policy.Limits{Memory: 1, Processes: 1, CPUs: 1}, "") {
		groups, _ := filepath.Glob(filepath.Join(g.dir, "holdfast-"+strconv.Itoa(supervisor)+"-*"))
		left = append(left, groups...)
	}
	return left
}

func init() {
	supervisors["supervisor"] = supervise
	supervisors["orphaned"] = func(args []string) int {
		if err := os.WriteFile(args[0]+"/orphaned", nil, 0o600); err != nil {
			return 1
		}
		return 0
	}
}

// supervise is a supervisor whose launch stops before a step.
func supervise(args []string) int {
	dir := args[0]
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	spec, err := scene(dir)
	if err != nil {
		return 2
	}
	b := &Backend{}
	spec.Argv = []string{"sh", "-c", "touch ran; setsid sleep 1000 & echo running; sleep 1000"}
	if n >= 0 {
		b.tamper = func(p *program) { standBefore(p, n) }
	}
	fmt.Println("launching")
	proc, err := b.Start(context.Background(), spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	io.Copy(os.Stdout, proc.Stdout())
	if _, err := proc.Wait(); err != nil && !errors.Is(err, boundary.ErrNotFound) {
		return 1
	}
	return 0
}

// standBefore inserts a wait before step n. The janitor resumes after a while, because
// only the janitor itself can end it.
func standBefore(p *program, n int) {
	outside := 0
	for i, o := range p.ops {
		if o.name == "close janitor socket" {
			outside = i
		}
	}
	length := p.words(60, 0)
	if n < outside {
		length = p.words(0, uint64(100*time.Millisecond))
	}
	wait := op{name: "stand still", nr: unix.SYS_NANOSLEEP, judge: ignore, args: [6]uint64{length}}
	moved := map[*label]bool{}
	for _, o := range p.ops {
		if o.jump != nil && o.jump.index > n && !moved[o.jump] {
			moved[o.jump] = true
			o.jump.index++
		}
	}
	p.ops = append(p.ops[:n], append([]op{wait}, p.ops[n:]...)...)
}

// TestSuddenEnds kills the processes of a run that hold it together. Whichever
// goes, the run ends, at once and as a failure, and leaves nothing.
func TestSuddenEnds(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	for _, tt := range []struct {
		name   string
		victim func(*process) int
	}{
		{"the janitor", func(p *process) int { return p.janitor.Pid }},
		{"the first process inside", func(p *process) int { return p.first }},
		{"the command", func(p *process) int { return p.pid }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := temporary(t)
			testenv.NoLeaks(t, dir)
			spec, err := scene(dir)
			if err != nil {
				t.Fatal(err)
			}
			spec.Argv = []string{"sh", "-c", "setsid sleep 1000 & sleep 1000"}
			started, err := (&Backend{}).Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			p := started.(*process)
			p.Stdout().Close()
			defer p.Terminal().Close()
			if err := unix.Kill(tt.victim(p), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(patience, func() { p.Kill("hung") })
			defer hung.Stop()
			exit, err := p.Wait()
			if exit.Reason == "hung" {
				t.Error("the run went on without it")
			}
			if err == nil && exit.Status() == 0 {
				t.Error("the run counts as a success")
			}
			leftGroups(t, "the end")
		})
	}
}
