package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectoriesAreNoLinks puts a link in place of each directory: it could
// lead into a workspace, where what runs inside could see the record.
func TestDirectoriesAreNoLinks(t *testing.T) {
	for _, name := range []string{"log", "keys", "heads"} {
		t.Run(name, func(t *testing.T) {
			state, workspace := t.TempDir(), t.TempDir()
			if err := os.Symlink(workspace, filepath.Join(state, name)); err != nil {
				t.Fatal(err)
			}
			l, err := Create(filepath.Join(state, "log"), Options{Session: "20260101T000000-0123456789ab"})
			if err == nil {
				l.Close()
				t.Fatal("a record began")
			}
			if !strings.Contains(err.Error(), filepath.Join(state, name)+" is a symbolic link") {
				t.Error(err)
			}
			if left, err := os.ReadDir(workspace); err != nil || len(left) > 0 {
				t.Errorf("written through the link: %v %v", left, err)
			}
		})
	}
}
