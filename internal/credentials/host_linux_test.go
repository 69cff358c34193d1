package credentials

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestRootLoginThatIsAMount: no refresh token is spent where the file cannot be replaced
// because something is mounted on it, as in a container.
func TestRootLoginThatIsAMount(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	a := newAccount(t, -time.Hour)
	if err := unix.Mount(a.path, a.path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(a.path, unix.MNT_DETACH) })
	if _, err := taken(a.broker(nil)); err == nil || !strings.Contains(err.Error(), a.path+" cannot be replaced: something is mounted on it") {
		t.Errorf("got %v", err)
	}
	a.renewals(0)
}

// TestLoginThatOnlyReads: a file that its owner may not write to is replaced too.
func TestLoginThatOnlyReads(t *testing.T) {
	a := newAccount(t, -time.Hour)
	if err := os.Chmod(a.path, 0o400); err != nil {
		t.Fatal(err)
	}
	a.accepted(a.broker(nil))
	a.renewals(1)
}
