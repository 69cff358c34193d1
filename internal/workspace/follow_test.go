//go:build linux

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLookupBelowALayer: what a run left lies over the workspace: a name is what the
// layer says it is, also when it says that the name is gone.
func TestLookupBelowALayer(t *testing.T) {
	dir := t.TempDir()
	work, over := filepath.Join(dir, "work"), filepath.Join(dir, "over")
	for path, text := range map[string]string{work + "/kept": "k", work + "/gone": "g", work + "/changed": "", over + "/changed": "changed", over + "/made": "made", dir + "/outside": "outside"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(over+"/gone", unix.S_IFCHR, 0); err != nil { // Linux 5.8 lets anybody
		t.Fatal(err)
	}
	s := &scan{found: &tree{Root: Name(work)}, over: over}
	for name, want := range map[string]int64{
		work + "/kept": 1, work + "/changed": 7, work + "/made": 4, dir + "/outside": 7, work + "/gone": -1, work + "/nothing": -1,
	} {
		at, err := s.lookup(name)
		switch {
		case want < 0 && !errors.Is(err, unix.ENOENT):
			t.Errorf("%s is there: %v", name, err)
		case want >= 0 && (err != nil || int64(at.st.Size) != want):
			t.Errorf("%s has %d bytes, want %d: %v", name, at.st.Size, want, err)
		}
	}
	s.over = ""
	if at, err := s.lookup(work + "/gone"); err != nil || at.st.Size != 1 {
		t.Errorf("without a layer: %d bytes, %v", at.st.Size, err)
	}
}
