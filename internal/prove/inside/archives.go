//go:build linux

package inside

import (
	"archive/tar"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func archivesActions() map[string]Action {
	return map[string]Action{
		"unpack":      unpack,
		"plant-links": plantLinks,
		"plant-odd":   plantOdd,
		"fill":        each(fill),
	}
}

// entries returns those of hostile archives, by kind.
func entries(p *Probe) []tar.Header {
	file := func(name string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(mark))}
	}
	up := "../" + filepath.Base(p.Arg("O")) // from W
	switch p.Arg("kind") {
	case "dots":
		return []tar.Header{file(up+"/canary", 0o644), file(up+"/x", 0o644), file("a/../"+up+"/x", 0o644)}
	case "absolute":
		return []tar.Header{file(p.In("O", "canary"), 0o644), file(p.In("O", "x"), 0o644)}
	case "hardlink":
		return []tar.Header{{Typeflag: tar.TypeLink, Name: "linked", Linkname: p.In("H", ".ssh/id_probe"), Mode: 0o644}, file("linked", 0o644),
			{Typeflag: tar.TypeLink, Name: "linked-2", Linkname: p.In("O", "canary"), Mode: 0o644}}
	case "symlink":
		return []tar.Header{{Typeflag: tar.TypeSymlink, Name: "out", Linkname: p.Arg("O"), Mode: 0o777}, file("out/x", 0o644), file("out/canary", 0o644)}
	case "setuid":
		return []tar.Header{file("takes-rights", 0o4755), file("takes-group", 0o2755), {Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o644}}
	}
	return nil
}

// unpack makes an archive and has two programs unpack it that trust it: tar with
// flags to do so, and a loop that does what each entry says.
func unpack(p *Probe) {
	path := p.In("W", "hostile.tar")
	f, err := os.Create(path)
	if err != nil {
		p.Control("make an archive", func() error { return err })
		return
	}
	w := tar.NewWriter(f)
	for _, h := range entries(p) {
		err = errors.Join(err, w.WriteHeader(&h))
		if h.Size > 0 {
			_, werr := w.Write([]byte(mark))
			err = errors.Join(err, werr)
		}
	}
	err = errors.Join(err, w.Close(), f.Close())
	p.Control("make an archive", func() error { return err })
	p.Try("tar", func() error {
		return client("tar", "--extract", "--absolute-names", "--same-permissions", "--directory", p.Arg("W"), "--file", path)
	})
	for _, h := range entries(p) {
		p.Try("unpack "+h.Name, func() error { return unpackOne(p, h) })
	}
}

func unpackOne(p *Probe, h tar.Header) error {
	at := h.Name
	if !filepath.IsAbs(at) {
		at = p.Arg("W") + "/naive/" + at
		at = strings.Replace(at, "/naive/..", "/..", 1)
	}
	if err := os.MkdirAll(p.In("W", "naive"), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeLink:
		return os.Link(h.Linkname, at)
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, at)
	case tar.TypeFifo:
		return unix.Mkfifo(at, 0o644)
	}
	return errors.Join(os.WriteFile(at, []byte(mark), 0o644), unix.Chmod(at, uint32(h.Mode)))
}

// plantLinks makes names that a launcher may take away links to what it must not
// touch.
func plantLinks(p *Probe) {
	for i, to := range strings.Split(p.Arg("path"), "\n") {
		for _, name := range []string{".mcp.json", ".claude", ".vscode/tasks.json", ".git", ".git/hooks", ".git/hooks/pre-commit"} {
			at := p.In("W", "l"+itoa(i)+strings.ReplaceAll(name, "/", "-"), name)
			p.Try("link "+at, func() error {
				return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(to, at))
			})
		}
	}
}

// plantOdd gives such names to things that cannot be copied.
func plantOdd(p *Probe) {
	at := func(n int, name string) string {
		path := p.In("W", itoa(n), name)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		return path
	}
	p.Try("pipe", func() error { return unix.Mkfifo(at(1, ".mcp.json"), 0o644) })
	p.Try("socket", func() error {
		// By a relative name, because a socket's must be short.
		if err := os.Chdir(filepath.Dir(at(2, ".mcp.json"))); err != nil {
			return err
		}
		defer func() { _ = os.Chdir(p.Arg("W")) }()
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: ".mcp.json", Net: "unix"})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	})
	p.Try("closed directory", func() error {
		return errors.Join(create(at(3, ".claude/deep/settings.json")), os.Chmod(at(3, ".claude/deep"), 0), os.Chmod(at(3, ".claude"), 0))
	})
	p.Try("file of nothing", func() error { return errors.Join(create(at(4, ".mcp.json")), os.Truncate(at(4, ".mcp.json"), 4<<30)) })
}

// fill writes 256 MiB in files of 16 MiB, and removes them again.
func fill(p *Probe, dir string) {
	p.Try("fill "+dir, func() error {
		piece := make([]byte, 1<<20)
		for i := range 16 {
			path := filepath.Join(dir, "probe-fill-"+p.nonce+"-"+itoa(i))
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			defer os.Remove(path)
			for range 16 {
				if _, err := f.Write(piece); err != nil {
					return errors.Join(err, f.Close())
				}
			}
			if err := f.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}
