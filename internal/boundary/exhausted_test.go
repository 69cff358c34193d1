package boundary

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestExhausted: a host that allows no namespaces has no full disk.
func TestExhausted(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "write", Path: "/state/log/x", Err: syscall.ENOSPC}, "df -h /state/log/"},
		{fmt.Errorf("launch step 0, clone into new namespaces: %w", syscall.ENOSPC), ""},
		{fmt.Errorf("launch step 0, clone into new namespaces: %w", syscall.EAGAIN), "ulimit -u"},
		{fmt.Errorf("inotify_init: %w", syscall.EMFILE), "fs.inotify.max_user_instances"},
	} {
		if got := Exhausted(c.err); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}
