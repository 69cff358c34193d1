//go:build linux

package inside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Limits for what is copied onto a stage: a workspace filled by a hostile command
// must not fill the memory of the machine.
const (
	copiedNames = 20000
	copiedBytes = 128 << 20
	// A larger file is shown read-only instead: mostly probers.
	copiedWhole = 1 << 20
)

// copyWorld copies the world onto the stage, where the player owns it. Nothing in
// it runs any more, and root follows no link that leads out.
func (s *Stage) copyWorld(world *os.Root, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	names, size := 0, int64(0)
	return fs.WalkDir(world.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(world.Name(), name)
		if at == s.Marks || d.IsDir() && s.leftOut(at) {
			return skipEntry(d)
		}
		info, err := world.Lstat(name)
		if err != nil {
			return err
		}
		if names, size = names+1, size+min(info.Size(), copiedWhole); names > copiedNames || size > copiedBytes {
			return fmt.Errorf("there are more than %d names or %d bytes", copiedNames, copiedBytes)
		}
		if err := s.copyOne(world, name, filepath.Join(to, name), info); err != nil {
			return err
		}
		if at == s.Outside { // the directory where the marks are shown
			return fs.SkipDir
		}
		return nil
	})
}

func skipEntry(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (s *Stage) leftOut(path string) bool {
	for _, dir := range s.Leave {
		if path == dir {
			return true
		}
	}
	return false
}

func (s *Stage) copyOne(world *os.Root, name, to string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode.IsDir():
		if err := os.Mkdir(to, mode.Perm()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case mode&fs.ModeSymlink != 0:
		target, err := world.Readlink(name)
		if err := errors.Join(err, os.Symlink(target, to)); err != nil {
			return err
		}
	case mode&fs.ModeNamedPipe != 0:
		if err := unix.Mkfifo(to, uint32(mode.Perm())); err != nil {
			return err
		}
	case mode.IsRegular():
		if err := s.copyFile(world, name, to, info); err != nil {
			return err
		}
	default:
		return nil // sockets and devices are never executed
	}
	if !s.Lower || mode.IsRegular() && info.Size() > copiedWhole {
		return nil
	}
	return os.Lchown(to, s.Player, s.Player)
}

func (s *Stage) copyFile(world *os.Root, name, to string, info fs.FileInfo) error {
	in, err := world.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if info.Size() > copiedWhole {
		return errors.Join(out.Close(), unix.Mount(fmt.Sprintf("/proc/self/fd/%d", in.Fd()), to, "", unix.MS_BIND, ""),
			unix.MountSetattr(unix.AT_FDCWD, to, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}))
	}
	_, err = io.Copy(out, in)
	// The file gets the requested mode, whatever the umask.
	err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
	if err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime()) // make and git compare times
}
