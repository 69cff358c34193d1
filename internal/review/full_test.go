//go:build linux

package review

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// A full disk leaves the files old or new and nothing else; when there is room
// again, the rest follows.
func TestRootFullDisk(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	f := newField(t, Overlay)
	if err := unix.Mount("tmpfs", f.ws, "tmpfs", 0, "size=256k,nr_inodes=200"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(f.ws, unix.MNT_DETACH) })
	f.lower("a=1\n", "big=old\n", "gone=old\n")
	f.upper("a=2\n", "gone!", "big="+strings.Repeat("n", 300<<10), "deep/er/big="+strings.Repeat("m", 300<<10), "z=1\n")
	s := f.collect()
	f.acceptAll(s)
	r := f.apply(s, Options{})
	if len(r.Applied) != 3 || len(r.Refused) != 2 || !strings.Contains(r.Refused[0].Why, "no space left") {
		t.Errorf("%+v", r)
	}
	for _, l := range tree(t, f.ws) {
		if strings.Contains(l, tempPrefix) {
			t.Errorf("left behind: %.80q", l)
		}
	}
	if b, err := os.ReadFile(f.ws + "/big"); err != nil || string(b) != "old\n" {
		t.Errorf("big: %v %.20q", err, b)
	}
	s.Close()
	if err := unix.Mount("", f.ws, "", unix.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	s = f.collect()
	if r := f.apply(s, Options{}); len(r.Applied) != 2 || !r.Settled {
		t.Errorf("with room: %+v", r)
	}
}

// As root, what is applied gets the owner of the workspace.
func TestRootOwner(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	f := big(t, Overlay)
	if err := os.Chown(f.ws, 12345, 54321); err != nil {
		t.Fatal(err)
	}
	s := f.collect()
	f.acceptAll(s)
	f.apply(s, Options{})
	for _, p := range []string{"a", "l", "new", "new/deep/er/file", "empty", "todir", "sub/arrived", "tolink"} {
		var st unix.Stat_t
		if err := unix.Lstat(f.ws+"/"+p, &st); err != nil || st.Uid != 12345 || st.Gid != 54321 {
			t.Errorf("%s: %v, %d:%d", p, err, st.Uid, st.Gid)
		}
	}
}

// More directories than may be open at once.
func TestManyDirectories(t *testing.T) {
	f := newFieldIn(t, Overlay, inMemory(t))
	f.fast = true
	for d := range 300 {
		f.make(f.dir+"/upper", fmt.Sprintf("%d/b/c/file=%d", d, d))
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1024, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	s := f.collect()
	if r := f.apply(s, Options{Safe: true, hook: func(string, bool) error { return nil }}); len(r.Applied) != 300 || !r.Settled {
		t.Errorf("%d applied, %v", len(r.Applied), r.Refused)
	}
}
