//go:build linux

package review

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestWhatIsOursAlready: a change is done if what is in its place is what it would make,
// and is in conflict with all else, in the words of what happened.
func TestWhatIsOursAlready(t *testing.T) {
	const gone, other, changed = "it was removed after the run began", "something else is there", "it is not what it was when the run began"
	f := newField(t, Overlay).lower("same=1", "content=2", "0600 bits=1", "link->x", "otherlink->y", "dir/", "0700 closed/", "part=1", "large=", "typ=1")
	f.upper("same=1", "content=1", "bits=1", "large=", "gone=1", "typ=1")
	for _, p := range []string{f.ws, f.dir + "/upper"} {
		if err := os.Truncate(p+"/large", MaxSum+1); err != nil {
			t.Fatal(err)
		}
	}
	a := f.applier(f.collect(), nil)
	dir, err := a.dir("")
	if err != nil {
		t.Fatal(err)
	}
	one := "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
	for _, row := range []struct {
		path    string
		ours    State
		data    string
		oldType Type
		want    string
	}{
		{"same", State{Type: File, Mode: 0o644}, "", None, ""},
		{"content", State{Type: File, Mode: 0o644}, "", None, other},
		{"content", State{Type: File, Mode: 0o644}, "", File, changed},
		{"bits", State{Type: File, Mode: 0o644}, "", File, changed},
		{"gone", State{Type: File, Mode: 0o644}, "", File, gone},
		{"gone", State{Type: File, Mode: 0o644}, "", None, gone},
		{"large", State{Type: File, Mode: 0o644}, "", None, other},
		{"part", State{Type: File, Mode: 0o644, Size: 1, SHA256: one}, "1", File, ""},
		{"part", State{Type: File, Mode: 0o644, Size: 1, SHA256: "x"}, "2", File, changed},
		{"link", State{Type: Link, Target: "x", Mode: 0o755}, "", None, ""},
		{"otherlink", State{Type: Link, Target: "x"}, "", Link, changed},
		{"dir", State{Type: Dir, Mode: 0o755}, "", None, ""},
		{"closed", State{Type: Dir, Mode: 0o755}, "", None, other},
		{"typ", State{Type: Link, Target: "x"}, "", File, changed},
	} {
		c := &Change{Path: workspace.Name(row.path), Type: row.ours.Type, OldType: row.oldType}
		w := &work{c: c, dir: dir, name: row.path, ours: row.ours}
		if row.data != "" {
			w.data = []byte(row.data)
		}
		if err := a.alreadyDone(w, c); !says(err, row.want) {
			t.Errorf("%s as %+v: %v", row.path, row.ours, err)
		}
	}
}

// TestDirectoryThatCannotBeReached: the message names the obstacle.
func TestDirectoryThatCannotBeReached(t *testing.T) {
	for err, want := range map[error]string{
		unix.ELOOP: `"d", or a directory above it, is now a link or a file in the workspace`, unix.ENOTDIR: `"d", or a directory above it, is now a link or a file in the workspace`,
		unix.EXDEV: `"d" leads out of the workspace`, unix.EACCES: `opening directory "d": permission denied`,
	} {
		if got := unreachable("d", err).Error(); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestClosedFilesAreOpenedForAMoment: only regular files are, and they are closed again.
func TestClosedFilesAreOpenedForAMoment(t *testing.T) {
	f := newField(t, Overlay).lower("0000 closed=1", "pipe|", "dir/", "l->closed")
	root, err := unix.Open(f.ws, openTop, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for name, want := range map[string]error{"closed": nil, "pipe": unix.EACCES, "dir": unix.EACCES, "none": unix.ENOENT, "l": unix.ELOOP} {
		fd, err := openClosed(root, name)
		if !errors.Is(err, want) && name != "l" || (err == nil) != (want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if b := readWhole(os.NewFile(uintptr(fd), name), nil); string(b) != "1" {
			t.Errorf("%q", b)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(f.ws+"/closed", &st); err != nil || st.Mode&0o7777 != 0 {
		t.Errorf("%v, mode %o", err, st.Mode)
	}
	file, err := os.OpenFile(f.ws+"/pipe", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := names(file, func(string) error { return nil }); err == nil {
		t.Error("a pipe was listed")
	}
}
