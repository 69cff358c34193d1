//go:build linux

package review

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// What is not a file, directory or link is listed, but never applied or opened.
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

// specials has a run make nodes, one of them replacing a file.
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

// TestANameThatIsTooLongThere: a file system may take longer names than that of the
// workspace (255 bytes here, 143 with eCryptfs): nothing was there under such a name.
func TestANameThatIsTooLongThere(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l := level{path: ".", t: &trees{}, base: dir, tree: dir}
	if _, was, err := l.old(strings.Repeat("a", 256)); was || err != nil {
		t.Errorf("there: %v, %v", was, err)
	}
}
