//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func reviewActions() map[string]Action {
	return map[string]Action{
		"replaces-by-links":  replacesByLinks,
		"changes-everything": changesEverything,
		"forges-marks":       forgesMarks,
	}
}

// replacesByLinks replaces two directories by links, and then writes to the paths
// of their files; and to a file that is a link out.
func replacesByLinks(p *Probe) {
	to := p.Arg("to")
	for _, dir := range []string{p.Arg("first"), p.Arg("second")} {
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		p.Control("replace "+dir, func() error { return errors.Join(os.RemoveAll(dir), os.Symlink(to, dir)) })
		for _, path := range found {
			p.Try("write through "+path, func() error { return os.WriteFile(path, []byte("from inside\n"), 0o644) })
		}
	}
	at := p.In("W", "file")
	p.Control("link to a file", func() error { return os.Symlink(p.Arg("file"), at) })
	p.Try("write through "+at, func() error { return os.WriteFile(at, []byte("from inside\n"), 0o644) })
}

// changesEverything changes the files of a directory, each in another way: through
// a descriptor that was open before, through memory, by another name, by mode.
func changesEverything(p *Probe) {
	dir := p.Arg("dir")
	file := func(name string) string { return filepath.Join(dir, name) }
	before, err := os.OpenFile(file("opened"), os.O_RDONLY, 0)
	p.Control("open", func() error { return err })
	if err == nil {
		defer before.Close()
		p.Try("write through what was open for reading", func() error {
			return os.WriteFile("/proc/self/fd/"+itoa(int(before.Fd())), []byte("from inside\n"), 0o644)
		})
	}
	p.Try("write by name", func() error { return os.WriteFile(file("named"), []byte("from inside\n"), 0o644) })
	p.Try("write through memory", func() error { return intoMemory(file("mapped")) })
	p.Try("write through a link", func() error {
		if err := os.Link(file("linked"), p.In("W", "other-name")); err != nil {
			return err
		}
		return os.WriteFile(p.In("W", "other-name"), []byte("from inside\n"), 0o644)
	})
	p.Try("cut", func() error { return os.Truncate(file("cut"), 1) })
	p.Try("delete", func() error { return os.Remove(file("deleted")) })
	p.Try("change the mode", func() error { return os.Chmod(file("mode"), 0o777) })
	p.Try("replace", func() error {
		return errors.Join(os.WriteFile(p.In("W", "new"), []byte("from inside\n"), 0o644), os.Rename(p.In("W", "new"), file("replaced")))
	})
	p.Try("remove the directory", func() error { return os.RemoveAll(p.Arg("gone")) })
}

// intoMemory writes a byte into a shared mapping of a file.
func intoMemory(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	b[0] = '!'
	return errors.Join(unix.Msync(b, unix.MS_SYNC), unix.Munmap(b))
}

// forgesMarks sets what a layered file system itself uses to mark something as
// deleted, replaced or moved: a later reader of the layer would believe it.
func forgesMarks(p *Probe) {
	dir := p.Arg("dir")
	for _, mark := range []struct{ name, value string }{
		{"opaque", "y"}, {"opaque", "x"}, {"redirect", "/"}, {"metacopy", ""}, {"whiteout", ""}, {"origin", "x"}, {"impure", "y"}, {"nlink", "U+1"},
	} {
		for _, prefix := range []string{"user.overlay.", "trusted.overlay.", "user.overlay.overlay."} {
			for _, path := range []string{dir, filepath.Join(dir, "kept")} {
				p.Try("set "+prefix+mark.name+" of "+path, func() error { return unix.Lsetxattr(path, prefix+mark.name, []byte(mark.value), 0) })
			}
		}
	}
	for _, name := range []string{"kept", "sub"} {
		p.Try("make a device in the place of "+name, func() error {
			from, to := p.In("W", "mark-"+name), filepath.Join(dir, name)
			if err := unix.Mknod(from, unix.S_IFCHR, 0); err != nil {
				return err
			}
			return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		})
		p.Try("leave a device behind "+name, func() error {
			return unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, name), unix.AT_FDCWD, filepath.Join(dir, name)+"2", 1<<2) // RENAME_WHITEOUT
		})
	}
}
