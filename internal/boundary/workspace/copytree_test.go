//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestCopyTree(t *testing.T) {
	w, to := tempRoot(t), tempRoot(t)
	write(t, w, "d/file", "text")
	write(t, w, "d/empty", "")
	write(t, w, "d/script", "#!/bin/sh\n")
	write(t, w, "top", "x")
	link(t, "/nowhere", w, "d/link")
	if err := errors.Join(os.Link(w+"/d/file", w+"/second"), unix.Mkfifo(w+"/d/pipe", 0o600),
		os.Truncate(w+"/d/empty", 0), os.WriteFile(w+"/d/holes", nil, 0o600), os.Truncate(w+"/d/holes", 1<<30)); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1e9, 5000)
	chmod(t, w+"/d/script", 0o750)
	for _, name := range []string{"/top", "/d/script", "/d"} {
		if err := os.Chtimes(w+name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	chmod(t, w+"/d", 0o700)
	chmod(t, w, 0o751)
	attributes := unix.Setxattr(w+"/top", "user.colour", []byte("red"), 0) == nil
	r, err := CopyTree(t.Context(), w, to, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Left, []Name{"d/pipe: a FIFO"}) || r.Files != 8 || !r.Shared && (r.Bytes == 0 || r.Bytes > 1<<20) {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]string{"/d/file": "text", "/second": "text", "/d/empty": "", "/top": "x"} {
		if b, err := os.ReadFile(to + name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for name, mode := range map[string]os.FileMode{"": 0o751, "/d": 0o700, "/d/script": 0o750} {
		if st, err := os.Stat(to + name); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %o", name, st, err, mode)
		}
	}
	for _, name := range []string{"/top", "/d/script", "/d"} {
		if st, err := os.Stat(to + name); err != nil || !st.ModTime().Equal(old) {
			t.Errorf("time of %s: %v, %v", name, st, err)
		}
	}
	if text, err := os.Readlink(to + "/d/link"); err != nil || text != "/nowhere" {
		t.Errorf("link to %q, %v", text, err)
	}
	var one, other, holes unix.Stat_t
	if err := errors.Join(unix.Stat(to+"/d/file", &one), unix.Stat(to+"/second", &other), unix.Stat(to+"/d/holes", &holes)); err != nil {
		t.Fatal(err)
	}
	if one.Ino != other.Ino {
		t.Error("two names of one file became two files")
	}
	if holes.Size != 1<<30 || holes.Blocks > 2048 {
		t.Errorf("a file of one hole has %d bytes in %d blocks", holes.Size, holes.Blocks)
	}
	value := make([]byte, 10)
	if n, err := unix.Getxattr(to+"/top", "user.colour", value); attributes && (err != nil || string(value[:n]) != "red") {
		t.Errorf("attribute %q, %v", value, err)
	}
}

// Data between holes is copied where it is, and what lies beyond the end is not.
func TestCopyOfAFileWithHoles(t *testing.T) {
	w, to := tempRoot(t), tempRoot(t)
	f, err := os.Create(w + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, text := range map[int64]string{0: "first", 4 << 20: "second", 9<<20 - 4: "last"} {
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(12 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := CopyTree(t.Context(), w, to, 0); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(w + "/f")
	if got, err := os.ReadFile(to + "/f"); err != nil || string(got) != string(want) {
		t.Errorf("%d bytes, %v, and other ones than the original's %d", len(got), err, len(want))
	}
}

func TestCopyTreeEnds(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "a/big", strings.Repeat("x", 2<<20))
	t.Run("at its limit, which the hint says how to raise", func(t *testing.T) {
		r, err := CopyTree(t.Context(), w, tempRoot(t), 1<<20)
		var space *SpaceError
		if r.Shared && err == nil {
			return // contents that the file system shares take no room
		}
		if !errors.As(err, &space) || space.Free || !strings.Contains(err.Error(), "limit of disk, 1 MiB") || !strings.Contains(space.Hint(), "--disk") {
			t.Errorf("%v", err)
		}
	})
	t.Run("with what the file system has left, which no option raises", func(t *testing.T) {
		err := &SpaceError{Root: "/w", Limit: 5 << 20, Free: true}
		if !strings.Contains(err.Error(), "room for no more than 5 MiB") || strings.Contains(err.Hint(), "--disk") {
			t.Errorf("%v, %s", err, err.Hint())
		}
	})
	t.Run("when it is cancelled", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := CopyTree(ctx, w, tempRoot(t), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("at a link in place of the tree", func(t *testing.T) {
		link(t, w+"/a", w, "link")
		if _, err := CopyTree(t.Context(), w+"/link", tempRoot(t), 0); err == nil {
			t.Error("the link was followed")
		}
	})
	t.Run("at a place that is not empty", func(t *testing.T) {
		to := tempRoot(t)
		write(t, to, "a/big", "mine")
		_, err := CopyTree(t.Context(), w, to, 0)
		if b, _ := os.ReadFile(to + "/a/big"); err == nil || string(b) != "mine" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// An error says where it was met, and a full file system how much was copied.
func TestCopyTreeErrors(t *testing.T) {
	c := &treeCopier{root: "/w", path: []byte("d/f")}
	c.report.Bytes = 3 << 20
	if err := c.withPath(nil); err != nil {
		t.Error(err)
	}
	limit := &SpaceError{Root: "/w", Limit: 1}
	if err := c.withPath(fmt.Errorf("f: %w", limit)); !errors.Is(err, limit) || strings.Contains(err.Error(), "d/f") {
		t.Errorf("the limit: %v", err)
	}
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT} {
		var space *SpaceError
		if err := c.withPath(full); !errors.As(err, &space) || !space.Free || space.Limit != 3<<20 {
			t.Errorf("%v: %v", full, err)
		}
	}
	if err := c.withPath(unix.EIO); !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), `"d/f"`) {
		t.Errorf("another error: %v", err)
	}
	for range maxLeft + 5 {
		c.leave("x")
	}
	if len(c.report.Left) != maxLeft || c.report.Left[0] != "d/f: x" {
		t.Errorf("%d files are named as left out, %q", len(c.report.Left), c.report.Left[0])
	}

	w := tempRoot(t)
	write(t, w, "big", strings.Repeat("x", 1<<20))
	if r, err := CopyTree(t.Context(), w, tempRoot(t), 1); !r.Shared && (err == nil || strings.Count(err.Error(), "copying") != 1) {
		t.Errorf("at its limit: %v", err)
	}
	if _, err := CopyTree(t.Context(), w, w+"/none", 0); err == nil || strings.Count(err.Error(), "copying") != 1 {
		t.Errorf("to a place that is not there: %v", err)
	}
	write(t, w, "to/big", "mine")
	if _, err := CopyTree(t.Context(), w, w+"/to", 0); err == nil || strings.Count(err.Error(), "copying") != 1 {
		t.Errorf("to a place where something is: %v", err)
	}
}

// copyRange ends where a file that became shorter ends, and copies itself what the
// kernel does not copy.
func TestCopyRange(t *testing.T) {
	w := tempRoot(t)
	text := strings.Repeat("0123456789", 1000)
	write(t, w, "from", text)
	from, err := os.Open(w + "/from")
	must(t, err)
	defer from.Close()
	for name, flags := range map[string]int{"by the kernel": 0, "by reading and writing": unix.O_APPEND} { // copy_file_range(2): EBADF
		to, err := os.OpenFile(w+"/to "+name, os.O_CREATE|os.O_WRONLY|flags, 0o600)
		must(t, err)
		defer to.Close()
		if err := copyRange(t.Context(), int(from.Fd()), int(to.Fd()), 0, int64(len(text))+99); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(to.Name()); err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := copyRange(ctx, int(from.Fd()), int(from.Fd()), 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("when it is cancelled: %v", err)
	}
	if err := copyBytes(int(from.Fd()), int(from.Fd()), 0, 1); !errors.Is(err, unix.EBADF) {
		t.Errorf("to a file that cannot be written to: %v", err)
	}
}

// Attributes that programs set are copied, and not those by which a layer or the
// kernel steers itself.
func TestCopyXattrs(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "from", "")
	write(t, w, "to", "")
	acl := "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\xd2\x04\x00\x00" + "\x04\x00\x04\x00\xff\xff\xff\xff" +
		"\x10\x00\x04\x00\xff\xff\xff\xff" + "\x20\x00\x04\x00\xff\xff\xff\xff"
	set := map[string]bool{}
	for name, value := range map[string]string{"user.colour": "red", "user.overlay.opaque": "y", "trusted.x": "y", "system.posix_acl_access": acl} {
		set[name] = unix.Setxattr(w+"/from", name, []byte(value), 0) == nil // what the file system, or the user, may not have is left out
	}
	from, err := os.Open(w + "/from")
	must(t, err)
	defer from.Close()
	to, err := os.OpenFile(w+"/to", os.O_RDWR, 0)
	must(t, err)
	defer to.Close()
	copyXattrs(int(from.Fd()), int(to.Fd()))
	for name, want := range map[string]bool{"user.colour": true, "user.overlay.opaque": false, "trusted.x": false, "system.posix_acl_access": true} {
		_, err := unix.Getxattr(w+"/to", name, make([]byte, 100))
		if set[name] && (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// As root, a copy keeps the owner of the original.
func TestRootCopyTreeKeepsOwners(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	w, to := tempRoot(t), tempRoot(t)
	write(t, w, "d/f", "x")
	link(t, "f", w, "d/l")
	names := []string{"/d/f", "/d/l", "/d"}
	for i, name := range names {
		must(t, os.Lchown(w+name, 1000+i, 2000+i))
	}
	if _, err := CopyTree(t.Context(), w, to, 0); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		var st unix.Stat_t
		if err := unix.Lstat(to+name, &st); err != nil || st.Uid != uint32(1000+i) || st.Gid != uint32(2000+i) {
			t.Errorf("%s belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
		}
	}
}
