package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/event"
)

func TestEventsAreLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := l.Emit(event.Event{Action: "net.connect", Object: fmt.Sprintf("host%d:443\n", i), Verdict: event.Denied, Detail: map[string]string{"reason": "a \"reason\""}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(l.Path()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the record is %v, %v", st.Mode(), err)
	}
	f, err := os.Open(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		var e struct{ Verdict, Object string }
		if err := json.Unmarshal(s.Bytes(), &e); err != nil || e.Verdict != "denied" || !strings.HasPrefix(e.Object, "host") {
			t.Errorf("%q: %v", s.Text(), err)
		}
	}
	if lines != 50 {
		t.Errorf("%d lines", lines)
	}
}

// TestFull: what cannot be recorded is an error, so that it does not happen.
func TestFull(t *testing.T) {
	l, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.max = 4096
	for range 1000 {
		if err = l.Emit(event.Event{Action: "net.query", Object: "example.org"}); err != nil {
			break
		}
	}
	if st, serr := os.Stat(l.Path()); err == nil || serr != nil || st.Size() > l.max {
		t.Errorf("got %v; %v", err, serr)
	}
	if err := l.Emit(event.Event{Action: "session.end"}); err != nil {
		t.Errorf("the end is not recorded: %v", err)
	}
}

func TestOldRecordsGo(t *testing.T) {
	dir := t.TempDir()
	for i := range MaxRuns + 20 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("2020%04d-x%s", i, suffix)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(dir + "/*")
	if len(left) != MaxRuns || left[len(left)-1] != l.Path() || strings.Contains(left[0], "20200000") {
		t.Errorf("%d records are left, from %s to %s", len(left), left[0], left[len(left)-1])
	}
}

func TestLargeRecordsGoToo(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("2020%04d-x%s", i, suffix)))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(MaxTotal / 3); err != nil { // holes take no space
			t.Fatal(err)
		}
		f.Close()
	}
	l, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 4 || !strings.Contains(left[0], "20200002") {
		t.Errorf("left are %q", left)
	}
}
