package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// crashVar makes this test binary write the log in the directory that it names,
// until it is killed.
const crashVar = "AUDIT_TEST_WRITE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVar); dir != "" {
		write(dir)
		return
	}
	os.Exit(m.Run())
}

// write prints which events are certainly recorded.
func write(dir string) {
	l, err := Create(dir, Options{Session: "crash"})
	if err != nil {
		panic(err)
	}
	for n := uint64(1); ; n++ {
		if n%5 > 0 {
			err = l.Observe(event.Event{Sensor: event.Syscall, N: n, Action: event.FileOpen, Object: "/observed"})
		} else if err = l.Emit(event.Event{Sensor: event.Syscall, N: n, Action: event.FileOpen, Object: "/decided"}); err == nil {
			fmt.Println(n)
		}
		if err != nil {
			panic(err)
		}
	}
}

// TestKilled: after kill -9 everything acknowledged is there, the log verifies
// up to its last whole record, and the report says that the end is missing.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), crashVar+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "crash"+suffix)
	var promised uint64
	s := bufio.NewScanner(out)
	for s.Scan() {
		fmt.Sscan(s.Text(), &promised)
		if promised == 4000 {
			if r := verified(t, path); !r.Open || r.Verdict != Complete || r.Checkpoints == 0 {
				t.Errorf("while it is written: %+v", r)
			}
			if infos, err := List(dir); err != nil || len(infos) != 1 || !infos[0].Open {
				t.Errorf("%+v, %v", infos, err)
			}
		}
		if promised == 5000 {
			c.Process.Kill()
		}
	}
	c.Wait()
	r := verified(t, path)
	r.want(t, Gaps, "the log has no end after record")
	if r.Open || r.Sensors["syscall"].Standing < promised || r.Sensors["syscall"].Missing > 0 || r.Signed == 0 {
		t.Errorf("%d were promised: %+v", promised, r)
	}
	var damage *DamageError
	seen := uint64(0)
	err = Scan(context.Background(), path, 2, nil, func(r *Record) error { seen = r.n; return nil })
	if err != nil && (!errors.As(err, &damage) || !damage.Torn) || seen < promised {
		t.Errorf("%d were promised and %d are there: %v", promised, seen, err)
	}
	if err := Follow(context.Background(), path, func(*Record) error { return nil }); !errors.Is(err, ErrNoEnd) {
		t.Errorf("following it: %v", err)
	}
	if infos, err := List(dir); err != nil || len(infos) != 1 || infos[0].Open {
		t.Errorf("%+v, %v", infos, err)
	}
}

func TestAnOpenLogSaysWhatHasNoSignature(t *testing.T) {
	l := create(t, Options{})
	for i := range 3 {
		if err := l.Emit(event.Event{Sensor: event.Syscall, N: uint64(i + 1), Action: event.FileOpen, Object: "/x"}); err != nil {
			t.Fatal(err)
		}
	}
	const said = "the last 4 records have no signature yet"
	if r := verified(t, l.Path()); !r.Open || r.Verdict != Complete || !slices.Contains(r.Notes, said) {
		t.Errorf("while it is written: open %v, %v, %q", r.Open, r.Verdict, r.Notes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, l.Path()); r.Open || slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "signature") }) {
		t.Errorf("when it has ended: open %v, %q", r.Open, r.Notes)
	}
}

// interrupted is a log without an end, and its newest head.
func interrupted(t *testing.T) (path string, content []byte, kept int) {
	t.Helper()
	l := create(t, Options{})
	for i := range 12 {
		e := event.Event{Sensor: event.Syscall, N: uint64(i + 1), Action: event.FileOpen, Object: "/\xff"}
		if i == 6 {
			e.Action, e.Detail = event.AlertRaise, map[string]string{"severity": "high"}
		}
		if err := l.Emit(e); err != nil {
			t.Fatal(err)
		}
		if i == 6 {
			for start := time.Now(); ; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(l.keeper.path); err == nil {
					break
				}
				if time.Since(start) > 10*time.Second {
					t.Fatal("no head is kept")
				}
			}
			kept = len(read(t, l.Path()))
		}
	}
	content = read(t, l.Path())
	head := read(t, l.keeper.path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.keeper.path, head, 0o600); err != nil {
		t.Fatal(err)
	}
	return l.Path(), content, kept
}

