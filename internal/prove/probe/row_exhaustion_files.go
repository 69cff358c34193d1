//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hostFiles are rows of what the kernel keeps with a file and that stays, or
// holds up others, though no byte of the file changes.
func hostFiles() []Row {
	lock := func(id, title, kind, man string) Row {
		return Row{ID: id, Kind: Sandbox, Title: title, Refs: []string{man},
			Files: map[string]string{"R/shown": "shown\n"}, Options: Options{Read: []string{"R/shown"}},
			Residual: "the kernel asks nobody whether a file that may be read may be locked (flock(2), fcntl(2)); it is let go when the run ends",
			Action:   "hold-lock", Args: []string{"file=R/shown", "kind=" + kind}}
	}
	return []Row{
		{ID: "RES-301", Kind: Sandbox, Title: "a file of the workspace is marked, so that backups leave it out and copies of it differ",
			Refs: []string{"ioctl_iflags(2)", "ioctl_xfs_fsgetxattr(2)", "file_setattr(2)"}, Accept: append([]string{"ENOTTY"}, Denials...),
			Files: map[string]string{"W/marked": "marked\n"}, Setup: rememberMarks, Oracle: marksChanged,
			Action: "mark-file", Args: []string{"file=W/marked"}},
		lock("RES-302", "an exclusive lock is held on a file that may only be read, so that programs outside wait for it", "flock", "flock(2)"),
		lock("RES-302b", "a part of a file that may only be read is locked, so that programs outside cannot write it", "fcntl", "fcntl(2) F_OFD_SETLK"),
	}
}

// fileMarks are the flags of W/marked.
func fileMarks(w *World) (string, error) {
	f, err := os.Open(filepath.Join(w.W, "marked"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		return "", fmt.Errorf("the file system has no flags of files: %w", err)
	}
	return fmt.Sprintf("%#x", flags), err
}

func rememberMarks(w *World) (err error) {
	w.remembered, err = fileMarks(w)
	return err
}

func marksChanged(w *World, _ Observation) []string {
	now, err := fileMarks(w)
	switch {
	case err != nil:
		return []string{"the flags cannot be read: " + err.Error()}
	case now != w.remembered:
		return []string{"the flags of W/marked were " + w.remembered + " and are " + now}
	}
	return nil
}
