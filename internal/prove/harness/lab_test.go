//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

// actor is the variable that makes the test binary a misbehaving worker.
const actor = "HARNESS_WORKER_ACTS"

// TestMain turns the test binary into a worker if a pool executes it as one.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != WorkerCommand {
		os.Exit(m.Run())
	}
	if how := os.Getenv(actor); how != "" {
		act(how)
		os.Exit(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Worker(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pool returns a pool of n workers, which are this test binary.
func pool(t *testing.T, n int, program ...string) *Pool {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	if program == nil {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		program = []string{exe, WorkerCommand}
	}
	play := runner(t)
	dir, err := os.MkdirTemp(play.Dir, ".pool-")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(program, dir, play.Prober, n)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Remove(dir); err != nil {
			t.Errorf("something was left: %v", err)
		}
	})
	return p
}

// together plays as many rows at a time as the pool has workers.
func together(ctx context.Context, p *Pool, target probe.Target, rows []probe.Row) []probe.Result {
	out := make([]probe.Result, len(rows))
	var group sync.WaitGroup
	for i, r := range rows {
		group.Go(func() { out[i] = p.Play(ctx, target, r) })
	}
	group.Wait()
	return out
}

// TestPool plays rows in two workers, without a sandbox and in one.
func TestPool(t *testing.T) {
	p := pool(t, 2)
	rows, err := Select(probe.All(), []string{"NET-006b", "MET-001", "NET-022b", "DNS-001"})
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range together(t.Context(), p, probe.None{}, rows) {
		if want := map[bool]probe.Verdict{true: probe.Held, false: probe.Escaped}[rows[i].Kind == probe.Control]; res.Verdict != want || res.Row.ID != rows[i].ID {
			t.Errorf("%s is %v without a sandbox: %s", res.Row.ID, res.Verdict, res.Reason)
		}
	}
	for _, res := range together(t.Context(), p, targets.Holdfast{Path: testenv.Binary(t)}, rows) {
		if res.Verdict != probe.Held {
			t.Errorf("%s is %v: %s", res.Row.ID, res.Verdict, res.Reason)
		}
	}
}

// TestPoolOfBadWorkers has workers that die, hang and send nonsense: no row is
// held then, and the next one is played normally.
func TestPoolOfBadWorkers(t *testing.T) {
	rows, err := Select(probe.All(), []string{"NET-022b", "MET-001"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ acts, want string }{
		{"die", "the worker has ended: exit status 3: it is the end"},
		{"panic", "this is a panic"},
		{"hang", "the worker sent nothing for"},
		{"lie", `the worker answered for row "RUN-000"`},
		{"babble", "reading the worker's answer"},
		{"flood", "the worker's answer is too long"},
	} {
		t.Run(tt.acts, func(t *testing.T) {
			t.Setenv(actor, tt.acts)
			p := pool(t, 1)
			if tt.acts == "hang" { // the others end on their own
				p.Limit = 5 * time.Second
			}
			res := p.Play(t.Context(), probe.None{}, rows[0])
			if res.Verdict != probe.Inconclusive || res.Missing || !strings.Contains(res.Reason, tt.want) {
				t.Errorf("%v, missing %v: %s", res.Verdict, res.Missing, res.Reason)
			}
			t.Setenv(actor, "")
			p.Limit = 0 // a correct one may take its time
			if res := p.Play(t.Context(), probe.None{}, rows[1]); res.Verdict != probe.Escaped {
				t.Errorf("the next one is %v: %s", res.Verdict, res.Reason)
			}
		})
	}
}

// act is a worker that misbehaves as the value of [actor] says.
func act(how string) {
	var line string
	fmt.Println(`{"ready":true}`)
	_, _ = fmt.Scanln(&line)
	switch how {
	case "die":
		fmt.Fprintln(os.Stderr, "it is the end")
		os.Exit(3)
	case "panic":
		panic("this is a panic")
	case "hang":
		time.Sleep(time.Hour)
	case "lie":
		fmt.Println(`{"row":"RUN-000","result":{"Verdict":1}}`)
		time.Sleep(time.Hour)
	case "babble":
		fmt.Println("held! held! held!")
		time.Sleep(time.Hour)
	case "flood":
		fmt.Print(`{"row":"`)
		for _, err := fmt.Print(strings.Repeat("x", 1<<20)); err == nil; _, err = fmt.Print(strings.Repeat("x", 1<<20)) {
			continue
		}
	}
}

// TestPoolWithoutNetworks reports the failure for every row, and does not try
// again and again.
func TestPoolWithoutNetworks(t *testing.T) {
	for _, tt := range []struct{ program, want string }{
		{"/nonexistent/program", "fork/exec /nonexistent/program"},
		{"/bin/true", "the worker has ended"},
		{"/bin/cat", "sent nothing"}, // it waits for its input
	} {
		t.Run(tt.program, func(t *testing.T) {
			if tt.program == "/bin/cat" {
				old := startLimit
				startLimit = 300 * time.Millisecond
				defer func() { startLimit = old }()
			}
			p := pool(t, 2, tt.program)
			for range 3 {
				res := p.Play(t.Context(), probe.None{}, probe.All()[0])
				if res.Verdict != probe.Inconclusive || !res.Missing || !strings.Contains(res.Reason, tt.want) {
					t.Errorf("%v, missing %v: %s", res.Verdict, res.Missing, res.Reason)
				}
			}
		})
	}
}

// TestPoolIsBrokenOff cancels the context while rows are played and others wait.
func TestPoolIsBrokenOff(t *testing.T) {
	p := pool(t, 1)
	rows, err := Select(probe.All(), []string{"PXY-007", "PXY-008", "PXY-010"})
	if err != nil {
		t.Fatal(err)
	}
	if res := p.Play(t.Context(), probe.None{}, rows[0]); res.Verdict != probe.Escaped {
		t.Fatalf("%v: %s", res.Verdict, res.Reason)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	for _, res := range together(ctx, p, targets.Holdfast{Path: testenv.Binary(t)}, rows) {
		if res.Verdict != probe.Inconclusive || res.Missing || !strings.Contains(res.Reason, "deadline exceeded") {
			t.Errorf("%s is %v, missing %v: %s", res.Row.ID, res.Verdict, res.Missing, res.Reason)
		}
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestOutcomeIsAWholeResult checks that the line of a worker has everything that
// a result has.
func TestOutcomeIsAWholeResult(t *testing.T) {
	full := reflect.New(reflect.TypeFor[probe.Result]()).Elem()
	for i := range full.NumField() {
		switch f := full.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
	r := full.Interface().(probe.Result)
	if got := outcomeOf(r).result(r.Row); !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, not %+v", got, r)
	}
}

// TestTargetsAreHandedOver encodes targets and decodes them again.
func TestTargetsAreHandedOver(t *testing.T) {
	for _, want := range []probe.Target{probe.None{}, targets.Peer{Kind: "bwrap", Path: "/x"}, targets.Template{Words: []string{"a"}}, targets.Holdfast{Path: "/x", Extra: []string{"a"}, Log: "/y"}} {
		named, err := nameTarget(want)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := named.target(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, %v, not %#v", got, err, want)
		}
	}
	if _, err := (namedTarget{Kind: "os.File"}).target(); err == nil {
		t.Error("something else was made into a target")
	}
}

// poolRole is the variable that makes the test binary a process whose pool is
// playing a row.
const poolRole = "HARNESS_POOL_ROLE"

// TestPoolEndsWithItsProcess kills a process whose pool plays a row: the worker
// interrupts the row, and leaves nothing behind.
func TestPoolEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv(poolRole); dir != "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p := NewPool([]string{exe, WorkerCommand}, dir, os.Getenv("PROBE_PROBER"), 1)
		for {
			for _, r := range probe.All() {
				if Needs(r) {
					p.Play(t.Context(), probe.None{}, r)
				}
			}
		}
	}
	testenv.Need(t, testenv.UserNS, nil)
	play := runner(t)
	dir, err := os.MkdirTemp(play.Dir, ".pool-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPoolEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), poolRole+"="+dir, "PROBE_PROBER="+play.Prober)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	worlds := func() []string {
		found, _ := filepath.Glob(dir + "/lab-*/.probe-world-*")
		return found
	}
	for end := time.Now().Add(20 * time.Second); len(worlds()) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		continue
	}
	if len(worlds()) == 0 {
		t.Error("no row was played")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(20 * time.Second); len(worlds()) > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		continue
	}
	if left := worlds(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	// A process that is named by its directory would have it in its command line.
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), dir) {
			t.Errorf("%s is left: %q", path, b)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
