package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// logPart is the name for -only of the part about the log.
const logPart = "log"

// typicalEvent is event n of a typical run: mostly written files, with some executions
// and refused attempts. Their rate is such that a log records all of them one by
// one.
func typicalEvent(n int) event.Event {
	e := event.Event{
		Time: time.Unix(1_800_000_000, 0).Add(time.Duration(n) * 200 * time.Microsecond), Sensor: event.Syscall, N: uint64(n),
		Action: event.FileWrite, Verdict: event.Allowed,
		Object:  "node_modules/package-" + strconv.Itoa(n%500) + "/dist/module" + strconv.Itoa(n%97) + ".js",
		Process: event.Process{PID: 1000 + n%4096, Exec: uint64(1 + n/100)},
		Detail:  map[string]string{"how": "create,truncate", "mode": "0644"},
	}
	switch n % 50 {
	case 7:
		e.Object, e.Verdict, e.Layer, e.Error, e.Detail = "/home/user/.config/tool/settings"+strconv.Itoa(n%9), event.Denied, event.LayerView, "ENOENT", nil
	case 13, 37:
		e.Action, e.Object, e.Detail = event.ProcExec, "/usr/bin/node", nil
		e.Process.Executable, e.Process.Cwd = "/usr/bin/node", "/home/user/work/project"
		e.Process.SHA256 = strings.Repeat("0123456789abcdef", 4)
		e.Process.Argv = []string{"node", "--enable-source-maps", "script" + strconv.Itoa(n%83) + ".js"}
	}
	return e
}

// observeOutput is the output of peerObserve.
type observeOutput struct {
	Records   int
	Wall, CPU time.Duration
}

// peerObserve writes a log of events, as the supervisor does, and prints how long
// it took until everything was on disk: `bench peer observe COUNT STATE SESSION`.
func peerObserve(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("observe needs 3 arguments, not %d", len(args))
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("reading a number: %w", err)
	}
	l, err := audit.Create(filepath.Join(args[1], "log"), audit.Options{Session: args[2], Keys: filepath.Join(args[1], "keys"), Heads: filepath.Join(args[1], "heads"), MaxBytes: 4 << 30})
	if err != nil {
		return err
	}
	began := time.Now()
	for n := range count {
		if err := l.Observe(typicalEvent(n + 1)); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	err = l.Emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.task": "1", "count." + string(event.Syscall): args[0]}})
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return fmt.Errorf("reading the processor time: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(observeOutput{count, time.Since(began), time.Duration(u.Utime.Nano() + u.Stime.Nano())})
}

// logging measures the log: how fast it is written, verified and searched, and
// with how much memory.
func (b *bench) logging() (*section, error) {
	s := b.newSection(logPart, "Log", nil)
	m := logMeasurement{b: b, s: s, records: 1_000_000, found: map[string][]float64{}}
	if b.options.quick {
		m.records = 50_000
	}
	s.intro = []string{fmt.Sprintf("A log of %s records, written by one process with GOMAXPROCS=1 through the package that the supervisor writes through, to a file of the file system that the home is on. Then `holdfast log verify`, `show` and `query` of it, with their start. Medians of 3.", thousands(m.records))}
	steps := []struct {
		name string
		do   func() error
	}{{"writing", m.write}, {"verifying", m.verify}, {"showing", m.show}, {"querying", m.query}, {"a run of as many", m.supervise}}
	for _, step := range steps {
		b.logf("log: %s", step.name)
		if err := step.do(); err != nil {
			s.fail("%s: %v", step.name, err)
		}
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
	}
	m.conclude()
	s.load[1] = load()
	return s, b.forgetRecords()
}

type logMeasurement struct {
	b       *bench
	s       *section
	records int
	self    string
	found   map[string][]float64
	peak    map[string]float64 // KiB
	size    int64
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

const madeUp = "20260101T000000-bench"

// write writes the log three times; the last one is kept.
func (m *logMeasurement) write() error {
	w := workload{dir: "opens", prepare: prepareOpens}
	if err := m.b.fixture(w); err != nil {
		return err
	}
	m.self = filepath.Join(m.b.workspace("opens"), "peer")
	m.peak = map[string]float64{}
	way := contestant{name: bare, env: append([]string{"GOMAXPROCS=1"}, m.b.env...)}
	for range 3 {
		if err := m.b.forgetRecords(); err != nil {
			return err
		}
		out, _, err := m.b.runCopies(way, m.b.home(), []string{m.self, "peer", "observe", strconv.Itoa(m.records), m.b.state(), madeUp}, 1)
		if err != nil {
			return err
		}
		var w observeOutput
		if err := json.Unmarshal([]byte(out), &w); err != nil {
			return fmt.Errorf("reading the speed of writing: %w", err)
		}
		m.found["write"] = append(m.found["write"], float64(w.Records)/w.Wall.Seconds())
		m.found["write cpu"] = append(m.found["write cpu"], float64(w.Records)/w.CPU.Seconds())
	}
	if all := m.b.records(); len(all) == 1 {
		if fi, err := os.Stat(all[0]); err == nil {
			m.size = fi.Size()
		}
	}
	return nil
}

func (m *logMeasurement) verify() error {
	return m.runThrice("verify", func(out string) error {
		if !strings.Contains(out, "COMPLETE") {
			return fmt.Errorf("the log that was written is not complete: %s", lastLines([]byte(out)))
		}
		return nil
	}, "log", "verify", madeUp)
}

func (m *logMeasurement) show() error {
	return m.runThrice("show", func(out string) error {
		if !strings.Contains(out, madeUp) {
			return fmt.Errorf("the session is not shown: %s", lastLines([]byte(out)))
		}
		return nil
	}, "log", "show", madeUp)
}

func (m *logMeasurement) query() error {
	return m.runThrice("query", func(out string) error {
		if n, want := strings.TrimSpace(out), strconv.Itoa(m.records/50); !strings.HasPrefix(n, want) {
			return fmt.Errorf("found %s records, not %s", n, want)
		}
		return nil
	}, "log", "query", "--count", `verdict == "denied" && object.startsWith("/home")`, madeUp)
}

// runThrice runs holdfast three times and keeps the times, in seconds, and the peak.
func (m *logMeasurement) runThrice(name string, check func(string) error, args ...string) error {
	for range 3 {
		out, wall, peak, err := m.b.runMeasured(m.b.home(), m.b.holdfast, args...)
		if err == nil {
			err = check(out)
		}
		if err != nil {
			return err
		}
		m.found[name] = append(m.found[name], wall.Seconds())
		m.peak[name] = max(m.peak[name], peak)
	}
	return nil
}

// supervise makes a million events in one run and measures the supervisor.
func (m *logMeasurement) supervise() error {
	dir := m.b.workspace("opens")
	out, _, peak, err := m.b.runMeasured(dir, m.b.holdfast, "run", "--record", "full", "--", m.self, "peer", "opens", strconv.Itoa(m.records), filepath.Join(dir, "file"), "read")
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLines([]byte(out)))
	}
	m.peak["run"] = peak
	return nil
}

