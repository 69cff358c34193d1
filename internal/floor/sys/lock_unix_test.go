//go:build unix

package sys

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWaitLock waits for a lock that is given back, and for one that is not.
func TestWaitLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if err := WaitLock(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := WaitLock(ctx, second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another has it: %v", err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		time.Sleep(100 * time.Millisecond)
		first.Close()
	}()
	if err := WaitLock(t.Context(), second); err != nil {
		t.Errorf("after the other gave it back: %v", err)
	}
	<-closed
	if err := WaitLock(t.Context(), first); err == nil {
		t.Error("a closed file was locked")
	}
}
