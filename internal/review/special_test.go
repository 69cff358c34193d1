//go:build linux

package review

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// What is no file, directory or link is named, and never applied; nobody opens it.
func TestSocketsAndPipes(t *testing.T) {
	specials(t, "socket", map[string]special{"made": {unix.S_IFSOCK, 0}, "was": {unix.S_IFSOCK, 0}})
	specials(t, "fifo", map[string]special{"made": {unix.S_IFIFO, 0}, "was": {unix.S_IFIFO, 0}})
}

func TestRootDevices(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	specials(t, "device", map[string]special{"made": {unix.S_IFCHR, unix.Mkdev(1, 5)}, "was": {unix.S_IFBLK, unix.Mkdev(7, 0)}})
}

// special is a node and, of a device, its number.
type special struct {
	kind uint32
	dev  uint64
}

// specials has a run make nodes, one of them in the place of a file.
func specials(t *testing.T, kind string, nodes map[string]special) {
	t.Helper()
	f := newField(t, Overlay)
	f.lower("was=1\n")
	for name, n := range nodes {
		if err := unix.Mknod(f.dir+"/upper/"+name, n.kind|0o666, int(n.dev)); err != nil {
			t.Fatal(err)
		}
	}
	f.upper("plain=1\n")
	s := f.collect()
	want(t, lines(s), `type "was" file→`+kind+` [type] cannot`, `added "made" none→`+kind+` cannot`, `added "plain"`)
	for _, c := range s.Changes {
		if _, err := s.Diff(c); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		s.Decide(c, Accept) // refused for what cannot be applied, or without effect
	}
	if r := f.apply(s, Options{}); len(r.Applied) != 1 || r.Applied[0] != "plain" {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(f.ws + "/was"); err != nil || string(b) != "1\n" {
		t.Errorf("was: %q, %v", b, err)
	}
	if _, err := os.Lstat(f.ws + "/made"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made: %v", err)
	}
}
