//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func credentialsActions() map[string]Action {
	return map[string]Action{
		"find-secrets": func(p *Probe) {
			p.Control("read W/ok.txt", func() error { _, err := os.ReadFile(p.In("W", "ok.txt")); return err })
			each(findSecret)(p)
		},
		"open-secrets":  each(openSecret),
		"append-secret": each(appendSecret),
	}
}

// findSecret tries to read one file by every name that leads to it.
func findSecret(p *Probe, path string) {
	p.Read("read "+path, func() ([]byte, error) { return os.ReadFile(path) })
	p.Read("read /proc/self/root"+path, func() ([]byte, error) { return os.ReadFile("/proc/self/root" + path) })
	p.Read("read through a link: "+path, func() ([]byte, error) {
		link := p.In("W", "link-to-it")
		_ = os.Remove(link)
		if err := os.Symlink(path, link); err != nil {
			return nil, err
		}
		defer os.Remove(link)
		return os.ReadFile(link)
	})
	p.Read("read from the working directory: "+path, func() ([]byte, error) {
		up := strings.Repeat("../", strings.Count(p.Arg("W"), "/"))
		return os.ReadFile(p.In("W") + "/" + up + path)
	})
	if p.Arg("names") == "" { // in a workspace the names themselves are not secret
		findName(p, path)
	}
	p.Read("find by a pattern: "+path, func() ([]byte, error) { return readPattern(path) })
}

func findName(p *Probe, path string) {
	p.Read("list the parent of "+path, func() ([]byte, error) {
		entries, err := os.ReadDir(filepath.Dir(path))
		if err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == filepath.Base(path) }) {
			err = unix.ENOENT
		}
		return nil, err
	})
}

// readPattern does what a shell does with path if its last two names end in a
// wildcard.
func readPattern(path string) ([]byte, error) {
	dir, base := filepath.Split(path)
	up, parent := filepath.Split(filepath.Clean(dir))
	found, err := filepath.Glob(filepath.Join(up, parent[:min(5, len(parent))]+"*", base[:min(3, len(base))]+"*"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, unix.ENOENT
	}
	var all []byte
	for _, f := range found {
		if info, err := os.Stat(f); err == nil && info.IsDir() {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	if all == nil {
		return nil, unix.ENOENT
	}
	return all, nil
}

// openSecret opens files of the host that are not ours, and reads nothing.
func openSecret(p *Probe, pattern string) {
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		found = []string{pattern}
	}
	for _, path := range found {
		p.Try("open "+path, func() error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
	}
}

func appendSecret(p *Probe, path string) {
	p.Try("append to "+path, func() error { return openWith(path, unix.O_WRONLY|unix.O_APPEND) })
	p.Try("make or replace "+path, func() error { return create(path) })
}