// TestCutAnywhere simulates a power failure: the log ends at any of its bytes. What the
// head covers is on disk, by the order of writing; if it is not, somebody removed it.
func TestCutAnywhere(t *testing.T) {
	path, content, kept := interrupted(t)
	for size := range len(content) + 1 {
		if err := os.WriteFile(path, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		r := verified(t, path)
		whole := bytes.Count(content[:size], []byte("\n"))
		want := Gaps
		if size < kept {
			want = Tampered
		}
		r.want(t, want, "")
		if size < kept {
			r.want(t, want, fmt.Sprintf("at least %d are missing after record %d", 9-whole, whole))
		}
		if size > 0 && content[size-1] != '\n' {
			r.want(t, want, "the last line is incomplete")
		}
		if r.Lines != whole {
			t.Errorf("at byte %d: %d lines of %d", size, r.Lines, whole)
		}
		seen := 0
		err := Scan(context.Background(), path, 1, nil, func(*Record) error { seen++; return nil })
		var damage *DamageError
		if torn := size > 0 && content[size-1] != '\n'; errors.As(err, &damage) != torn || torn && !damage.Torn {
			t.Errorf("at byte %d: %v", size, err)
		}
		if stops := bytes.Count(content[:size], []byte("end\\n\\n")) + bytes.Count(content[:size], []byte("open\\n\\n")); seen < whole-stops || seen > whole {
			t.Errorf("at byte %d: %d events in %d lines", size, seen, whole)
		}
	}
}

// TestCutAtCheckpoint: a log that ends with a signature looks whole, except for
// its head.
func TestCutAtCheckpoint(t *testing.T) {
	path := sample(t)
	all := lines(read(t, path))
	last := 0
	for i, line := range all[:len(all)-1] {
		if bytes.Contains(line, []byte(`"checkpoint"`)) {
			last = i
		}
	}
	if err := os.WriteFile(path, bytes.Join(all[:last+1], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	verified(t, path).want(t, Tampered, fmt.Sprintf("says that the log had 10 records: %d are missing after record %d", 9-last, last+1))
	if err := os.RemoveAll(filepath.Join(filepath.Dir(filepath.Dir(path)), "heads")); err != nil {
		t.Fatal(err)
	}
	r := verified(t, path)
	r.want(t, Gaps, "the log has no end after record 7")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "no head of this log was kept outside") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestHead: the head outside is checked like the log.
func TestHead(t *testing.T) {
	path := sample(t)
	head := filepath.Join(filepath.Dir(filepath.Dir(path)), "heads", strings.TrimSuffix(filepath.Base(path), suffix)+headSuffix)
	signed := read(t, head)
	for i := range signed {
		signed[i] ^= 1
		if err := os.WriteFile(head, signed, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, path); r.Verdict != Tampered && r.Verdict != Unverifiable {
			t.Errorf("byte %d of the head: %v, %q", i, r.Verdict, r.Problems)
		}
		signed[i] ^= 1
	}
	for _, c := range []struct {
		name    string
		content []byte
		problem string
	}{
		{"of another session", read(t, func() string {
			l := create(t, Options{Session: "another", Keys: filepath.Join(filepath.Dir(filepath.Dir(path)), "keys")})
			l.Close()
			return l.keeper.path
		}()), `belongs to session "another"`},
		{"empty", nil, "is not a checkpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(head, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			verified(t, path).want(t, Tampered, c.problem)
		})
	}
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, path); r.Verdict != Complete || len(r.Notes) != 1 {
		t.Errorf("without a head: %v, %q", r.Verdict, r.Notes)
	}
}
