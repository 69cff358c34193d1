//go:build linux

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestMain lets the test binary be a supervisor that is killed, and the command
// that settles what that one left.
func TestMain(m *testing.M) {
	switch {
	case os.Args[0] == "supervisor":
		os.Exit(superviseIt(os.Args[1], os.Args[2:]))
	case len(os.Args) == 2 && os.Args[1] == "hostile":
		os.Exit(hostile())
	case len(os.Args) == 3 && os.Args[1] == SettleCommand:
		if err := Settle(context.Background(), os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bench is a task in a directory of its own.
func bench(dir string, argv ...string) (*Task, *bytes.Buffer, error) {
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	return &Task{
		Backend: &native.Backend{}, Argv: argv, State: filepath.Join(dir, "state"), Executable: exe,
		Streams: Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard},
		Plan: policy.Plan{
			Workspace: work, Dir: work,
			Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Name: "tester", Home: filepath.Join(dir, "home")},
			Env:      []policy.Env{{Name: "PATH", Value: "/usr/bin:/bin"}, {Name: "BENCH", Value: dir}},
			Limits:   policy.Limits{Processes: 512, Files: 512},
		},
	}, &out, nil
}

func newBench(t *testing.T, argv ...string) (*Task, *bytes.Buffer) {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testenv.NoLeaks(t, dir)
	task, out, err := bench(dir, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return task, out
}

// sessionsLeft lists what is in the state directory.
func (t *Task) sessionsLeft() []string {
	left, _ := filepath.Glob(filepath.Join(t.State, "sessions", "*"))
	return left
}

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string
		limit  time.Duration
		status int
		output string
		reason string
	}{
		{"a status passes through", "exit 3", 0, 3, "", ""},
		{"output arrives, whole", "echo out; echo err >&2; head -c 300000 /dev/zero | tr '\\0' x; echo end", 0, 0, "end\n", ""},
		{"a signal is 128 and its number", "kill -TERM $$", 0, 143, "", ""},
		{"a time limit ends everything", "setsid sleep 100 & echo begun; sleep 100", 2 * time.Second, 137, "begun\n", "time limit of 2s"},
		{"output of a daemon does not hold the end up", "(setsid sleep 100 &) ; echo out", 0, 0, "out\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			task, out := newBench(t, "sh", "-c", tt.script)
			testenv.NoGoroutines(t)
			task.Plan.Limits.Time = tt.limit
			r, err := task.Run(t.Context())
			if err != nil || r.Exit.Status() != tt.status || r.Exit.Reason != tt.reason || !strings.HasSuffix(out.String(), tt.output) {
				t.Errorf("got %+v, %v, %.100q", r.Exit, err, out)
			}
			if left := task.sessionsLeft(); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

func TestRunKeepsWhatAHostWouldExecute(t *testing.T) {
	task, _ := newBench(t, "sh", "-c", "echo evil > .envrc; mkdir -p sub/.git/hooks; echo good > file; exit 9")
	r, err := task.Run(t.Context())
	if err != nil || r.Exit.Status() != 9 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err := os.Lstat(task.Plan.Workspace + "/.envrc"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf(".envrc is still there: %v", err)
	}
	if len(r.Settled.Quarantined) == 0 || r.Held == 0 {
		t.Fatalf("nothing was quarantined: %+v", r)
	}
	if b, err := os.ReadFile(string(r.Settled.Quarantined[0].Held)); err != nil || string(b) != "evil\n" {
		t.Errorf("what was quarantined holds %q, %v", b, err)
	}
	if b, err := os.ReadFile(task.Plan.Workspace + "/file"); err != nil || string(b) != "good\n" {
		t.Errorf("what was not holds %q, %v", b, err)
	}
}

// recorded are the events of the one log of a task.
func recorded(t *testing.T, task *Task) []event.Event {
	t.Helper()
	info, err := audit.Find(task.Log, "")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify(t.Context(), info.Path, audit.VerifyOptions{}); err != nil || r.Verdict != audit.Complete {
		t.Errorf("the log is %v: %v, %v", r.Verdict, r.Problems, err)
	}
	var out []event.Event
	err = audit.Scan(t.Context(), info.Path, 1, func(*audit.Record) (bool, error) { return true, nil }, func(r *audit.Record) error {
		e, err := r.Event()
		out = append(out, e)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRecord(t *testing.T) {
	task, _ := newBench(t, "touch", "ran")
	task.Log = filepath.Join(t.TempDir(), "log")
	task.Plan.Record.Level = policy.RecordStandard
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range recorded(t, task) {
		actions = append(actions, e.Action)
	}
	for _, want := range []string{event.RecordBegin, event.SessionAttest, event.SessionStart, event.ProcExec, event.FileWrite, event.ProcExit, event.SessionEnd} {
		if !slices.Contains(actions, want) {
			t.Errorf("no %s in %q", want, actions)
		}
	}
	t.Run("a record that fails starts nothing", func(t *testing.T) {
		task, _ := newBench(t, "touch", "ran")
		task.Log = filepath.Join(t.TempDir(), "file", "log")
		if err := os.WriteFile(filepath.Dir(task.Log), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := task.Run(t.Context()); err == nil {
			t.Error("no error")
		}
		if _, err := os.Lstat(task.Plan.Workspace + "/ran"); err == nil {
			t.Error("the command ran")
		}
	})
}

// TestRootReadsOutsideAreRecorded: the kernel says that there is no such file, and
// the record that it was denied.
func TestRootReadsOutsideAreRecorded(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	task, _ := newBench(t, "sh", "-c", `cat "$1/.ssh/id_rsa" /home/somebody/secret "$1/.nothing"; mkdir -p "$1/.ssh"; echo mine > "$1/.ssh/new"`, "sh")
	home, err := os.MkdirTemp("/opt", "holdfast-test-") // not below /tmp, which is another file system inside
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	task.Plan.Identity.Home = home
	task.Argv = append(task.Argv, home)
	task.Log = filepath.Join(t.TempDir(), "log")
	task.Plan.Record.Level = policy.RecordStandard
	key := filepath.Join(home, ".ssh", "id_rsa")
	if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("KEY"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var denied []string
	for _, e := range recorded(t, task) {
		if e.Verdict == event.Denied && e.Action == event.FileLookup {
			denied = append(denied, e.Object)
		}
	}
	if want := []string{key, "/home/somebody/secret"}; !slices.Equal(denied, want) {
		t.Errorf("recorded as denied %q, want %q", denied, want)
	}
}

func TestPublish(t *testing.T) {
	testenv.Need(t, testenv.Bash, nil)
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	t.Run("a port that is taken starts nothing", func(t *testing.T) {
		task, _ := newBench(t, "touch", "ran")
		task.Plan.Publish = []policy.Port{{Host: port, Inside: 80}}
		if _, err := task.Run(t.Context()); err == nil {
			t.Error("no error")
		}
		if _, err := os.Lstat(task.Plan.Workspace + "/ran"); err == nil {
			t.Error("the command ran")
		}
		if left := task.sessionsLeft(); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	})
	taken.Close()
	t.Run("nobody serving ends the connection", func(t *testing.T) {
		task, _ := newBench(t, "sh", "-c", "until test -e connected; do sleep 0.02; done")
		testenv.NoGoroutines(t)
		task.Plan.Publish = []policy.Port{{Host: port, Inside: 4711}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := task.Run(ctx)
			done <- err
		}()
		var c net.Conn
		for c == nil && ctx.Err() == nil {
			if c, err = net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
				time.Sleep(time.Millisecond)
			}
		}
		if c == nil {
			t.Fatalf("nothing listens on the port: %v; the run: %v", err, <-done)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if b, err := io.ReadAll(c); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %q, %v", b, err)
		}
		if err := os.WriteFile(task.Plan.Workspace+"/connected", nil, 0o644); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// superviseIt is a run that a test kills.
func superviseIt(dir string, argv []string) int {
	t, _, err := bench(dir, argv...)
	if err != nil {
		return 2
	}
	t.Streams.Out = os.Stdout
	if view := os.Getenv("REVIEW"); view != "" {
		t.Plan.Review, t.Plan.View = true, policy.View(view)
	}
	if _, err := t.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKilledSupervisor kills the supervisor of a run that made protected names.
// What settles the session is the command that the boundary itself starts; when
// that is killed too, it is the next run.
func TestKilledSupervisor(t *testing.T) {
	const script = "mkdir -p .vscode .git/hooks; echo evil > .envrc; echo evil > .vscode/tasks.json; echo good > file; echo made; sleep 1000"
	for _, tt := range []struct {
		name    string
		janitor bool // is killed first
	}{
		{"the boundary settles it", false},
		{"the next run settles it", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			task, _ := newBench(t, "true")
			work := task.Plan.Workspace
			cmd := exec.Command("/proc/self/exe", filepath.Dir(work), "sh", "-c", script)
			cmd.Args[0] = "supervisor"
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			io.ReadFull(out, make([]byte, len("made\n")))
			if tt.janitor {
				killChildren(t, cmd.Process.Pid)
				// No process is left that could remove the control groups.
				defer removeGroups(cmd.Process.Pid)
			}
			cmd.Process.Kill()
			cmd.Wait()
			if tt.janitor {
				if _, err := task.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			held := heldWithin(task, 2*time.Second)
			if len(held) == 0 {
				t.Fatal("nothing was quarantined")
			}
			for _, name := range []string{".envrc", ".vscode/tasks.json"} {
				if _, err := os.Lstat(filepath.Join(work, name)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is still there: %v; held are %q", name, err, held)
				}
			}
			if b, err := os.ReadFile(work + "/file"); err != nil || string(b) != "good\n" {
				t.Errorf("file holds %q, %v", b, err)
			}
		})
	}
}

func removeGroups(supervisor int) {
	filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), fmt.Sprintf("holdfast-%d-", supervisor)) {
			os.Remove(path)
			return filepath.SkipDir
		}
		return nil
	})
}

func killChildren(t *testing.T, pid int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		raw, _ := os.ReadFile(list)
		for f := range strings.FieldsSeq(string(raw)) {
			var child int
			if _, err := fmt.Sscan(f, &child); err != nil {
				t.Fatal(err)
			}
			if p, err := os.FindProcess(child); err == nil {
				p.Kill()
			}
		}
	}
}

// heldWithin waits for what is quarantined, and for the end of the run that does it.
func heldWithin(task *Task, limit time.Duration) []string {
	deadline := time.Now().Add(limit)
	for {
		held, _ := filepath.Glob(filepath.Join(task.State, "reviews", "*", "upper", "*"))
		locks, _ := filepath.Glob(filepath.Join(task.State, "sessions", "*", "lock"))
		if len(held) > 0 && len(locks) == 0 || time.Now().After(deadline) {
			return held
		}
		time.Sleep(5 * time.Millisecond)
	}
}