// runMeasured runs a program as the user and returns its output, its time and its
// peak of resident memory in KiB. The peak is read while it runs: wait4 would
// include the time before exec.
func (b *bench) runMeasured(dir, program string, args ...string) (string, time.Duration, float64, error) {
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, b.env, b.user.attr()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return "", 0, 0, fmt.Errorf("starting %s: %w", program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := 0.0
	for {
		if kb, err := procField(cmd.Process.Pid, "status", "VmHWM:"); err == nil {
			peak = max(peak, kb)
		}
		select {
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, lastLines([]byte(out.String())))
			}
			return out.String(), time.Since(began), peak, err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// memoryLimit of the supervisor and of what reads a log, in KiB.
const memoryLimit = 40 * 1024

// conclude judges and shows the results.
func (m *logMeasurement) conclude() {
	n := float64(m.records)
	of := func(name string) float64 { return spreadOf(m.found[name]).median }
	peak := func(name string) float64 {
		if v, ok := m.peak[name]; ok {
			return v
		}
		return spreadOf(nil).median
	}
	million := ""
	if m.records != 1_000_000 {
		million = " (of " + thousands(m.records) + ")"
	}
	m.s.verdicts = []verdict{
		atLeast("log: records written a second, one core", 200_000, of("write"), "%.0f"),
		atLeast("log: records verified a second", 500_000, n/of("verify"), "%.0f"),
		judge("log: show of a million records, s"+million, 0.3, of("show"), "%.2f"),
		judge("log: query over a million records, s"+million, 1, of("query"), "%.2f"),
		judge("log: peak memory of a run of a million events, KiB"+million, memoryLimit, peak("run"), "%.0f"),
		judge("log: peak memory of verify, KiB"+million, memoryLimit, peak("verify"), "%.0f"),
		judge("log: peak memory of query, KiB"+million, memoryLimit, peak("query"), "%.0f"),
	}
	t := table{header: []string{"", "records", "records a second", "of one core's time", "peak KiB"}}
	t.add("write", thousands(m.records), thousands(int(of("write"))), thousands(int(of("write cpu"))), "–")
	t.add("verify", thousands(m.records), thousands(int(n/of("verify"))), "–", number(peak("verify")))
	t.add("show", thousands(m.records), thousands(int(n/of("show"))), "–", number(peak("show")))
	t.add("query", thousands(m.records), thousands(int(n/of("query"))), "–", number(peak("query")))
	t.add("a run with as many opens", thousands(m.records), "–", "–", number(peak("run")))
	m.s.tables = []captioned{{caption: "Log", table: t, text: fmt.Sprintf("The log has %d MB. Of the run's opens the record has one by one what a run may have recorded so, and the rest counted.", m.size/1_000_000)}}
}
