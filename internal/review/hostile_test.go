//go:build linux

package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestHostileTree(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("README=1", "big=x")
	up := f.dir + "/upper"
	f.make(up, "readme=1", "pipe|", "a\nb=1", "e\x1b]0;x\x07=1", "bad\xff\xfe=1", "bidi\u202eexe.txt=1", "closed/in=1", "0000 secret=1", "6755 both=#!/bin/sh\n",
		"out->../../etc/passwd", "abs->/etc/passwd", "in->README", "hook->.git/hooks", "around->x/../../y", "elf=\x7fELF....", ".git->/elsewhere")
	for _, l := range []string{"hard1", "hard2"} {
		if err := os.Link(up+"/readme", up+"/"+l); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sparse", "big"} {
		if err := os.WriteFile(up+"/"+name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(up+"/"+name, 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Chmod(up+"/closed", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Chmod(up+"/closed", 0o700) })
	began := testenv.ProcessorTime(t, unix.RUSAGE_SELF)
	s := f.collect()
	want(t, lines(s),
		`added ".git" none→link [.git] [link]`,
		`added "a\nb" [name]`,
		`added "abs" none→link [link]`,
		`added "around" none→link [link]`,
		`added "bidi\u202eexe.txt" [name]`,
		`added "both" [setuid] [program]`,
		`added "e\x1b]0;x\a" [name]`,
		`added "elf" [program]`,
		`added "hook" none→link [link]`,
		`added "out" none→link [link]`,
		`added "bad\xff\xfe"`,
		`modified "big"`,
		`added "closed/in"`,
		`added "hard1"`,
		`added "hard2"`,
		`added "in" none→link`,
		`added "pipe" none→fifo cannot`,
		`added "readme"`,
		`added "secret"`,
		`added "sparse"`,
	)
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
	d, err := s.Diff(s.Find("sparse"))
	if err != nil || !d.Huge || len(d.Hunks) > 0 {
		t.Errorf("sparse: %v %+v", err, d)
	}
	f.acceptAll(s)
	r := f.apply(s, Options{})
	if len(r.Refused)+len(r.Conflicts) > 0 {
		t.Errorf("%+v", r)
	}
	var st unix.Stat_t
	if err := unix.Stat(f.ws+"/sparse", &st); err != nil || st.Size != 1<<40 || st.Blocks > 64 {
		t.Errorf("sparse: %v, %d bytes in %d blocks", err, st.Size, st.Blocks)
	}
	if err := unix.Stat(f.ws+"/both", &st); err != nil || st.Mode&0o7777 != 0o755 {
		t.Errorf("both: %v, %o", err, st.Mode)
	}
	if err := unix.Stat(f.ws+"/secret", &st); err != nil || st.Mode&0o7777 != 0 || st.Nlink != 1 {
		t.Errorf("secret: %v, %o", err, st.Mode)
	}
	if took := testenv.ProcessorTime(t, unix.RUSAGE_SELF) - began; took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestDeepAndLong(t *testing.T) {
	f := newField(t, Overlay)
	name := strings.Repeat("n", 200)
	fd, err := unix.Open(f.dir+"/upper", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const depth = 1250
	for i := range depth {
		step := "d"
		if i > 1200 {
			step = name
		}
		if err := unix.Mkdirat(fd, step, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, step, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		if fd = next; i%600 == 0 {
			unix.Close(must(t, fd, "file"))
		}
	}
	unix.Close(fd)
	s := f.collect()
	if len(s.Changes) != 3 || len(s.Unseen) != 1 || !strings.Contains(s.Unseen[0].Reason, "longer than") || s.Settled() {
		t.Errorf("%q, %+v", lines(s), s.Unseen)
	}
	f.acceptAll(s)
	if r := f.apply(s, Options{}); len(r.Applied) != 3 || r.Settled {
		t.Errorf("%+v", r)
	}
}

func must(t *testing.T, dir int, name string) int {
	t.Helper()
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestMoreThanAReviewHolds(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("keep=1")
	for i := range 50 {
		f.make(f.dir+"/upper", fmt.Sprintf("f%d=1", i))
	}
	lim := defaultLimits()
	lim.changes = 20
	s, err := collect(t.Context(), f.source(), lim)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.Changes) != 20 || len(s.Unseen) != 1 || s.Unseen[0].Reason != "30 more changes than one review can hold" {
		t.Errorf("%d changes, %+v", len(s.Changes), s.Unseen)
	}
	if r := f.apply(s, Options{Safe: true}); len(r.Applied) != 20 || r.Settled {
		t.Errorf("%+v", r)
	}
}

// A file of the run that is written to after it was looked at is not applied.
func TestRunsFileChangesMeanwhile(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("a=1\n")
	f.upper("a=2\n", "b=1\n", "c=1\n")
	s := f.collect()
	for _, p := range []string{"a", "b"} {
		if _, err := s.Diff(s.Find(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Decide(s.Find("a"), Accept); err != nil {
		t.Fatal(err)
	}
	time.Sleep(40 * time.Millisecond) // four ticks of the clock of inodes, at the slowest
	f.make(f.dir+"/upper", "a=3\n", "b=3\n")
	if err := s.Decide(s.Find("b"), Accept); !errors.Is(err, ErrChanged) {
		t.Errorf("deciding: %v", err)
	}
	r := f.apply(s, Options{})
	if len(r.Refused) != 1 || len(r.Applied) != 0 {
		t.Errorf("%+v", r)
	}
	want(t, tree(t, f.ws), "0644 a=1\n")
	s.Close()
	again := f.collect()
	if c := again.Find("a"); c.Decision != Undecided || len(c.Notes) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestDecisionIsBoundToTheChangeTime: a decision is about what was seen, also where
// what came later has its size and time, and it survives that a file which is closed
// to its owner is read.
func TestDecisionIsBoundToTheChangeTime(t *testing.T) {
	f := newField(t, Overlay)
	f.upper("a=1\n", "0000 shut=1\n")
	s := f.collect()
	for _, p := range []string{"a", "shut"} {
		if err := s.Decide(s.Find(p), Accept); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	path := f.dir + "/upper/a"
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(40 * time.Millisecond) // as in TestRunsFileChangesMeanwhile
	f.make(f.dir+"/upper", "a=2\n")
	if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	again := f.collect()
	if d := again.Find("a").Decision; d != Undecided {
		t.Errorf("what was not looked at is decided: %v", d)
	}
	for range 2 {
		if d := again.Find("shut").Decision; d != Accept {
			t.Errorf("the file that is closed to its owner: %v", d)
		}
		if _, err := again.Diff(again.Find("shut")); err != nil {
			t.Fatal(err)
		}
		again.Close()
		again = f.collect()
	}
}

func TestTwoReviewers(t *testing.T) {
	f := newField(t, Overlay)
	f.upper("a=1")
	s, other := f.collect(), f.collect()
	if err := s.Hold(); err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if err := other.Decide(other.Find("a"), Accept); !errors.As(err, &busy) || busy.PID != os.Getpid() {
		t.Errorf("the second reviewer: %v", err)
	}
	if err := s.Decide(s.Find("a"), Reject); err != nil {
		t.Error(err)
	}
	s.Close()
	if err := other.Hold(); err != nil || other.Find("a").Decision != Reject {
		t.Errorf("after the first one: %v, %v", err, other.Find("a").Decision)
	}
}
