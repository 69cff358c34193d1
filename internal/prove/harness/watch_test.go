//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/report"
)

// stage is a watch over a program that is a script: it prints what it holds.
type stage struct {
	t      *testing.T
	dir    string
	path   string
	o      WatchOptions
	cancel context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	events []WatchEvent
	tests  int
	during func() // called in the middle of a test
}

// script returns a program of these shell lines.
func script(lines ...string) string {
	return "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n"
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), ended: make(chan error, 1)}
	s.path = filepath.Join(s.dir, "bin", "tool")
	s.write(s.path, script("echo A held EPERM", "echo B held EACCES"))
	s.o = WatchOptions{
		Watched: []Watched{{Name: "tool", Path: s.path}}, Retest: s.retest, Tell: s.tell,
		Files: WatchFiles{Baseline: func(name string) string { return filepath.Join(s.dir, "base", name+".json") }, State: filepath.Join(s.dir, "state")},
		Every: time.Hour, Quiet: 300 * time.Millisecond, Gone: 20 * time.Second,
	}
	return s
}

func (s *stage) write(path, content string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), programs.Write(path+".tmp", []byte(content), 0o755), os.Rename(path+".tmp", path)); err != nil {
		s.t.Fatal(err)
	}
}

// retest plays the rows by executing the program that is there.
func (s *stage) retest(ctx context.Context, name string) (report.Run, error) {
	s.mu.Lock()
	s.tests++
	during := s.during
	s.mu.Unlock()
	if during != nil {
		during()
	}
	out, err := exec.CommandContext(ctx, s.path).Output()
	if err != nil {
		return report.Run{}, fmt.Errorf("running it: %w", err)
	}
	run := report.Run{Tool: "test", Target: report.Target{Name: name}}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		run.Rows = append(run.Rows, report.Row{ID: f[0], Class: "fs.x", Verdict: f[1], Denials: []string{"open: " + f[2]}})
	}
	return run, nil
}

func (s *stage) tell(e WatchEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	return nil
}

func (s *stage) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() { s.ended <- Watch(ctx, s.o) }()
	s.t.Cleanup(cancel)
}

// stop ends the watch, which must end without an error.
func (s *stage) stop() {
	s.t.Helper()
	s.cancel()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatal("the watch does not end")
	}
}

func (s *stage) kinds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		out = append(out, e.Kind)
	}
	return out
}

// wants waits until exactly these kinds were reported.
func (s *stage) wants(want ...string) {
	s.t.Helper()
	end := time.Now().Add(time.Minute)
	for time.Now().Before(end) && len(s.kinds()) < len(want) {
		time.Sleep(10 * time.Millisecond)
	}
	if got := s.kinds(); !slices.Equal(got, want) {
		s.t.Fatalf("told %q, want %q", got, want)
	}
}

func (s *stage) last() WatchEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[len(s.events)-1]
}

var (
	weak      = script("echo A ESCAPED none", "echo B held EACCES")
	different = script("echo A held ENOENT", "echo B held EACCES")
	alike     = script("# another build", "echo A held EPERM", "echo B held EACCES")
)

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(s *stage)
		want   []string
	}{
		{"replaced by rename, weaker", func(s *stage) { s.write(s.path, weak) }, []string{WatchChanged, WatchWeaker}},
		{"replaced, and fails differently", func(s *stage) { s.write(s.path, different) }, []string{WatchChanged, WatchDifferent}},
		{"another build of the same", func(s *stage) { s.write(s.path, alike) }, []string{WatchChanged, WatchSame}},
		{"written in place", func(s *stage) { must(s.t, programs.Write(s.path, []byte(weak), 0o755)) }, []string{WatchChanged, WatchWeaker}},
		{"its directory replaced", func(s *stage) {
			s.write(filepath.Join(s.dir, "new", "tool"), weak)
			must(s.t, os.Rename(filepath.Join(s.dir, "bin"), filepath.Join(s.dir, "old")), os.Rename(filepath.Join(s.dir, "new"), filepath.Join(s.dir, "bin")))
		}, []string{WatchChanged, WatchWeaker}},
		{"away for a moment", func(s *stage) {
			must(s.t, os.Rename(s.path, s.path+".old"))
			time.Sleep(2 * s.o.Quiet)
			s.write(s.path, weak)
		}, []string{WatchChanged, WatchWeaker}},
		{"away and back", func(s *stage) {
			must(s.t, os.Rename(s.path, s.path+".old"))
			time.Sleep(2 * s.o.Quiet)
			must(s.t, os.Rename(s.path+".old", s.path))
			time.Sleep(2 * s.o.Quiet)
			s.write(s.path, weak)
		}, []string{WatchChanged, WatchWeaker}},
		{"gone", func(s *stage) { must(s.t, os.Remove(s.path)) }, []string{WatchGone}},
		{"many changes in a row are one", func(s *stage) {
			for i := range 30 {
				s.write(s.path, script(fmt.Sprintf("# %d", i), "echo A ESCAPED x"))
				time.Sleep(5 * time.Millisecond)
			}
			s.write(s.path, weak)
		}, []string{WatchChanged, WatchWeaker}},
		{"written slowly", func(s *stage) {
			f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_TRUNC, 0)
			must(s.t, err)
			for _, b := range []byte(weak) {
				f.Write([]byte{b})
				time.Sleep(4 * time.Millisecond)
			}
			must(s.t, f.Close())
		}, []string{WatchChanged, WatchWeaker}},
		{"broken for good", func(s *stage) { s.write(s.path, script("exit 1")) }, []string{WatchChanged, WatchUntested}},
		{"not executable any more", func(s *stage) { must(s.t, os.Chmod(s.path, 0o644)) }, []string{WatchChanged, WatchUntested}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			if slices.Contains(row.want, WatchGone) {
				s.o.Gone = 2 * s.o.Quiet // other changes make it missing only by accident, for as long as a busy machine takes
			}
			s.start()
			s.wants(WatchFirst)
			row.change(s)
			s.wants(append([]string{WatchFirst}, row.want...)...)
			time.Sleep(4 * s.o.Quiet)
			s.wants(append([]string{WatchFirst}, row.want...)...) // and no more
			s.stop()
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Links on the way are part of the program, also those of a directory.
func TestWatchLinks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(filepath.Join(s.dir, "v1", "bin", "tool"), script("echo A held EPERM"))
	s.write(filepath.Join(s.dir, "v2", "bin", "tool"), script("echo A ESCAPED x"))
	current := filepath.Join(s.dir, "current")
	must(t, os.Symlink("v1", current), os.Symlink(filepath.Join(current, "bin", "tool"), filepath.Join(s.dir, "tool")))
	s.path = filepath.Join(s.dir, "tool")
	s.o.Watched[0].Path = s.path
	s.start()
	s.wants(WatchFirst)
	must(t, os.Symlink("v2", current+".new"), os.Rename(current+".new", current))
	s.wants(WatchFirst, WatchChanged, WatchWeaker)
	s.stop()
}

