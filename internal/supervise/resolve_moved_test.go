//go:build linux

package supervise

import (
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

// A path with dots in it is found while mounts come and go, as where other runs start
// and end. The kernel gives up on it then (openat2(2), EAGAIN).
func TestDirectoryWhileMountsGo(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	var done atomic.Bool
	tried, failed := 0, 0
	go func() {
		defer done.Store(true)
		for range 500 {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
			if err := cmd.Run(); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for !done.Load() {
		tried++
		fd, errno := openIn(root, []byte("a/../a/../a/../a/../a/../a\x00"), unix.O_PATH)
		if errno != 0 {
			failed++
			continue
		}
		unix.Close(fd)
	}
	if failed > 0 {
		t.Errorf("%d of %d failed", failed, tried)
	}
}
