package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestScan: matching events come in order, however many goroutines look for them.
func TestScan(t *testing.T) {
	path := huge(t, 20_000)
	for _, workers := range []int{0, 1, 3, 16} {
		var seqs []uint64
		err := Scan(context.Background(), path, workers, func(r *Record) (bool, error) {
			n, _ := r.Field("n")
			a, _ := r.Field("action")
			return n.(int)%3 == 0 && a == event.FileWrite, nil
		}, func(r *Record) error {
			if n, _ := r.Field("n"); n.(int)%3 != 0 {
				t.Errorf("number %v does not match", n)
			}
			seqs = append(seqs, r.Seq())
			return nil
		})
		if err != nil || len(seqs) != 6666 {
			t.Fatalf("%d found, %v", len(seqs), err)
		}
		for i := 1; i < len(seqs); i++ {
			if seqs[i] <= seqs[i-1] {
				t.Fatalf("%d workers: %d after %d", workers, seqs[i], seqs[i-1])
			}
		}
	}
	stop := errors.New("stop")
	seen := 0
	if err := Scan(context.Background(), path, 3, nil, func(*Record) error {
		if seen++; seen == 100 {
			return stop
		}
		return nil
	}); err != stop || seen != 100 {
		t.Errorf("after %d: %v", seen, err)
	}
	if err := Scan(context.Background(), path, 3, func(r *Record) (bool, error) { return false, stop }, nil); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Scan(ctx, path, 3, nil, func(*Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFields: those that conditions use, in the types that they expect.
func TestFields(t *testing.T) {
	want := []map[string]any{
		2: {
			"seq": 3, "n": 1, "sensor": "syscall", "session": "20261122T010203.004-abcdefgh", "action": "proc.exec", "verdict": "allowed",
			"time": time.Date(2026, 11, 22, 1, 2, 4, 4000, time.UTC), "object": "./a b", "resolved": "/bin/sh", "pid": 7, "exec": 1, "parent": 6, "parent_exec": 3,
			"executable": "/bin/busybox", "sha256": sum("x"), "cwd": "/", "argv": []string{"", "-c", "echo \"\u202e\x1b[31m\"\n{\"seq\":9}", "\x80"},
			"layer": nil, "rule": nil, "error": nil, "detail": nil, "marks": nil, "raw": nil, "prev": nil,
		},
		3: {"layer": "readonly", "rule": "policy.yaml:12", "error": "EROFS", "detail": map[string]string{"mode": "0644", "bytes": "\xc3"}},
		4: {"verdict": "unknown", "pid": nil},
	}
	i := 0
	err := Scan(context.Background(), sample(t), 1, nil, func(r *Record) error {
		if i < len(want) {
			for name, w := range want[i] {
				got, found := r.Field(name)
				if found != (w != nil) || fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", w, w) {
					t.Errorf("record %d: %s is %T %v, %v; want %v", i+1, name, got, got, found, w)
				}
			}
		}
		i++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamage: lines that are not records do not hide those that are.
func TestDamage(t *testing.T) {
	path := sample(t)
	all := lines(read(t, path))
	all[2] = []byte("\x00\x00\n")
	all[3] = bytes.Replace(all[3], []byte(`"n":2`), []byte(`"n": 2`), 1)
	all[4] = []byte(strings.Repeat("x", maxLine+blockSize) + "\n")
	if err := os.WriteFile(path, bytes.Join(all, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(func(*Record) error) error{
		func(each func(*Record) error) error { return Scan(context.Background(), path, 2, nil, each) },
		func(each func(*Record) error) error {
			r, err := ReadVerified(context.Background(), path, VerifyOptions{}, each)
			if r.Verdict != Tampered {
				t.Error(r)
			}
			return err
		},
	} {
		seen := 0
		err := f(func(*Record) error { seen++; return nil })
		var damage *DamageError
		if !errors.As(err, &damage) || damage.Line != 3 || damage.Lines < 3 || damage.Torn || seen != 5 {
			t.Errorf("%d events, %v", seen, err)
		}
	}
	verified(t, path).want(t, Tampered, "(line 3, byte ")
}

// TestFollow: events are passed on as they come, and the end is noticed.
func TestFollow(t *testing.T) {
	l := create(t, Options{})
	got := make(chan event.Event, 100)
	done := make(chan error)
	go func() {
		done <- Follow(context.Background(), l.Path(), func(r *Record) error {
			e, err := r.Event()
			got <- e
			return err
		})
	}()
	if e := <-got; e.Action != event.RecordBegin {
		t.Errorf("first is %+v", e)
	}
	for n := range 5 {
		if err := l.Observe(typicalEvent(uint64(n + 1))); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-got:
			if e.N != uint64(n+1) {
				t.Errorf("got %+v", e)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing comes")
		}
	}
	endWith(t, l, 5)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if e := <-got; e.Action != event.SessionEnd {
		t.Errorf("last is %+v", e)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l = create(t, Options{})
	if err := Follow(ctx, l.Path(), func(*Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestMemory: the memory for writing or reading a log does not grow with its length.
func TestMemory(t *testing.T) {
	const n = 100_000 // some 45 MB
	base := heap()
	peak := uint64(0)
	look := func() { peak = max(peak, heap()) }
	l := create(t, Options{MaxBytes: 1 << 30})
	for i := range n {
		if err := l.Observe(typical(uint64(i + 1))); err != nil {
			t.Fatal(err)
		}
		if i%20_000 == 0 {
			look()
		}
	}
	end(t, l, n)
	look()
	i := 0
	if err := Scan(context.Background(), l.Path(), 2, nil, func(*Record) error {
		if i++; i%20_000 == 0 {
			look()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if peak-min(base, peak) > 12<<20 {
		t.Errorf("%d KiB at most, %d before", peak>>10, base>>10)
	}
	t.Logf("%d KiB more at %d records, of %s", (peak-min(base, peak))>>10, n, filepath.Base(l.Path()))
}

// heap returns how many bytes are reachable.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestDecoder: each of many events decoded into one event, one after the other, is right.
func TestDecoder(t *testing.T) {
	d := NewDecoder()
	err := Scan(context.Background(), sample(t), 2, nil, func(r *Record) error {
		want, err := r.Event()
		if err != nil {
			return err
		}
		if err := d.Decode(r); err != nil {
			return err
		}
		got := d.Event
		got.Detail, got.Process.Argv = maps.Clone(got.Detail), slices.Clone(got.Process.Argv)
		if len(got.Detail) == 0 {
			got.Detail = nil
		}
		if len(got.Process.Argv) == 0 {
			got.Process.Argv = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("record %d is\n%+v, want\n%+v", r.Seq(), got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