// An npm package is updated as a whole: the program itself may stay as it is.
func TestWatchPackage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pack := filepath.Join(s.dir, "lib", "node_modules", "@x", "agent")
	s.path = filepath.Join(pack, "bin.sh")
	s.write(s.path, script(`cat "$(dirname "$0")/dist/rows"`))
	s.write(filepath.Join(pack, "dist", "rows"), "A held EPERM\n")
	s.write(filepath.Join(s.dir, "lib", "node_modules", "other", "x"), "x")
	s.o.Watched[0].Path = s.path
	s.start()
	s.wants(WatchFirst)
	s.write(filepath.Join(s.dir, "lib", "node_modules", "other", "x"), "y")
	time.Sleep(5 * s.o.Quiet)
	s.wants(WatchFirst)
	s.write(filepath.Join(pack, "dist", "rows"), "A ESCAPED x\n")
	s.wants(WatchFirst, WatchChanged, WatchWeaker)
	s.stop()
}

// Without kernel events the timer finds the change, as it does after an overflow.
func TestWatchTimer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.wants(WatchFirst)
	s.stop()

	w := &watch{o: s.o}
	w.o.Every = 50 * time.Millisecond
	must(t, w.begin(context.Background()))
	w.notices.close()
	w.notices = nil
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { s.ended <- w.loop(ctx) }()
	s.wants(WatchFirst, WatchBegun)
	s.write(s.path, weak)
	s.wants(WatchFirst, WatchBegun, WatchChanged, WatchWeaker)
	cancel()
	<-s.ended
}

func TestWatchOverflow(t *testing.T) {
	n, err := newNotices()
	must(t, err)
	defer n.close()
	n.watchPath(0, t.TempDir(), nil)
	n.watchPath(1, t.TempDir(), []string{"x"})
	overflow := make([]byte, 16)
	overflow[0], overflow[1], overflow[2], overflow[3] = 0xff, 0xff, 0xff, 0xff // no watch
	overflow[5] = 0x40                                                          // IN_Q_OVERFLOW
	if !n.readEvents(overflow) {
		t.Error("an overflow does not matter")
	}
	if got := n.takeDirty(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("after an overflow: %v", got)
	}
	for _, p := range [][]byte{nil, {1, 2, 3}, make([]byte, 16), {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0}} {
		n.readEvents(p)
	}
}

// What changed while no watch ran is tested when one begins; a watch with Once is
// enough.
func TestWatchOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.o.Once = true
	must(t, Watch(context.Background(), s.o))
	s.wants(WatchFirst)
	must(t, Watch(context.Background(), s.o))
	s.wants(WatchFirst, WatchBegun)
	s.write(s.path, weak)
	must(t, Watch(context.Background(), s.o))
	s.wants(WatchFirst, WatchBegun, WatchChanged, WatchWeaker)
	if e := s.last(); len(e.Changes.Weakened) != 1 || e.Changes.Weakened[0].ID != "A" || e.Was == e.Is || e.Was == "" {
		t.Errorf("%+v", e)
	}
	if s.tests != 2 {
		t.Errorf("%d tests", s.tests)
	}
}

// A result of a program that changed during the test is worthless.
func TestWatchChangedWhileTested(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.wants(WatchFirst)
	var once sync.Once
	s.mu.Lock()
	s.during = func() { once.Do(func() { s.write(s.path, alike) }) }
	s.mu.Unlock()
	s.write(s.path, weak)
	s.wants(WatchFirst, WatchChanged, WatchChanged, WatchSame)
	s.stop()
}

// What cannot be reported ends the watch, and the next one reports it again.
func TestWatchCannotTell(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.o.Once = true
	must(t, Watch(context.Background(), s.o))
	s.write(s.path, weak)
	full := errors.New("the disk is full")
	s.o.Tell = func(WatchEvent) error { return full }
	if err := Watch(context.Background(), s.o); !errors.Is(err, full) {
		t.Errorf("it ended with %v", err)
	}
	s.o.Tell = s.tell
	must(t, Watch(context.Background(), s.o))
	if got := s.last().Kind; got != WatchWeaker {
		t.Errorf("told %q", got)
	}
}

func TestWatchNothingThere(t *testing.T) {
	s := newStage(t)
	fifo := filepath.Join(s.dir, "loop")
	must(t, os.Symlink("loop", fifo))
	for _, path := range []string{filepath.Join(s.dir, "none"), fifo, "/dev/null"} {
		s.o.Watched[0].Path = path
		if err := Watch(context.Background(), s.o); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
