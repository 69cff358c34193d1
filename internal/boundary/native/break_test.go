//go:build linux

package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// scene is a launch that uses every kind of step: layers, protected paths, a
// terminal, a published port, doors, a file of our own. Its command makes the file
// ran.
func scene(dir string) (boundary.Spec, error) {
	work, cache := filepath.Join(dir, "work"), filepath.Join(dir, "cache")
	for _, d := range []string{work + "/.git/hooks", cache, dir + "/home"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return boundary.Spec{}, err
		}
	}
	if err := os.WriteFile(work+"/.git/config", nil, 0o644); err != nil {
		return boundary.Spec{}, err
	}
	return boundary.Spec{
		Plan: policy.Plan{
			Workspace: work, Dir: work,
			Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Name: "tester", Home: dir + "/home"},
			Paths:    []policy.PathRule{{Path: cache, Access: policy.Copy}},
			Protect:  []policy.Protected{{Path: ".git/config"}, {Path: ".git/hooks", IsDir: true}},
			Env:      []policy.Env{{Name: "PATH", Value: "/usr/bin:/bin"}, {Name: "SCENE", Value: dir}},
			Limits:   policy.Limits{Memory: 1 << 30, Processes: 512, Files: 512},
			Publish:  []policy.Port{{Host: 4711, Inside: 4711}},
		},
		Argv: []string{"touch", work + "/ran"},
		In:   boundary.Terminal, Err: boundary.Terminal,
		Network: &boundary.Network{Intercept: true, Rungs: []boundary.Rung{boundary.TProxy}, HostPorts: []int{4712},
			Open: func(d boundary.Doors) error { d.Close(); return nil }},
		Files:    []boundary.File{{Path: "/etc/holdfast/file", Content: []byte("ours")}, {Path: "/etc/services", Content: []byte("ours")}},
		Orphaned: []string{"orphaned", dir},
	}, nil
}

// programOf returns the launch program of spec on this machine.
func programOf(t *testing.T, spec boundary.Spec) *program {
	t.Helper()
	l := &launch{backend: &Backend{}, spec: spec, omit: map[string]bool{}}
	l.facts.rung = boundary.TProxy
	defer l.release()
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	l.builder = &builder{spec: l.spec, facts: l.facts, omit: l.omit}
	l.builder.build()
	p := l.builder.program
	l.builder = nil // nothing was started: release removes what prepare made
	return p
}

// temporary is a directory of its own with no link in its path.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// stepIndex finds the first step of that name.
func stepIndex(t *testing.T, p *program, name string) int {
	t.Helper()
	i := slices.IndexFunc(p.ops, func(o op) bool { return o.name == name })
	if i < 0 {
		t.Fatalf("no step is called %q", name)
	}
	return i
}

// unfailing are steps whose calls cannot fail, and without which nothing continues.
var unfailing = map[string]string{
	"report first process":       "a write to a socket of ours: it fails when the supervisor is dead, and then nobody waits",
	"kill inside":                "SIGKILL from the parent, who has the same or higher rights (kill(2))",
	"wait for inside":            "waits for the janitor's only child (wait4(2))",
	"wait":                       "waits for children, and ends when there are none (wait4(2))",
	"report status":              "as the first report",
	"ask for the control groups": "as the first report",
	"report ready":               "as the first report",
	"exit":                       "exit_group(2) does not return",
}

