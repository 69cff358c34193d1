package sys

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{path: false, "/proc": true} {
		if got, err := Fixed(path); err != nil || got != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if _, err := Fixed(path + ".none"); err == nil {
		t.Error("what does not exist can be replaced")
	}
}

// TestReplacementOfAnotherGroup: of a file whose group the user may not give, no group
// gets rights.
func TestReplacementOfAnotherGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with what it lacks
		none := [2]unix.CapUserData{}
		err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
		r, bad := NewReplacement(path, 0o640)
		if err = errors.Join(err, bad); err == nil {
			r.SetGroup(54321)
			err = r.Commit(nil)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}
