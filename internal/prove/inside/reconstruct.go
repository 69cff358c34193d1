//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Deed is one action as the process that did it knows it: what a record has to
// tell. Each is about an object of its own.
type Deed struct {
	Kind   string `json:"kind"`             // file, link, archive, …
	What   string `json:"what"`             // in words
	Action string `json:"action"`           // of the event; several with | between if either tells it
	Object string `json:"object"`           // as found: a path is absolute and without links
	Error  string `json:"error,omitempty"`  // that came back
	Denied bool   `json:"denied,omitempty"` // by the boundary
	Full   bool   `json:"full,omitempty"`   // a read of what is in view: only level full promises it
	Look   bool   `json:"look,omitempty"`   // a stat(2), which is seen only with /dev/fuse
	Exit   string `json:"exit,omitempty"`   // of a program: its status, or the signal that ended it
	Parent string `json:"parent,omitempty"` // of a program: the object of the deed that executed it
	Shown  string `json:"shown,omitempty"`  // an argument that identifies a program
	Other  string `json:"other,omitempty"`  // the second path
	Kept   bool   `json:"kept,omitempty"`   // belongs to the private directory that it is in
	Quiet  bool   `json:"quiet,omitempty"`  // the event has no error: what came back must fit Denied instead

	Answered bool   `json:"answered,omitempty"` // where it is denied, an answer may come back all the same, which leads nowhere
	Layer    string `json:"layer,omitempty"`    // that denies
	Main     string `json:"main,omitempty"`     // for a tool call: an argument of the program that it is joined with

	By   map[string]string `json:"by,omitempty"`   // details that identify its event
	Says map[string]string `json:"says,omitempty"` // details that its event must have

	do     func() error
	status func(error) string
}

// DeedNote is the name of the note that has a deed.
const DeedNote = "deed"

// reconstruct does what needs neither a network nor an answer.
func reconstruct(p *Probe) {
	deeds := append(fileDeeds(p), nameDeeds(p)...)
	deeds = append(deeds, linkDeeds(p)...)
	deeds = append(deeds, outsideDeeds(p)...)
	deeds = append(deeds, protectedDeeds(p)...)
	deeds = append(deeds, privateDeeds(p)...)
	deeds = append(deeds, programDeeds(p)...)
	deeds = append(deeds, archiveDeeds(p)...)
	deeds = append(deeds, socketDeeds(p)...)
	tellAll(p, append(deeds, callDeeds()...))
}

// tellAll does one deed after the other, and reports the result of each.
func tellAll(p *Probe, deeds []Deed) {
	for _, d := range deeds {
		err := d.do()
		d.Error = ErrnoName(err)
		if d.status != nil {
			d.Error, d.Exit = "", d.status(err)
		}
		if err != nil && d.status == nil && (d.Quiet || d.Error == "") {
			d.Error = err.Error()
		}
		line, err := json.Marshal(d)
		if err != nil {
			line = []byte(err.Error())
		}
		p.Note(DeedNote, line)
	}
	p.Try("do what is to be told", func() error { return nil })
}

// deedDir makes deeds with names below a directory.
type deedDir string

func (dir deedDir) path(name string) string { return filepath.Join(string(dir), name) }