// TestEveryStepThatFails breaks one step of the launch after the other. A step
// that must succeed ends the launch with its name; any other may fail and the
// posture is still the plan's, or nothing is executed. Nothing is ever left.
func TestEveryStepThatFails(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	dir := temporary(t)
	testenv.NoLeaks(t, dir)
	spec, err := scene(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := programOf(t, spec)
	supervise := stepIndex(t, whole, "hide first process")
	word := stepIndex(t, whole, "wait for the supervisor") // the janitor's
	ready := word + 1 + slices.IndexFunc(whole.ops[word+1:], func(o op) bool { return o.name == "wait for the supervisor" })
	enter := stepIndex(t, whole, "close janitor socket") // the janitor's own part ends
	command := stepIndex(t, whole, "be dumpable")

	descriptors := countDescriptors(t)
	for n, o := range whole.ops {
		if o.nr == noCall || unfailing[o.name] != "" {
			continue
		}
		must := o.judge != ignore && o.judge != fails && o.judge != jumpOn
		// A failure before the supervisor knows that the command is complete must be
		// returned as the error of Start.
		before := n < supervise && (n < word || n >= enter) || n >= command && n < ready
		err, mayRun := broken(t, spec, n)
		if must && before && (err == nil || !strings.Contains(err.Error(), strings.TrimRight(o.name, "0123456789")) || !strings.Contains(err.Error(), "bad file descriptor")) {
			t.Errorf("step %d, %s, failed: %v, want its name", n, o.name, err)
		}
		ran := spec.Plan.Workspace + "/ran"
		if _, serr := os.Lstat(ran); err != nil && !mayRun && !errors.Is(serr, os.ErrNotExist) {
			t.Errorf("step %d, %s, failed: %v, and the command ran", n, o.name, err)
		}
		os.Remove(ran)
		if n%50 == 0 {
			leftGroups(t, o.name)
		}
	}
	leftGroups(t, "all")
	if now := countDescriptors(t); now != descriptors {
		t.Errorf("%d descriptors were open, now %d", descriptors, now)
	}
}

// broken starts spec with step n made to fail, and returns the error of Start or
// of what came after it, and whether that is one after which the command may
// have run: its first process was ended.
func broken(t *testing.T, spec boundary.Spec, n int) (err error, ran bool) {
	t.Helper()
	b := &Backend{tamper: func(p *program) {
		o := &p.ops[n]
		o.nr, o.args, o.refs = unix.SYS_CLOSE, [6]uint64{1<<32 - 1}, 0
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p, err := b.Start(ctx, spec)
	if ctx.Err() != nil {
		t.Errorf("step %d, %s, failed, and the launch hung", n, programOf(t, spec).ops[n].name)
	}
	if err != nil {
		return err, false
	}
	timer := time.AfterFunc(20*time.Second, func() { p.Kill("hung") })
	defer timer.Stop()
	exit, err := p.Wait()
	for _, c := range []interface{ Close() error }{p.Stdout(), p.Terminal()} {
		c.Close()
	}
	if exit.Reason == "hung" {
		t.Errorf("step %d, %s, failed, and the run hung", n, programOf(t, spec).ops[n].name)
	}
	return err, exit.Signal != 0
}

// TestNothingOutlivesTheJanitor: one that dies before the supervisor has closed its copy of
// the janitor's side of a socket is seen as alive by the first process, which it was the
// parent of no more when that asked to die with it.
func TestNothingOutlivesTheJanitor(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	spec, err := scene(temporary(t))
	if err != nil {
		t.Fatal(err)
	}
	b := &Backend{tamper: func(p *program) {
		for i := range p.ops {
			switch o := &p.ops[i]; o.name {
			case "hide janitor":
				o.nr, o.args, o.refs = unix.SYS_CLOSE, [6]uint64{1<<32 - 1}, 0
			case "die with parent", "parent is alive":
				o.nr, o.judge, o.refs = noCall, ignore, 0
			}
		}
	}}
	begun := time.Now()
	if _, err := b.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "hide janitor") {
		t.Errorf("the launch ended with %v", err)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("the end took %s: the first process was waited for, and waited", took)
	}
	leftGroups(t, "the end")
}

// leftGroups fails when a control group of this process is still there.
func leftGroups(t *testing.T, after string) {
	t.Helper()
	for _, g := range possibleGroups(policy.Limits{Memory: 1, Processes: 1, CPUs: 1}, "") {
		left, _ := filepath.Glob(filepath.Join(g.dir, "holdfast-"+strconv.Itoa(os.Getpid())+"-*"))
		if len(left) > 0 {
			t.Errorf("after %s there are the control groups %q", after, left)
		}
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestEveryErrorMidway gives each of several errors to one step that is known
// to see it in life.
func TestEveryErrorMidway(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	for _, tt := range []struct {
		name, step string
		answer     int64 // what the step's own call answers
	}{
		{"a filter that a thread refused is no filter", "install filter", 4711},
		{"a rule that the kernel does not acknowledge intercepts nothing", "intercept: rules: acknowledge", -1},
		{"Landlock that answers anything but 0 does not hold", "landlock restrict", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := temporary(t)
			testenv.NoLeaks(t, dir)
			spec, err := scene(dir)
			if err != nil {
				t.Fatal(err)
			}
			b := &Backend{tamper: func(p *program) {
				o := &p.ops[stepIndex(t, p, tt.step)]
				o.nr, o.args[0], o.refs = noCall, uint64(tt.answer), 0
			}}
			if p, err := b.Start(t.Context(), spec); err == nil {
				p.Kill("")
				p.Wait()
				t.Error("it started")
			}
			if _, err := os.Lstat(spec.Plan.Workspace + "/ran"); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// TestAttemptsThatWork shows that an attempt which is not refused stops the
// launch.
func TestAttemptsThatWork(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	dir := temporary(t)
	testenv.NoLeaks(t, dir)
	spec, err := scene(dir)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for n, o := range programOf(t, spec).ops {
		if o.judge != fails {
			continue
		}
		tried++
		b := &Backend{tamper: func(p *program) {
			o := &p.ops[n]
			o.nr, o.args, o.refs = unix.SYS_GETPID, [6]uint64{}, 0
		}}
		p, err := b.Start(t.Context(), spec)
		if err == nil {
			p.Kill("")
			p.Wait()
		}
		if err == nil || !strings.Contains(err.Error(), o.name) {
			t.Errorf("%s worked: %v", o.name, err)
		}
	}
	if tried < 5 {
		t.Errorf("only %d attempts are made from inside", tried)
	}
	if _, err := os.Lstat(spec.Plan.Workspace + "/ran"); err == nil {
		t.Error("the command ran")
	}
}
