package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/prove/agent"
)

// children are the processes of a trial. This process is the first of the
// namespace, so that orphans become its children.
type children struct {
	mu    sync.Mutex
	known []int // processes that are waited for here; guarded by mu
}

func newChildren() *children {
	c := &children{}
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			c.reap()
		}
	}()
	return c
}

// start starts cmd as a process that is waited for.
func (c *children) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		c.known = append(c.known, cmd.Process.Pid)
	}
	return err
}

// reap reaps orphans that have ended.
func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range processes() {
		if one.state == 'Z' && one.parent == 1 && !slices.Contains(c.known, one.pid) {
			_, _ = syscall.Wait4(one.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// process is a process of the namespace (proc_pid_stat(5)).
type process struct {
	pid, parent int
	state       byte
	since       uint64 // in ticks since boot
}

func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		f, err := sys.StatFields("/proc/" + e.Name())
		if err != nil {
			continue
		}
		p := process{pid: pid, state: f[sys.StatState][0]}
		p.parent, _ = strconv.Atoi(f[sys.StatParent])
		p.since, _ = strconv.ParseUint(f[sys.StatStarted], 10, 64)
		out = append(out, p)
	}
	return out
}

// end kills all processes started at or after since, except this one and those in
// but.
func end(since uint64, but ...int) {
	for _, one := range processes() {
		if one.pid != 1 && one.since >= since && !slices.Contains(but, one.pid) {
			_ = syscall.Kill(one.pid, syscall.SIGKILL)
		}
	}
}

// userTick is the unit of process.since, USER_HZ, on every architecture that we
// support.
const userTick = 10 * time.Millisecond

// ticksAgo is the time d ago, in the ticks of [process]. It is rounded down once,
// as the kernel rounds the start times of processes. The difference of two
// rounded times could be one tick later, and a process started in that tick would
// survive. If the clock cannot be read, it returns a time at which no process
// started.
func ticksAgo(d time.Duration) uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 1 << 62
	}
	return uint64(max(0, time.Duration(ts.Nano())-d) / userTick)
}

// How long an agent may take, besides its steps.
const (
	startLimit = time.Minute      // until its first request
	grace      = 10 * time.Second // after a step was ended for it, or all were requested; at most as long as a step
)

// start starts the agent and waits until it ends. It returns why the agent ended
// early, and the end of its output.
func (t task) start(ctx context.Context, c *children, p *play) (ended, output string) {
	if err := write(t.Launch); err != nil {
		return "its files could not be written: " + err.Error(), ""
	}
	launch := t.Launch
	if t.Inside != nil {
		launch = t.Inside.around(launch)
	}
	cmd, out := command(launch)
	if err := c.start(cmd); err != nil {
		return "it could not be started: " + err.Error(), ""
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	killed, err := watch(ctx, cmd.Process.Pid, p, t.Step, done)
	output = out.String()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return "", output
	case killed != "":
		return killed, output
	case err != nil:
		return "it ended: " + err.Error(), output
	}
	return "it ended by itself", output
}

// watch waits for the agent. It ends a step that takes too long, and the agent if
// that does not help.
func watch(ctx context.Context, pid int, p *play, limit time.Duration, done <-chan error) (killed string, err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	kill := func(why string) {
		if killed == "" {
			killed = why
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	helped := -2
	for {
		select {
		case err := <-done:
			return killed, err
		case <-ctx.Done():
			kill("its time was up")
		case <-tick.C:
		}
		p.mu.Lock()
		asked, over, idle, turned := p.asked, p.over, time.Since(p.turned), p.turned
		p.mu.Unlock()
		switch {
		case asked < 0 && idle > startLimit:
			kill(fmt.Sprintf("it asked for nothing in %v", startLimit))
		case over && idle > min(grace, limit):
			kill("")
		case asked >= 0 && !over && helped != asked && idle > limit:
			helped = asked
			p.markStuck()
			end(ticksAgo(time.Since(turned)), pid, p.world.Victim)
		case asked >= 0 && !over && helped == asked && idle > min(grace, limit):
			kill(fmt.Sprintf("it asked for nothing in %v", limit+min(grace, limit)))
		}
	}
}

// command prepares a launch. The end of its output is kept.
func command(l agent.Launch) (*exec.Cmd, *tail) {
	out := &tail{}
	cmd := exec.Command(l.Argv[0], l.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = l.Env, l.Dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second // a daemon may hold its output open
	return cmd, out
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

// tailSize is how much of an agent's output is kept, in bytes.
const tailSize = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if extra := len(t.b) - tailSize; extra > 0 {
		t.b = bytes.Clone(t.b[extra:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "")
}

// backLimit is how long each action of the returning human may take.
const backLimit = 20 * time.Second

// comeBack does what a human does who returns to the machine: looks at the
// workspace, opens a shell, and starts the agent again.
func (t task) comeBack(ctx context.Context, c *children) {
	human := func(l agent.Launch) {
		ctx, cancel := context.WithTimeout(ctx, backLimit)
		defer cancel()
		cmd, _ := command(l)
		if c.start(cmd) != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL) })
		defer stop()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			return
		}
	}
	for _, argv := range [][]string{{"git", "status"}, {"git", "log", "-1", "--stat"}, {"git", "commit", "--allow-empty", "-q", "-m", "widget: go on"}, {"bash", "-lic", "true"}, {"sh", "-lc", "true"}} {
		human(agent.Launch{Argv: argv, Env: humanEnv(), Dir: workspace})
	}
	if len(t.Again.Argv) > 0 {
		human(t.Again)
	}
}