// open opens a file and closes it.
func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// fileDeeds change what is in the workspace.
func fileDeeds(p *Probe) []Deed {
	w, given := deedDir(p.Arg("W")), deedDir(p.In("W", "given"))
	file := func(what, action, object string, do func(path string) error) Deed {
		return Deed{Kind: "file", What: what, Action: action, Object: object, do: func() error { return do(object) }}
	}
	flags := func(f int) func(string) error { return func(path string) error { return open(path, f) } }
	return []Deed{
		file("a new file", "file.write", w.path("f-new"), flags(unix.O_WRONLY|unix.O_CREAT)),
		file("a file anew", "file.write", given.path("a"), flags(unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)),
		file("added to a file", "file.write", given.path("b"), flags(unix.O_WRONLY|unix.O_APPEND)),
		file("read and written", "file.write", given.path("c"), flags(unix.O_RDWR)),
		file("emptied while it is opened for reading", "file.write", given.path("d"), flags(unix.O_RDONLY|unix.O_TRUNC)),
		file("cut by its name", "file.truncate", given.path("e"), func(path string) error { return unix.Truncate(path, 0) }),
		file("a new directory", "file.mkdir", w.path("f-dir"), func(path string) error { return unix.Mkdir(path, 0o755) }),
		file("an empty directory removed", "file.unlink", given.path("empty"), func(path string) error {
			return errors.Join(unix.Mkdir(path, 0o755), unix.Rmdir(path))
		}),
		file("a file removed", "file.unlink", given.path("f"), unix.Unlink),
		file("a mode", "file.chmod", given.path("g"), func(path string) error { return unix.Chmod(path, 0o755) }),
		file("a mode by descriptor", "file.chmod", given.path("h"), func(path string) error {
			return withFile(path, func(fd int) error { return unix.Fchmod(fd, 0o600) })
		}),
		file("an owner", "file.chown", given.path("i"), func(path string) error { return unix.Chown(path, os.Getuid(), -1) }),
		file("an attribute", "file.xattr", given.path("j"), func(path string) error { return unix.Setxattr(path, "user.x", []byte("y"), 0) }),
		file("an attribute by descriptor", "file.xattr", given.path("k"), func(path string) error {
			return withFile(path, func(fd int) error { return unix.Fremovexattr(fd, "user.none") })
		}),
		file("a pipe", "file.mknod", w.path("f-pipe"), func(path string) error { return unix.Mkfifo(path, 0o600) }),
		file("a socket file", "file.mknod", w.path("f-socket"), func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) }),
		file("a file moved", "file.rename", given.path("l"), func(path string) error { return unix.Rename(path, w.path("f-moved")) }),
		file("two files exchanged", "file.rename", given.path("m"), func(path string) error { return exchange(path, given.path("n")) }),
		{Kind: "file", What: "a file read", Action: "file.open", Object: given.path("o"), Full: true, do: func() error { return open(given.path("o"), unix.O_RDONLY) }},
		{Kind: "file", What: "a directory listed", Action: "file.open", Object: given.path("dir"), Full: true, do: func() error { return open(given.path("dir"), unix.O_RDONLY|unix.O_DIRECTORY) }},
		{Kind: "file", What: "a program's library read", Action: "file.open", Object: "/etc/passwd", Full: true, do: func() error { return open("/etc/passwd", unix.O_RDONLY) }},
	}
}

func withFile(path string, f func(fd int) error) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// nameDeeds fail in the workspace for reasons of their own, which are not
// denials.
func nameDeeds(p *Probe) []Deed {
	w, given := deedDir(p.Arg("W")), deedDir(p.In("W", "given"))
	dir := given.path("dir")
	fail := func(what, action, object string, do func(path string) error) Deed {
		return Deed{Kind: "failure", What: what, Action: action, Object: object, do: func() error { return do(object) }}
	}
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'n'
	}
	return []Deed{
		fail("a directory that is there", "file.mkdir", given.path("p"), func(path string) error { return unix.Mkdir(path, 0o755) }),
		fail("a new file that is there", "file.write", given.path("q"), func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }),
		fail("nothing removed", "file.unlink", w.path("n-none"), unix.Unlink),
		fail("a directory removed as a file", "file.unlink", dir, unix.Unlink),
		fail("a directory that is not empty", "file.unlink", p.In("W", "given"), unix.Rmdir),
		fail("a directory written", "file.write", given.path("dir2"), func(path string) error { return open(path, unix.O_WRONLY) }),
		fail("below what is not there", "file.mkdir", w.path("n-missing/x"), func(path string) error { return unix.Mkdir(path, 0o755) }),
		fail("below a file", "file.write", given.path("r/x"), func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) }),
		fail("a name too long", "file.write", w.path(string(long)), func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) }),
		fail("a file moved over a directory", "file.rename", given.path("s"), func(path string) error { return unix.Rename(path, dir) }),
		fail("a file moved where one may not be", "file.rename", given.path("t"), func(path string) error {
			return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, given.path("u"), unix.RENAME_NOREPLACE)
		}),
		fail("exchanged with nothing", "file.rename", given.path("v"), func(path string) error { return exchange(path, w.path("n-nothing")) }),
		fail("a directory moved into itself", "file.rename", given.path("dir3"), func(path string) error { return unix.Rename(path, path+"/x") }),
		fail("a link over a file", "file.link", given.path("w"), func(path string) error { return unix.Link(given.path("o"), path) }),
		fail("a link of a directory", "file.link", w.path("n-dirlink"), func(path string) error { return unix.Link(dir, path) }),
		fail("a symbolic link over a file", "file.symlink", given.path("x"), func(path string) error { return unix.Symlink("o", path) }),
		fail("links that lead to themselves", "file.write", w.path("n-loop"), func(path string) error {
			return errors.Join(ignore(unix.Symlink("n-loop", path)), open(path, unix.O_WRONLY))
		}),
	}
}

func ignore(error) error { return nil }
