//go:build linux

package boundarytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

func testEnds(t *testing.T, s Subject) {
	for _, tt := range []struct {
		name   string
		argv   func(r *room) []string
		status int
		want   error
	}{
		{"a status passes through", func(r *room) []string { return []string{r.program, marker, "exit\t3"} }, 3, nil},
		{"so does the highest", func(r *room) []string { return []string{r.program, marker, "exit\t255"} }, 255, nil},
		{"so does a signal", func(r *room) []string { return []string{r.program, marker, "kill\t9"} }, 137, nil},
		{"a name is looked up in the PATH of the plan", func(*room) []string { return []string{"true"} }, 0, nil},
		{"a command that is nowhere", func(*room) []string { return []string{"no-such-command"} }, 127, boundary.ErrNotFound},
		{"a path that leads nowhere", func(*room) []string { return []string{"./no-such-file"} }, 127, boundary.ErrNotFound},
		{"a command that is on the host only", func(r *room) []string { return []string{r.file("out/tool", "#!/bin/sh\n")} }, 127, boundary.ErrNotFound},
		{"a file without the right to execute", func(r *room) []string { return []string{r.file("work/plain", "#!/bin/sh\n")} }, 126, boundary.ErrNotExecutable},
		{"a directory", func(r *room) []string { return []string{r.work} }, 126, boundary.ErrNotExecutable},
		{"a file that is no program", func(r *room) []string {
			path := r.file("work/garbage", "\x00\x01garbage")
			if err := os.Chmod(path, 0o755); err != nil {
				r.Fatal(err)
			}
			return []string{path}
		}, 126, boundary.ErrNotExecutable},
		{"an empty name", func(*room) []string { return []string{""} }, 127, boundary.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := enter(t, s)
			o := r.run(r.spec(tt.argv(r)...))
			if !errors.Is(o.err, tt.want) || tt.want == nil && (o.err != nil || o.Status() != tt.status) {
				t.Errorf("status %d, error %v, want %d, %v", o.Status(), o.err, tt.status, tt.want)
			}
		})
	}
	t.Run("arguments and streams are passed on as they are", func(t *testing.T) {
		r := enter(t, s)
		p := r.mustStart(r.spec("sh", "-c", `cat; printf '%s|' "$@" >&2`, "sh", "", "a b", "$(id)", "\xff\n"))
		io.WriteString(p.Stdin(), "in\x00put")
		if o := p.wait(); o.stdout != "in\x00put" || o.stderr != "|a b|$(id)|\xff\n|" || o.Status() != 0 {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("nothing is left of a daemon", func(t *testing.T) {
		r := enter(t, s)
		if o := r.run(r.script("fork")); o.err != nil || o.Status() != 0 || !strings.Contains(o.stdout, "forked") {
			t.Errorf("got %+v", o)
		}
	})
}

func testSignals(t *testing.T, s Subject) {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR1, unix.SIGKILL} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			r := enter(t, s)
			p := r.mustStart(r.spec("sh", "-c", "echo paused; exec sleep 100"))
			p.expect("paused")
			if err := p.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if o := p.wait(); o.err != nil || o.Signal != sig {
				t.Errorf("ended with %+v", o)
			}
			if err := p.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("a signal after the end: %v", err)
			}
		})
	}
	t.Run("stop and continue", func(t *testing.T) {
		r := enter(t, s)
		p := r.mustStart(r.spec("sh", "-c", "echo paused; read line; echo $line; exit 4"))
		p.expect("paused")
		for range 3 {
			if err := p.Signal(unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			select {
			case state := <-p.Changes():
				if state != boundary.Stopped {
					t.Fatalf("state %v", state)
				}
			case <-time.After(limitOfRun):
				t.Fatal("it was not reported that it stopped")
			}
			if err := p.Signal(unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		io.WriteString(p.Stdin(), "on\n")
		if o := p.wait(); o.Status() != 4 || !strings.HasSuffix(o.stdout, "on\n") {
			t.Errorf("got %+v", o)
		}
		for range p.Changes() { // it is closed when the command has ended
		}
	})
}

func testKill(t *testing.T, s Subject) {
	t.Run("ends everything and gives the reason", func(t *testing.T) {
		r := enter(t, s)
		p := r.mustStart(r.script("fork", "pause"))
		p.expect("paused")
		p.Kill("a limit")
		p.Kill("another")
		if o := p.ended(); o.err != nil || o.Reason != "a limit" || o.Signal != unix.SIGKILL {
			t.Errorf("got %+v", o)
		}
		p.Kill("after the end")
	})
	t.Run("ends what is stopped", func(t *testing.T) {
		r := enter(t, s)
		p := r.mustStart(r.script("pause"))
		p.expect("paused")
		if err := p.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		p.Kill("")
		if o := p.ended(); o.Status() != 137 {
			t.Errorf("got %+v", o)
		}
	})
}

// testContext is about contexts that end before, during and after a launch.
func testContext(t *testing.T, s Subject) {
	t.Run("a context that ended starts nothing", func(t *testing.T) {
		r := enter(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if p, err := r.subject.Backend.Start(ctx, r.script("create\t"+r.work+"/ran")); err == nil {
			p.Kill("")
			p.Wait()
			t.Error("it started")
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		r.missing(r.work + "/ran")
	})
	t.Run("a context that ends during the launch stops it", func(t *testing.T) {
		r := enter(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		spec := r.script("create\t" + r.work + "/ran")
		spec.Attested = func(boundary.Posture) error { cancel(); return nil }
		if p, err := r.subject.Backend.Start(ctx, spec); err == nil {
			p.Wait() // it was too late, and the command may have run
		} else {
			r.missing(r.work + "/ran")
		}
	})
	t.Run("a context that ends after the start ends nothing", func(t *testing.T) {
		r := enter(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		p, err := r.subject.Backend.Start(ctx, r.spec("sh", "-c", "read line; exit 5"))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(50 * time.Millisecond)
		p.Stdin().Close()
		p.Stdout().Close()
		p.Stderr().Close()
		if exit, err := p.Wait(); err != nil || exit.Status() != 5 {
			t.Errorf("got %+v, %v", exit, err)
		}
	})
}

func testDial(t *testing.T, s Subject) {
	for _, address := range []string{"127.0.0.1:4711", "[::1]:4711", "0.0.0.0:4711", "[::]:4711"} {
		t.Run(address, func(t *testing.T) { dials(t, s, address) })
	}
}

// dials reaches what is served at a port of loopback, of either family.
func dials(t *testing.T, s Subject, address string) {
	r := enter(t, s)
	r.plan.Publish = []policy.Port{{Host: 4711, Inside: 4711}}
	p := r.mustStart(r.script("serve\t" + address))
	p.expect("serving")
	if _, err := p.Dial(4712); err == nil {
		t.Error("a port that is not served answered")
	}
	conn, err := p.Dial(4711)
	if err != nil {
		p.Kill("")
		p.Wait()
		t.Fatal(err)
	}
	io.WriteString(conn, "hello")
	if w, ok := conn.(interface{ CloseWrite() error }); !ok || w.CloseWrite() != nil {
		t.Error("one direction of the connection cannot be closed")
	}
	if b, err := io.ReadAll(conn); err != nil || string(b) != "hello" {
		t.Errorf("read %q, %v", b, err)
	}
	conn.Close()
	if o := p.wait(); o.err != nil || o.Status() != 0 {
		t.Errorf("got %+v", o)
	}
	if _, err := p.Dial(4711); err == nil {
		t.Error("a port was reached after the end")
	}
}

func testAttestation(t *testing.T, s Subject) {
	t.Run("comes before the command", func(t *testing.T) {
		r := enter(t, s)
		spec := r.script("create\t" + r.work + "/ran")
		calls := 0
		spec.Attested = func(p boundary.Posture) error {
			calls++
			r.missing(r.work + "/ran")
			return nil
		}
		if o := r.run(spec); o.err != nil || calls != 1 {
			t.Errorf("%d calls, %+v", calls, o)
		}
		r.reads(r.work+"/ran", "made inside\n")
	})
	t.Run("its error stops the launch", func(t *testing.T) {
		r := enter(t, s)
		stop := errors.New("not recorded")
		spec := r.script("create\t" + r.work + "/ran")
		spec.Attested = func(boundary.Posture) error { return stop }
		if o := r.run(spec); !errors.Is(o.err, stop) {
			t.Errorf("got %+v", o)
		}
		time.Sleep(20 * time.Millisecond)
		r.missing(r.work + "/ran")
	})
}

// testRefused is about plans that do not fit the host, and what launches leave.
func testRefused(t *testing.T, s Subject) {
	t.Run("a workspace that went away starts nothing", func(t *testing.T) {
		r := enter(t, s)
		r.plan.Workspace, r.plan.Dir = r.work+"/gone", r.work+"/gone"
		if o := r.run(r.spec("true")); o.err == nil {
			t.Error("it started")
		}
	})
	t.Run("a path with a link in it is refused", func(t *testing.T) {
		r := enter(t, s)
		if err := os.Symlink(r.out, r.dir+"/link"); err != nil {
			t.Fatal(err)
		}
		r.rule(r.dir+"/link", policy.Read)
		if o := r.run(r.spec("true")); o.err == nil {
			t.Error("it started, although the plan names resolved paths")
		}
	})
	t.Run("a failed launch leaves no descriptor", func(t *testing.T) {
		r := enter(t, s)
		r.plan.Protect = []policy.Protected{{Path: "not/there"}}
		r.run(r.spec("true"))
		before := ownDescriptors(t)
		for range 3 {
			if o := r.run(r.spec("true")); !errors.Is(o.err, os.ErrNotExist) {
				t.Errorf("error %v, want that of a path that is not there", o.err)
			}
		}
		if left := newDescriptors(before, ownDescriptors(t)); len(left) > 0 {
			t.Errorf("descriptors before %q, left %q", before, left)
		}
	})
	t.Run("a run leaves no descriptor", func(t *testing.T) {
		r := enter(t, s)
		r.run(r.spec("true"))
		before := ownDescriptors(t)
		for range 3 {
			r.run(r.spec("true"))
		}
		if left := newDescriptors(before, ownDescriptors(t)); len(left) > 0 {
			t.Errorf("descriptors before %q, left %q", before, left)
		}
	})
}

// ownDescriptors lists what this process has open, without numbers that differ
// from run to run.
func ownDescriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil {
			continue // the list's own
		}
		kind, _, _ := strings.Cut(target, ":")
		out = append(out, fmt.Sprintf("%s %s", e.Name(), kind))
	}
	return out
}

// newDescriptors are the descriptors that were not open before. One of before may be closed
// meanwhile: that of a launch that was just over.
func newDescriptors(before, after []string) []string {
	return slices.DeleteFunc(after, func(d string) bool { return slices.Contains(before, d) })
}

// testPosture compares what was attested with every thread of commands that
// have many, after they were executed.
func testPosture(t *testing.T, s Subject) {
	commands := []struct {
		name string
		argv func(*room) []string
	}{
		{"a Go program with 40 threads", func(r *room) []string { return []string{r.program, marker, "threads\t40"} }},
		{"a shell's child", func(r *room) []string { return []string{"sh", "-c", "echo paused; sleep 100"} }},
	}
	if testenv.Have(testenv.Node) {
		commands = append(commands, struct {
			name string
			argv func(*room) []string
		}{"a Node program with workers", func(*room) []string {
			return []string{"node", "-e", `const {Worker} = require("worker_threads");
				let up = 0;
				for (let i = 0; i < 4; i++) new Worker("setInterval(() => {}, 1000); require('worker_threads').parentPort.postMessage(1)", {eval: true})
					.on("message", () => { if (++up == 4) console.log("paused"); });`}
		}})
	}
	for _, tt := range commands {
		t.Run(tt.name, func(t *testing.T) {
			r := enter(t, s)
			var attested boundary.Posture
			spec := r.spec(tt.argv(r)...)
			spec.Attested = func(p boundary.Posture) error { attested = p; return nil }
			p := r.mustStart(spec)
			p.expect("paused")
			attested.Descriptors = nil
			for _, pid := range append(children(t, p.PID()), p.PID()) {
				got, err := s.Collect(pid)
				if err != nil {
					t.Errorf("process %d: %v", pid, err)
				}
				for _, d := range attested.Diff(got) {
					t.Errorf("process %d: %s", pid, d)
				}
			}
			p.Kill("")
			p.ended()
		})
	}
}

// children lists the processes right below pid.
func children(t *testing.T, pid int) []int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for f := range strings.FieldsSeq(string(raw)) {
		var child int
		if _, err := fmt.Sscan(f, &child); err == nil {
			out = append(out, child)
		}
	}
	return out
}
