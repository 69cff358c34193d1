//go:build linux

package targets

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLastBegun: a run that was started first and written last is not the last
// one.
func TestLastBegun(t *testing.T) {
	dir := t.TempDir()
	var logs []string
	for i, name := range []string{"b", "a", "c"} {
		path := filepath.Join(dir, name)
		line := fmt.Sprintf("{\"seq\":1,\"time\":\"2026-01-02T03:04:05.%d00000000Z\"}\n{\"seq\":2}\n", []int{1, 9, 5}[i])
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		logs = append(logs, path)
	}
	if got := lastBegun(logs); filepath.Base(got) != "a" {
		t.Errorf("the run begun last is said to be %s", got)
	}
	if got := lastBegun(nil); got != "" {
		t.Errorf("of no records, %q was begun last", got)
	}
}
