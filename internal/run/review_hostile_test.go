//go:build linux

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// hostile does inside what could reach through a view, or forge the marks of the
// layer that the review reads. It prints what worked and should not have.
func hostile() int {
	must := func(what string, err error) {
		if err == nil {
			fmt.Println("worked:", what)
		}
	}
	for _, name := range []string{"opaque", "redirect", "metacopy", "origin", "impure", "nlink", "upper", "protattr", "whiteout", "xwhiteouts", "overlay.opaque"} {
		for _, prefix := range []string{"user.overlay.", "trusted.overlay."} {
			for _, on := range []string{"dir", "file"} {
				unix.Setxattr(on, prefix+name, []byte("y"), 0) // looked for from outside
			}
		}
	}
	unix.Setxattr("file", "user.note", []byte("changed"), 0)
	unix.Setxattr("prog", "security.capability", []byte{0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0)
	must("a whiteout by hand", unix.Mknod("white", unix.S_IFCHR, 0))
	must("a device", unix.Mknod("device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	must("a rename that leaves a whiteout", unix.Renameat2(unix.AT_FDCWD, "dir/a", unix.AT_FDCWD, "dir/a3", unix.RENAME_WHITEOUT))
	unix.Renameat2(unix.AT_FDCWD, "file", unix.AT_FDCWD, "prog", unix.RENAME_EXCHANGE)
	unix.Link("dir/deep/b", "hard")
	os.WriteFile("hard", []byte("through another name\n"), 0o644)
	os.WriteFile("link", []byte("through a link\n"), 0o644)
	if f, err := os.OpenFile("vendor/v", os.O_RDWR, 0); err == nil {
		if m, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			m[0] = 'X'
			unix.Msync(m, unix.MS_SYNC)
		}
		if from, err := os.Open("node_modules/x/i.js"); err == nil {
			unix.IoctlFileClone(int(f.Fd()), int(from.Fd()))
			f.Truncate(0)
			unix.Fallocate(int(from.Fd()), 0, 0, 1<<20)
		}
		unix.IoctlSetInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x10)
	}
	// A descriptor from before the copy still shows the original; it must not write to
	// it.
	if f, err := os.Open(".git/HEAD"); err == nil {
		os.WriteFile(".git/HEAD", []byte("changed\n"), 0o644)
		w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			w.WriteString("changed by /proc\n")
		}
		handle, mount, err := unix.NameToHandleAt(int(f.Fd()), "", unix.AT_EMPTY_PATH)
		if err == nil {
			_, err = unix.OpenByHandleAt(mount, handle, unix.O_RDWR)
			must("a handle", err)
		}
	}
	must("a mount", unix.Mount("none", "dir", "tmpfs", 0, ""))
	must("another mount of the layers", unix.Mount("none", "dir", "overlay", 0, "lowerdir=/,upperdir=/.holdfast/review/upper,workdir=/.holdfast/review/work"))
	must("taking the view away", unix.Unmount(".", unix.MNT_DETACH))
	must("writable from read-only", unix.Mount("", ".", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	must("the launch's own place", unix.Access("/.holdfast", unix.F_OK))
	must("the storage beside the workspace", unix.Access("../state", unix.F_OK))
	deep := "."
	for range 300 {
		deep += "/d"
		if err := os.Mkdir(deep, 0o755); err != nil {
			break
		}
	}
	os.Symlink("/etc/passwd", "leave")
	os.WriteFile("name\nwith\x1b[31m\xff", nil, 0o000)
	os.Mkdir("shut", 0o000)
	os.Chmod("dir/deep", 0o000)
	unix.Mkfifo("pipe", 0o666)
	os.Chmod(".", 0o000)
	return 0
}

// TestReviewHoldsAgainstAHostileProgram looks from outside at what a hostile
// program left: nothing in the tree, and no mark in the layer that only the kernel
// may set.
func TestReviewHoldsAgainstAHostileProgram(t *testing.T) {
	for _, view := range views {
		t.Run(string(view), func(t *testing.T) {
			task := newReview(t, view)
			w := task.Plan.Workspace
			task.Argv = []string{task.Executable, "hostile"}
			task.Plan.Paths = []policy.PathRule{{Path: task.Executable, Access: policy.Read}}
			var out strings.Builder
			task.Streams.Out, task.Streams.Err = &out, &out
			before := fingerprint(t, w)
			r, err := task.Run(t.Context())
			if err != nil || r.Exit.Status() != 0 || out.Len() > 0 {
				t.Errorf("got %+v, %v, %s", r.Exit, err, &out)
			}
			same(t, before, fingerprint(t, w))
			if r.Viewed == nil || r.Viewed.Dir == "" {
				t.Fatalf("nothing waits: %+v", r.Viewed)
			}
			upper := filepath.Join(r.Viewed.Dir, "upper")
			noForgedMarks(t, upper, view == policy.ViewOverlay)
			if got, err := os.ReadFile(filepath.Join(r.Viewed.Dir, "base", ".git", "HEAD")); err != nil || string(got) != "ref: refs/heads/main\n" {
				t.Errorf("the original of .git/HEAD is %q, %v", got, err)
			}
			unlockAll(t, upper)
		})
	}
}

// unlockAll makes the test's directory removable by the user who runs the test.
func unlockAll(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			os.Chmod(path, 0o700)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// noForgedMarks fails for marks of overlayfs that a program has set. In a copy such
// attributes mean nothing.
func noForgedMarks(t *testing.T, upper string, layer bool) {
	t.Helper()
	err := filepath.WalkDir(upper, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && errors.Is(err, fs.ErrPermission) {
			os.Chmod(path, 0o700)
			noForgedMarks(t, path, layer)
			return nil
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFCHR && filepath.Base(path) != "a" && filepath.Base(path) != "b" {
			t.Errorf("%s is a device or a whiteout", path)
		}
		if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			t.Errorf("%s has mode %o", path, st.Mode)
		}
		list := make([]byte, 8192)
		n, err := unix.Llistxattr(path, list)
		if err != nil {
			return nil
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
			value := make([]byte, 256)
			m, err := unix.Lgetxattr(path, name, value)
			if strings.HasPrefix(name, "trusted.") || strings.HasPrefix(name, "security.capability") {
				t.Errorf("%s has %s", path, name)
			}
			if own := layer && strings.HasPrefix(name, "user.overlay.") && !strings.HasPrefix(name, "user.overlay.overlay."); own && err == nil && string(value[:m]) == "y" &&
				name != "user.overlay.impure" && name != "user.overlay.uuid" {
				t.Errorf("%s has %s=%q", path, name, value[:m])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
