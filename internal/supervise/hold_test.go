//go:build linux

package supervise

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// both is an attempt to change something below dir, or to execute /bin/true.
func both(dir string) func(event.Attempt) bool {
	return func(a event.Attempt) bool { return below(dir)(a) || a.Kind == event.KindExec && a.Path == "/bin/true" }
}

func TestHeldCallsSurviveSignals(t *testing.T) {
	path := behaviour(t)
	for _, what := range []string{"held-restart", "held-interrupt"} {
		t.Run(what, func(t *testing.T) {
			ws, out := grounds(t)
			h := &human{ask: both(out), answer: later(400*time.Millisecond, yes)}
			r := start(t, []string{"/bin/sh", "-c", path + " " + what + "; exit $?"}, in(ws), gate(h, event.KindExec, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
			if status := r.wait(); status != 0 {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			if n := len(h.requests()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
			if text, err := os.ReadFile(out + "/held"); err != nil || string(text) != "done" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// switched is a human who answers when the channel says so.
func switched(ask func(event.Attempt) bool) (h *human, answer chan bool) {
	answer = make(chan bool, 512)
	h = &human{ask: ask, answer: func(a event.Attempt) event.Ruling {
		if <-answer {
			return yes(a)
		}
		return no(a)
	}}
	return h, answer
}

func TestStoppedWhileHeld(t *testing.T) {
	for _, what := range []string{"echo x > ../out/new", "exec /bin/true"} {
		t.Run(what, func(t *testing.T) {
			ws, out := grounds(t)
			h, answer := switched(both(out))
			r := start(t, []string{"/bin/sh", "-c", "(" + what + "); echo rc $?"}, in(ws), gate(h, event.KindExec, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
			pid := h.waitFor(t, 1)[0].Process.PID
			for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT, unix.SIGTSTP, unix.SIGSTOP} {
				if err := unix.Kill(pid, s); err != nil {
					t.Fatal(err)
				}
			}
			answer <- true
			for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				if err == nil && strings.Contains(string(status), "T (stopped)") {
					break
				}
				if err != nil || time.Since(begun) > 20*time.Second {
					t.Fatalf("it is not stopped: %v %s", err, status)
				}
			}
			if err := unix.Kill(pid, unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if status := r.wait(); status != 0 || !strings.Contains(r.out.String(), "rc 0") {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			if n := len(h.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestKilledWhileHeld(t *testing.T) {
	for _, what := range []string{"echo x > ../out/new", "exec /bin/true"} {
		t.Run(what, func(t *testing.T) {
			ws, out := grounds(t)
			h := &human{ask: both(out)}
			r := start(t, []string{"/bin/sh", "-c", "(" + what + "); echo rc $?"}, in(ws), gate(h, event.KindExec, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
			if err := unix.Kill(h.waitFor(t, 1)[0].Process.PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if status := r.wait(); status != 0 || !strings.Contains(r.out.String(), "rc 137") {
				t.Errorf("status %d: %s", status, r.out.String())
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.gaveUp != 1 {
				t.Error("whoever is asked was not told that nobody waits any more")
			}
			gone := 0
			for _, e := range r.sink.events {
				if e.Verdict == event.Unknown && strings.Contains(e.Detail["unknown"], diedFirst) {
					gone++
				}
			}
			if gone != 1 {
				t.Errorf("%d events of it: %s", gone, r.dump())
			}
		})
	}
}

func TestManyWaitAtOnce(t *testing.T) {
	for _, tt := range []struct {
		n, yes int
		out    string
	}{
		{8, 8, "8 0 true"}, {8, 3, "3 5 true"}, {maxHeld + 44, maxHeld, fmt.Sprint(maxHeld, " 44 true")},
	} {
		t.Run(fmt.Sprint(tt.n), func(t *testing.T) {
			ws, out := grounds(t)
			h, answer := switched(below(out))
			r := start(t, []string{"/proc/self/exe"}, in(ws), environment(fmt.Sprintf("%s=waiters %d %s", roleVar, tt.n, out)),
				gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
			h.waitFor(t, min(tt.n, maxHeld))
			time.Sleep(40 * time.Millisecond) // others go on meanwhile
			for i := range min(tt.n, maxHeld) {
				answer <- i < tt.yes
			}
			if status := r.wait(); status != 0 || strings.TrimSpace(r.out.String()) != tt.out {
				t.Errorf("status %d: %s, want %s", status, r.out.String(), tt.out)
			}
			if n := len(h.requests()); n != min(tt.n, maxHeld) {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestSignalsWhileCallsAreAnswered has each thread of this process get signals all the
// time, as the runtime sends them (SIGURG). One of them in the wait for the lock of
// the listener left a call without an answer; one in the wait of
// SECCOMP_IOCTL_NOTIF_ADDFD had the caller return with descriptor 0, and the run fail.
func TestSignalsWhileCallsAreAnswered(t *testing.T) {
	ws, out := grounds(t)
	h, answer := switched(below(out))
	r := start(t, []string{"/proc/self/exe"}, in(ws), environment(fmt.Sprintf("%s=waiters %d %s", roleVar, maxHeld, out)),
		gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
	h.waitFor(t, maxHeld)
	ended := make(chan struct{})
	var sending sync.WaitGroup
	defer sending.Wait()
	defer close(ended)
	sending.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			tasks, _ := os.ReadDir("/proc/self/task")
			for _, task := range tasks {
				if tid, err := strconv.Atoi(task.Name()); err == nil {
					_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
				}
			}
		}
	})
	for range maxHeld {
		answer <- true
	}
	if status, want := r.wait(), fmt.Sprint(maxHeld, " 0 true"); status != 0 || strings.TrimSpace(r.out.String()) != want {
		t.Errorf("status %d: %s, want %s", status, r.out.String(), want)
	}
}

// TestTheEndWhileHeld closes the supervisor while calls wait, with a human who ignores
// even the notice that no answer is needed any more.
func TestTheEndWhileHeld(t *testing.T) {
	ws, out := grounds(t)
	var never sync.WaitGroup
	never.Add(1)
	defer never.Done()
	asked := make(chan struct{}, 8)
	deaf := judge(func(a event.Attempt) event.Ruling {
		if !both(out)(a) {
			return event.Ruling{Verdict: event.Allowed}
		}
		asked <- struct{}{}
		return event.Ruling{Wait: func(context.Context) event.Ruling { never.Wait(); return event.Ruling{} }}
	})
	r := start(t, []string{"/bin/sh", "-c", "/bin/true & echo x > ../out/new; echo rc $?; wait $!; echo rc $?"}, in(ws),
		gateOf(deaf, nil, event.KindExec, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
	<-asked
	<-asked
	began := time.Now()
	err := r.sup.Close()
	if took := time.Since(began); err != nil || took > 9*time.Second { // closeWait is 10
		t.Errorf("it took %v: %v", took, err)
	}
	r.cmd.Wait()
	if got := r.out.String(); strings.Count(got, "Permission denied") != 2 || !strings.Contains(got, "rc 126") {
		t.Errorf("%q", got)
	}
	if n := r.denied(); n != 2 {
		t.Errorf("%d denied: %s", n, r.dump())
	}
}

type judge func(event.Attempt) event.Ruling

func (j judge) Judge(a event.Attempt) event.Ruling { return j(a) }

// TestWhatWaitedMustBeTheSame changes what is executed while a human thinks.
func TestWhatWaitedMustBeTheSame(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"nothing":         func(dir string) error { return nil },
		"its content":     func(dir string) error { return programs.Write(dir+"/prog", []byte("#!/bin/sh\necho worse\n"), 0o755) },
		"its interpreter": func(dir string) error { return programs.Write(dir+"/prog", []byte("#!/bin/bash\necho ran\n"), 0o755) },
		"the file": func(dir string) error {
			if err := programs.Write(dir+"/new", []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
				return err
			}
			return os.Rename(dir+"/new", dir+"/prog")
		},
		"it is gone": func(dir string) error { return os.Remove(dir + "/prog") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := makeTree(t)
			if err := programs.Write(dir+"/prog", []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			h := &human{ask: func(a event.Attempt) bool { return a.Script == dir+"/prog" }, answer: func(a event.Attempt) event.Ruling {
				if err := change(dir); err != nil {
					t.Error(err)
				}
				return yes(a)
			}}
			r := start(t, []string{"/bin/sh", "-c", "(./prog one); echo rc $?"}, in(dir), gate(h, event.KindExec))
			r.wait()
			e := r.about(event.ProcExec, "./prog")
			if name == "nothing" {
				if r.out.String() != "ran\nrc 0\n" || e.Verdict != event.Allowed {
					t.Errorf("%q, %+v", r.out.String(), e)
				}
				return
			}
			if strings.Contains(r.out.String(), "ran") || strings.Contains(r.out.String(), "worse") || name != "it is gone" &&
				(e.Verdict != event.Denied || e.Layer != event.LayerConsent || !strings.Contains(e.Detail["reason"], "changed while it waited")) {
				t.Errorf("%q, %+v", r.out.String(), e)
			}
		})
	}
}

// TestASignalThatIsHandledEndsTheWait presses Ctrl-C while a call waits for a human who
// is not there.
func TestASignalThatIsHandledEndsTheWait(t *testing.T) {
	path := behaviour(t)
	ws, out := grounds(t)
	h := &human{ask: below(out)}
	r := start(t, []string{"/bin/sh", "-c", path + " ended; exit $?"}, in(ws), gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
	if err := unix.Kill(h.waitFor(t, 1)[0].Process.PID, unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := r.wait(); status != 0 {
		t.Errorf("status %d: %s", status, r.out.String())
	}
	if e := r.about(event.FileWrite, "../out/ended"); e.Error != "EINTR" || e.Verdict != event.Denied {
		t.Errorf("%+v", e)
	}
}

// TestASearchAlongPathAsksOnce has the same program in three directories.
func TestASearchAlongPathAsksOnce(t *testing.T) {
	dir := makeTree(t)
	for _, d := range []string{"a", "b", "c"} {
		if err := os.Symlink("/bin", dir+"/"+d); err != nil {
			t.Fatal(err)
		}
	}
	h := &human{ask: (&human{}).about("echo"), answer: no}
	script := "PATH=" + dir + "/a:" + dir + "/b:" + dir + "/c; export PATH; /usr/bin/env echo pushed; echo rc $?"
	r := start(t, []string{"/bin/sh", "-c", script}, in(dir), gate(h, event.KindExec))
	r.wait()
	if n := len(h.requests()); n != 1 || !strings.Contains(r.out.String(), "rc 126") {
		t.Errorf("%d requests, want 1: %s", n, r.out.String())
	}
}

// TestAllDieWhileHeld kills a process with many threads that wait.
func TestAllDieWhileHeld(t *testing.T) {
	ws, out := grounds(t)
	h := &human{ask: below(out)}
	r := start(t, []string{"/proc/self/exe"}, in(ws), environment(fmt.Sprintf("%s=waiters 40 %s", roleVar, out)),
		gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
	pid := h.waitFor(t, 40)[0].Process.PID
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := r.wait(); status != 137 {
		t.Errorf("status %d: %s", status, r.out.String())
	}
	if len(r.sup.held.calls) != 0 {
		t.Errorf("%d still held", len(r.sup.held.calls))
	}
	if names, err := os.ReadDir(out); err != nil || len(names) > 11 {
		t.Errorf("something was made: %v, %v", names, err)
	}
}
