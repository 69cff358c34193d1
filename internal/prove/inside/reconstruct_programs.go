//go:build linux

package inside

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// describeEnd returns how an awaited program ended: a status or a signal.
func describeEnd(err error) string {
	var e *exec.ExitError
	if errors.As(err, &e) {
		if s, ok := e.Sys().(interface {
			Signaled() bool
			Signal() unix.Signal
		}); ok && s.Signaled() {
			return unix.SignalName(s.Signal())
		}
		return strconv.Itoa(e.ExitCode())
	}
	if err != nil {
		return err.Error()
	}
	return "0"
}

// programDeeds execute programs, and files that are not programs.
func programDeeds(p *Probe) []Deed {
	w := deedDir(p.Arg("W"))
	run := func(what, shown string, argv ...string) Deed {
		return Deed{Kind: "program", What: what, Action: "proc.exec", Object: argv[0], Shown: shown, status: describeEnd, do: exec.Command(argv[0], argv[1:]...).Run}
	}
	script := func(name, text string, mode os.FileMode) string {
		_ = os.WriteFile(w.path(name), []byte(text), mode) // a missing script fails when executed
		_ = os.Chmod(w.path(name), mode)
		return w.path(name)
	}
	deeds := []Deed{
		run("a shell", "deed-shell", "/bin/sh", "-c", "exit 0", "deed-shell"),
		run("a program that fails", "deed-fails", "/bin/sh", "-c", "exit 3", "deed-fails"),
		run("a program with words in quotes", "it's \"deed\" & <more>", "/bin/sh", "-c", "exit 0", "it's \"deed\" & <more>"),
		run("a script", "deed-script", script("x-script", "#!/bin/sh\nexit 4\n", 0o755), "deed-script"),
		run("what does not forgive", "deed-loader", dynamicLoader(), "/bin/true", "deed-loader"),
		{Kind: "program", What: "a program that is not there", Action: "proc.exec", Object: w.path("x-none"), do: func() error { return start(w.path("x-none"), "x") }},
		{Kind: "program", What: "a file that is no program", Action: "proc.exec", Denied: true, Object: script("x-plain", "no program\n", 0o644), do: func() error { return start(w.path("x-plain"), "x") }},
		{Kind: "program", What: "a program outside", Action: "proc.exec", Object: p.In("O", "tool"), Denied: true, do: func() error { return start(p.In("O", "tool"), "x") }},
		{Kind: "memfd", What: "a program in memory", Action: "proc.exec", Shown: "deed-memory", status: describeEnd, do: func() error { return inMemory("/bin/true", "deed-memory", 0) }},
		{Kind: "memfd", What: "a sealed program in memory", Action: "proc.exec", Shown: "deed-sealed", status: describeEnd, do: func() error { return inMemory("/bin/true", "deed-sealed", unix.F_SEAL_WRITE|unix.F_SEAL_SEAL) }},
		{Kind: "memfd", What: "a program in memory that fails", Action: "proc.exec", Shown: "deed-false", status: describeEnd, do: func() error { return inMemory("/bin/false", "deed-false", 0) }},
		{Kind: "memfd", What: "a script in memory", Action: "proc.exec", Shown: "deed-lines", status: describeEnd, do: func() error { return inMemory(w.path("x-script"), "deed-lines", 0) }},
	}
	for _, name := range []string{"HUP", "INT", "KILL", "USR1", "TERM"} {
		d := run("a program that "+name+" ends", "deed-"+name, "/bin/sh", "-c", "kill -"+name+" $$", "deed-"+name)
		d.Kind = "signal"
		deeds = append(deeds, d)
	}
	return append(deeds, chainDeeds(w)...)
}

// chainDeeds are programs that execute programs: the record must tell which
// executed which.
func chainDeeds(w deedDir) []Deed {
	var deeds []Deed
	for i, shown := range []string{"deed-1", "deed-2", "deed-3"} {
		d := Deed{Kind: "chain", What: "program " + strconv.Itoa(i+1) + " of a chain", Action: "proc.exec", Object: "/bin/sh", Shown: shown, do: func() error { return nil }}
		if i > 0 {
			d.Parent = deeds[i-1].Shown
		}
		deeds = append(deeds, d)
	}
	_ = os.WriteFile(w.path("x-2"), []byte("/bin/sh -c 'exit 0' deed-3\nexit 0\n"), 0o644)
	_ = os.WriteFile(w.path("x-1"), []byte("/bin/sh "+w.path("x-2")+" deed-2\nexit 0\n"), 0o644)
	deeds[0].do = exec.Command("/bin/sh", w.path("x-1"), "deed-1").Run
	return deeds
}

func dynamicLoader() string {
	for _, path := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

// start executes a program and waits for it; the error is that of the execution.
func start(path string, args ...string) error {
	err := exec.Command(path, args...).Run()
	var e *exec.ExitError
	if errors.As(err, &e) {
		return nil
	}
	return err
}

// inMemory executes a copy of a program that is not on disk, with seals.
func inMemory(program, shown string, seals int) error {
	fd, err := unix.MemfdCreate("deed", unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), "memfd:deed")
	defer to.Close()
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(to.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return err
	}
	return exec.Command("/proc/self/fd/"+strconv.Itoa(fd), shown).Run()
}

// archiveDeeds unpack archives with the tar of the system.
func archiveDeeds(p *Probe) []Deed {
	tar, err := exec.LookPath("tar")
	if err != nil {
		return nil
	}
	unpack := func(name string, entry func(io.Writer), flags ...string) func() error {
		return func() error {
			path := p.In("W", name)
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			entry(f)
			f.Close()
			c := exec.Command(tar, append(flags, "-xf", path)...)
			c.Dir = p.Arg("W")
			return c.Run()
		}
	}
	made := func(error) string { return "" } // the exit status of tar does not matter
	deed := func(what, object string, denied bool, do func() error) Deed {
		return Deed{Kind: "archive", What: what, Action: "file.write", Object: object, Denied: denied, do: do, status: made}
	}
	plain := deed("unpacked", p.In("W", "t-dir", "file"), false, unpack("t1.tar", tarOf("t-dir/file", "")))
	climbs := deed("unpacked beside", p.In("S", "sibling", "t-slip"), true, unpack("t2.tar", tarOf(pathUp(p)+"/sibling/t-slip", ""), "-P"))
	absolute := deed("unpacked by an absolute name", p.In("H", "t-home"), false, unpack("t3.tar", tarOf(p.In("H", "t-home"), ""), "-P"))
	absolute.Kept = true
	linked := deed("unpacked through a link", p.In("O", "t-link"), true, unpack("t4.tar", tarOf("t-way/t-link", p.Arg("O")), "-P", "--keep-directory-symlink"))
	for _, d := range []*Deed{&climbs, &linked} {
		d.Error = "ENOENT"
	}
	return []Deed{plain, climbs, absolute, linked}
}

// tarOf writes an archive with a file, and if link is set, before it a link to a
// directory in place of the file's.
func tarOf(name, link string) func(io.Writer) {
	return func(out io.Writer) {
		t := tar.NewWriter(out)
		if link != "" {
			_ = t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: filepath.Dir(name), Linkname: link, Mode: 0o777})
		}
		_ = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 1})
		_, _ = t.Write([]byte("x"))
		_ = t.Close() // an incomplete archive unpacks nothing, and nothing is recorded of it
	}
}

// pathUp returns the way from W to S.
func pathUp(p *Probe) string {
	rest := strings.TrimPrefix(p.Arg("W"), p.Arg("S")+"/")
	return strings.TrimSuffix(strings.Repeat("../", strings.Count(rest, "/")+1), "/")
}
