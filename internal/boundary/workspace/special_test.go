//go:build linux

package workspace

import (
	"maps"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestSpecialFilesAreListed leaves each kind of file that an ordinary user can make
// and that is no regular file, directory or link.
func TestSpecialFilesAreListed(t *testing.T) {
	special(t, map[string]Change{"pipe": FIFO, "docs/socket": Socket, "docs/none": Device}, map[string]uint32{
		"pipe": unix.S_IFIFO, "docs/socket": unix.S_IFSOCK, "docs/none": unix.S_IFCHR,
	})
}

// TestRootDevicesAreListed does the same with devices that only root can make. Their
// numbers are of /dev/null and of a loop device; neither is opened.
func TestRootDevicesAreListed(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	special(t, map[string]Change{"char": Device, "docs/block": Device}, map[string]uint32{"char": unix.S_IFCHR, "docs/block": unix.S_IFBLK})
}

// special makes the files after a scan and compares what settling lists.
func special(t *testing.T, want map[string]Change, files map[string]uint32) {
	t.Helper()
	w := tempRoot(t)
	mkdir(t, w+"/docs")
	s := scanned(t, w)
	for name, kind := range files {
		dev := 0
		switch name {
		case "char":
			dev = int(unix.Mkdev(1, 3))
		case "docs/block":
			dev = int(unix.Mkdev(7, 200))
		}
		if err := unix.Mknod(w+"/"+name, kind|0o600, dev); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]Change{}
	for _, f := range settled(t, s).Flagged {
		got[strings.TrimPrefix(string(f.Path), w+"/")] = f.Change
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
