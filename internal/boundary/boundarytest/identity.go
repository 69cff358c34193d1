//go:build linux

package boundarytest

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

func testIdentity(t *testing.T, s Subject) {
	r := enter(t, s)
	file := r.file("work/file", "mine\n")
	lines := []string{"id", "owner\t" + file, "create\t" + r.work + "/made", "owner\t" + r.work + "/made", "read\t/proc/self/status", "unshare", "vsock"}
	for _, ns := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		lines = append(lines, "readlink\t/proc/self/ns/"+ns)
	}
	got := r.answers(lines...)
	if got[0] == "0:0" {
		t.Error("the command is root")
	}
	if os.Getuid() != 0 && got[0] != fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) {
		t.Errorf("the command is %s: a remapped id makes git rehash every file", got[0])
	}
	if got[1] != got[0] || got[3] != got[0] {
		t.Errorf("the command is %s and owns neither its file (%s) nor what it made (%s)", got[0], got[1], got[3])
	}
	if want, made := r.hostOwner(r.work), r.hostOwner(r.work+"/made"); made != want {
		t.Errorf("on the host %s owns what was made, not the workspace's owner %s", made, want)
	}
	for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(got[4], want) {
			t.Errorf("status inside lacks %q", want)
		}
	}
	for i, call := range []string{"a user namespace", "a socket to the hypervisor"} {
		if !slices.Contains([]string{"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "ENOSPC"}, got[5+i]) {
			t.Errorf("%s: %s", call, got[5+i])
		}
	}
	for i, inside := range got[7:] {
		name := strings.TrimPrefix(lines[7+i], "readlink\t")
		if own, err := os.Readlink(name); err != nil || own == inside {
			t.Errorf("%s is the host's: %s, %v", name, own, err)
		}
	}
}

func testDescriptors(t *testing.T, s Subject) {
	r := enter(t, s)
	// What a careless caller leaves open: these do not close on exec.
	secret, err := unix.Open(r.home+"/secret", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(secret)
	high, err := unix.FcntlInt(uintptr(secret), unix.F_DUPFD, 300)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)
	directory, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(directory)
	if got := r.answer("fds"); got != "0 1 2" {
		t.Errorf("inside the descriptors %s are open", got)
	}
	r.plan.Publish = []policy.Port{{Host: 4713, Inside: 4713}}
	spec := r.script("fds")
	spec.In, spec.Out, spec.Err = boundary.Terminal, boundary.Terminal, boundary.Terminal
	if o := r.run(spec); !strings.Contains(o.stdout, `"0 1 2"`) {
		t.Errorf("with a terminal and a port: %+v", o)
	}
}

func testEnvironment(t *testing.T, s Subject) {
	r := enter(t, s)
	t.Setenv("HOLDFAST_TEST_SECRET", "secret")
	r.plan.Env = append(r.plan.Env, policy.Env{Name: "EMPTY"}, policy.Env{Name: "LINES", Value: "a\nb=c"})
	var want []string
	for _, e := range r.plan.Env {
		want = append(want, e.Name+"="+e.Value)
	}
	if got := r.answer("env"); got != strings.Join(want, "\n") {
		t.Errorf("inside:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	r.plan.Env = r.plan.Env[:1]
	if got := r.answer("env"); got != "HOME="+r.home {
		t.Errorf("without a PATH: %q", got)
	}
}

func testLimits(t *testing.T, s Subject) {
	r := enter(t, s)
	r.plan.Limits.Files, r.plan.Limits.FileSize, r.plan.Limits.Processes = 100, 1<<20, 64
	got := r.answers(fmt.Sprintf("limit\t%d", unix.RLIMIT_NOFILE), fmt.Sprintf("limit\t%d", unix.RLIMIT_FSIZE), fmt.Sprintf("limit\t%d", unix.RLIMIT_CORE))
	if want := []string{"100 100", "1048576 1048576", "1 1"}; !slices.Equal(got, want) {
		t.Errorf("limits inside %q, want %q", got, want)
	}
	if o := r.run(r.spec("sh", "-c", `i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done 2>/dev/null; echo all`)); strings.Contains(o.stdout, "all") && o.Status() == 0 {
		t.Errorf("200 processes started where 64 may: %+v", o.Exit)
	}
	r.plan.Limits.Disk = 1 << 20
	if o := r.run(r.spec("sh", "-c", `head -c 3000000 /dev/zero >/tmp/big 2>/dev/null && echo all`)); strings.Contains(o.stdout, "all") {
		t.Error("3 MB were written where 1 MiB may be")
	}
}

// onTerminal is a command whose streams are all one terminal.
func onTerminal(r *room, argv ...string) boundary.Spec {
	spec := r.spec(argv...)
	spec.In, spec.Out, spec.Err = boundary.Terminal, boundary.Terminal, boundary.Terminal
	spec.Size = boundary.WindowSize{Rows: 31, Cols: 97}
	return spec
}

func testTerminal(t *testing.T, s Subject) {
	t.Run("is a terminal of its own", func(t *testing.T) {
		r := enter(t, s)
		o := r.run(onTerminal(r, r.program, marker, "terminal\t0", "terminal\t1", "terminal\t2", "list\t/dev/pts"))
		if n := strings.Count(o.stdout, `"31x97 foreground true"`); n != 3 || !strings.Contains(o.stdout, `"0 ptmx"`) {
			t.Errorf("inside: %+v", o)
		}
	})
	t.Run("may be one stream of three", func(t *testing.T) {
		r := enter(t, s)
		spec := r.script("terminal\t0", "terminal\t2")
		spec.Err = boundary.Terminal
		p := r.mustStart(spec)
		o := p.wait()
		io.Copy(io.Discard, p.Terminal())
		p.Terminal().Close()
		if !strings.Contains(o.stdout, "terminal\tENOTTY\n") || !strings.Contains(o.stdout, "foreground true") {
			t.Errorf("inside: %+v", o)
		}
	})
}

func testKeys(t *testing.T, s Subject) {
	t.Run("the interrupt key interrupts", func(t *testing.T) {
		r := enter(t, s)
		p := r.mustStart(onTerminal(r, "sh", "-c", "echo paused; exec sleep 100"))
		p.expect("paused")
		p.Terminal().Write([]byte{3})
		if o := p.ended(); o.Signal != unix.SIGINT && o.Status() != 130 {
			t.Errorf("ended with %+v", o)
		}
	})
	t.Run("the suspend key stops and a signal continues", func(t *testing.T) {
		r := enter(t, s)
		p := r.mustStart(onTerminal(r, "sh", "-c", "echo paused; read line; exit 6"))
		p.expect("paused")
		p.Terminal().Write([]byte{26})
		if state := <-p.Changes(); state != boundary.Stopped {
			t.Errorf("state %v", state)
		}
		p.Signal(unix.SIGCONT)
		p.Terminal().Write([]byte("go\n"))
		if o := p.ended(); o.Status() != 6 {
			t.Errorf("ended with %+v", o)
		}
	})
	t.Run("closing our side ends the input", func(t *testing.T) {
		r := enter(t, s)
		p, err := s.Backend.Start(t.Context(), onTerminal(r, "sh", "-c", "read line; exit 7"))
		if err != nil {
			t.Fatal(err)
		}
		p.Terminal().Close()
		timer := time.AfterFunc(limitOfRun, func() { p.Kill("") })
		defer timer.Stop()
		if exit, err := p.Wait(); err != nil || exit.Status() != 7 {
			t.Errorf("ended with %+v, %v", exit, err)
		}
	})
}
