package audit

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// volume mounts a small file system.
func volume(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// stops fails unless the log has failed for good by an error.
func stops(t *testing.T, l *Log, told <-chan error, want error) {
	t.Helper()
	select {
	case err := <-told:
		if !errors.Is(err, want) {
			t.Errorf("it failed with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is told")
	}
	if err := l.Emit(event.Event{Action: event.SessionEnd}); !errors.Is(err, want) {
		t.Errorf("it goes on: %v", err)
	}
	if err := l.Close(); !errors.Is(err, want) {
		t.Errorf("the end: %v", err)
	}
}

// TestRootDiskFull: when the disk is full nothing goes on, and everything
// acknowledged is there.
func TestRootDiskFull(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	told := make(chan error, 1)
	keys := filepath.Join(t.TempDir(), "keys")
	l, err := Create(filepath.Join(volume(t), "log"), Options{Session: "small", Keys: keys, Failed: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for {
		if err := l.Emit(event.Event{Sensor: event.Syscall, N: n + 1, Action: event.ProcExec, Object: strings.Repeat("x", 1000)}); err != nil {
			break
		}
		if n++; n > 1000 {
			t.Fatal("256 KiB hold 1 MB")
		}
	}
	stops(t, l, told, syscall.ENOSPC)
	r, err := Verify(t.Context(), l.Path(), VerifyOptions{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	r.want(t, Gaps, "the log has no end")
	if r.Sensors["syscall"].Standing < n {
		t.Errorf("%d were acknowledged: %+v", n, r.Sensors)
	}
}

// TestRootReadOnly: likewise when a disk becomes read-only.
func TestRootReadOnly(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	told := make(chan error, 1)
	dir := volume(t)
	l := create(t, Options{Heads: filepath.Join(dir, "heads"), Failed: func(err error) { told <- err }})
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(filepath.Join(dir, "log"), Options{Session: "more", Keys: filepath.Join(t.TempDir(), "keys")}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a log begins: %v", err)
	}
	if err := l.Emit(event.Event{Sensor: event.Detect, N: 1, Action: event.AlertRaise, Detail: map[string]string{"severity": "high"}}); err != nil {
		t.Fatal(err)
	}
	stops(t, l, told, syscall.EROFS)
}
