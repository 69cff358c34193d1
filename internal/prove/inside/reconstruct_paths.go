//go:build linux

package inside

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// linkDeeds use links, dots and other spellings.
func linkDeeds(p *Probe) []Deed {
	w, given, o := deedDir(p.Arg("W")), deedDir(p.In("W", "given")), deedDir(p.Arg("O"))
	// through makes a link and writes, or reads, through it.
	through := func(name, to string, flags int) func() error {
		return func() error { return errors.Join(unix.Symlink(to, w.path(name)), open(w.path(name), flags)) }
	}
	link := func(d Deed) Deed { d.Kind = "link"; return d }
	return []Deed{
		link(Deed{What: "a symbolic link", Action: "file.symlink", Object: w.path("l-new"), do: func() error { return unix.Symlink("given/o", w.path("l-new")) }}),
		link(Deed{What: "a further name", Action: "file.link", Object: w.path("l-hard"), do: func() error { return unix.Link(given.path("o"), w.path("l-hard")) }}),
		link(Deed{What: "written through a link", Action: "file.write", Object: given.path("l1"), do: through("l-in", "given/l1", unix.O_WRONLY)}),
		link(Deed{What: "written through a link to outside", Action: "file.write", Object: o.path("l2"), Denied: true, do: through("l-out", o.path("l2"), unix.O_WRONLY|unix.O_CREAT)}),
		link(Deed{What: "read through a link to outside", Action: "file.open|file.lookup", Object: o.path("l3"), Denied: true, do: through("l-read", o.path("l3"), unix.O_RDONLY)}),
		link(Deed{What: "read through a link to a secret", Action: "file.open", Object: p.In("W", "sub", ".env"), Denied: true, do: through("l-env", "sub/.env", unix.O_RDONLY)}),
		link(Deed{What: "a link that may not be followed", Action: "file.write", Object: w.path("l-not"), do: through("l-not", "given/o", unix.O_WRONLY|unix.O_NOFOLLOW)}),
		link(Deed{What: "a further name of what is outside", Action: "file.link", Object: w.path("l-far"), Denied: true, do: func() error { return unix.Link(o.path("l4"), w.path("l-far")) }}),
		link(Deed{What: "by dots", Action: "file.write", Object: given.path("l5"), do: func() error { return open(string(w)+"/given/../given/./l5", unix.O_WRONLY) }}),
		link(Deed{What: "by the working directory of /proc", Action: "file.write", Object: given.path("l6"), do: func() error { return open("/proc/self/root"+given.path("l6"), unix.O_WRONLY) }}),
		link(Deed{What: "by a descriptor", Action: "file.write", Object: given.path("l7"), do: func() error {
			return withFile(given.path("l7"), func(fd int) error { return open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_TRUNC) })
		}}),
		link(Deed{What: "outside by the root of /proc", Action: "file.open|file.lookup", Object: o.path("l8"), Denied: true, do: func() error { return open("/proc/self/root"+o.path("l8"), unix.O_RDONLY) }}),
		link(Deed{What: "outside by dots", Action: "file.open|file.lookup", Object: o.path("l9"), Denied: true, do: func() error { return open(string(w)+"/../../../../../../../../../.."+o.path("l9"), unix.O_RDONLY) }}),
	}
}

// outsideDeeds target what is not in view, and what is there only for reading.
func outsideDeeds(p *Probe) []Deed {
	o, w, s, r := deedDir(p.Arg("O")), deedDir(p.In("W", "given")), deedDir(p.In("S", "sibling")), deedDir(p.Arg("R"))
	var out []Deed
	read := func(what, path string) {
		out = append(out, Deed{Kind: "read refused", What: what, Action: "file.open|file.lookup", Object: path, Denied: true, do: func() error { return open(path, unix.O_RDONLY) }})
	}
	look := func(what, path string, do func(path string) error) {
		out = append(out, Deed{Kind: "look refused", What: what, Action: "file.open|file.lookup", Object: path, Denied: true, do: func() error { return do(path) }})
	}
	change := func(what, action, path string, do func(path string) error) {
		out = append(out, Deed{Kind: "change refused", What: what, Action: action, Object: path, Denied: true, do: func() error { return do(path) }})
	}
	create := func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) }
	read("a file outside", o.path("o1"))
	read("a directory outside", string(o)+"/dir")
	read("a secret of the project beside", s.path(".env"))
	read("the project beside", s.path("src"))
	read("what a home has", p.In("H", "notes", "private.txt"))
	read("a secret of the workspace", p.In("W", ".env"))
	read("what nobody has", "/srv-of-nobody/file")
	look("a status", o.path("o2"), func(path string) error { var st unix.Stat_t; return unix.Lstat(path, &st) })
	out[len(out)-1].Look = true // without /dev/fuse stat(2) alone is not seen
	look("whether it may be read", o.path("o3"), func(path string) error { return unix.Access(path, unix.R_OK) })
	look("a working directory", o.path("dir2"), unix.Chdir)
	look("where a link leads", o.path("o4"), func(path string) error { _, err := unix.Readlink(path, make([]byte, 9)); return err })
	change("a new file outside", "file.write", o.path("c1"), create)
	change("a file outside", "file.write", o.path("c2"), func(path string) error { return open(path, unix.O_WRONLY|unix.O_APPEND) })
	change("a file outside removed", "file.unlink", o.path("c3"), unix.Unlink)
	change("a file outside moved", "file.rename", o.path("c4"), func(path string) error { return unix.Rename(path, o.path("c4b")) })
	change("a directory outside", "file.mkdir", o.path("c5"), func(path string) error { return unix.Mkdir(path, 0o755) })
	change("a mode outside", "file.chmod", o.path("c6"), func(path string) error { return unix.Chmod(path, 0o777) })
	change("a file outside cut", "file.truncate", o.path("c7"), func(path string) error { return unix.Truncate(path, 0) })
	change("a link outside", "file.symlink", o.path("c8"), func(path string) error { return unix.Symlink("x", path) })
	change("in the project beside", "file.write", s.path("c9"), create)
	change("moved out", "file.rename", w.path("c10"), func(path string) error { return unix.Rename(path, o.path("c10")) })
	change("a new file where only reading is allowed", "file.write", r.path("c11"), create)
	change("a file removed there", "file.unlink", r.path("c12"), unix.Unlink)
	change("a file moved there", "file.rename", r.path("c13"), func(path string) error { return unix.Rename(path, r.path("c13b")) })
	change("a mode there", "file.chmod", r.path("c14"), func(path string) error { return unix.Chmod(path, 0o4755) })
	change("a file added to there", "file.write", r.path("c15"), func(path string) error { return open(path, unix.O_WRONLY|unix.O_APPEND) })
	return out
}

// protectedDeeds target what the host would execute.
func protectedDeeds(p *Probe) []Deed {
	git := deedDir(p.In("W", ".git"))
	var out []Deed
	try := func(what, action, name string, do func(path string) error) {
		path := git.path(name)
		out = append(out, Deed{Kind: "protected", What: what, Action: action, Object: path, Denied: true, do: func() error { return do(path) }})
	}
	try("a new hook", "file.write", "hooks/pre-commit", func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) })
	try("a directory of hooks", "file.mkdir", "hooks/d", func(path string) error { return unix.Mkdir(path, 0o755) })
	try("a hook removed", "file.unlink", "hooks/update", unix.Unlink)
	try("the hooks moved", "file.rename", "hooks", func(path string) error { return unix.Rename(path, path+".old") })
	try("the configuration removed", "file.unlink", "config", unix.Unlink)
	config := git.path("config")
	return append(out, Deed{Kind: "protected", What: "the configuration, in a copy", Action: "file.write", Object: config, Kept: true,
		do: func() error { return open(config, unix.O_WRONLY|unix.O_APPEND) }})
}

// privateDeeds change what is lost with the run.
func privateDeeds(p *Probe) []Deed {
	h := deedDir(p.Arg("H"))
	var out []Deed
	try := func(what, action, path string, do func(path string) error) {
		out = append(out, Deed{Kind: "private", What: what, Action: action, Object: path, Kept: true, do: func() error { return do(path) }})
	}
	create := func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) }
	try("a file of the home", "file.write", h.path("p1"), create)
	try("what a shell reads", "file.write", h.path(".bashrc"), func(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND) })
	try("a directory of the home", "file.mkdir", h.path("p2"), func(path string) error { return unix.Mkdir(path, 0o755) })
	try("a name of the home", "file.rename", h.path("p3"), func(path string) error { return errors.Join(create(path), unix.Rename(path, h.path("p3b"))) })
	try("a link of the home", "file.symlink", h.path("p4"), func(path string) error { return unix.Symlink("p1", path) })
	try("a file of the home removed", "file.unlink", h.path("p5"), func(path string) error { return errors.Join(create(path), unix.Unlink(path)) })
	try("a temporary file", "file.write", "/tmp/holdfast-deed", func(path string) error { return errors.Join(create(path), unix.Unlink(path)) })
	try("a temporary directory", "file.mkdir", "/var/tmp/holdfast-deed", func(path string) error { return errors.Join(unix.Mkdir(path, 0o755), unix.Rmdir(path)) })
	// Below a directory that the run has made itself.
	out = append(out, Deed{Kind: "read refused", What: "below a directory that was made first", Action: "file.open|file.lookup", Object: h.path(".docker/config.json"), Denied: true,
		do: func() error {
			return errors.Join(ignore(unix.Mkdir(h.path(".docker"), 0o755)), open(h.path(".docker/config.json"), unix.O_RDONLY))
		}})
	return out
}
