//go:build linux

package workspace

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gitFile is a git configuration file and what its relative paths start from.
type gitFile struct {
	dir  string // of the repository, relative to the root
	name string // absolute path of the file; "" for a repository's own
	home string
	data []byte
	own  bool // read for one repository, not for all
}

// maxConfigs bounds how many configuration files are read, so that files which
// include each other come to an end.
const maxConfigs = 1024

// obeyConfigs protects what git's configuration names in the tree: the hooks
// directory and included files, and what those name.
func (s *scan) obeyConfigs() {
	slices.Sort(s.tops)
	s.tops = slices.Compact(s.tops)
	files := append(slices.Clone(s.configs), s.shared...)
	extra := len(files) + maxConfigs
	for i := 0; i < len(files); i++ {
		f := files[i]
		c, err := parseConfig(f.data)
		if err != nil {
			s.warn("git configuration in %q cannot be parsed; what it names is not protected", f.dir+f.name)
			continue
		}
		if f.own && f.name == "" {
			s.remember(f.dir, c)
		}
		for _, v := range c.settings {
			switch {
			case v.section == "core" && !v.hasSub && v.key == "hookspath":
				for _, from := range s.from(f) {
					if p := target(from, v.value, f.home); p != "" {
						s.resolve(p, "core.hooksPath", "git runs the hooks in it")
					}
				}
			case (v.section == "include" || v.section == "includeif") && v.key == "path":
				from := string(s.found.Root) + "/" + f.dir
				if f.name != "" {
					from = path.Dir(f.name)
				}
				p := target(from, v.value, f.home)
				if p == "" {
					continue
				}
				s.resolve(p, "include.path", "git reads it like config")
				if data := readHost(p); data != nil && len(files) < extra {
					files = append(files, gitFile{dir: f.dir, name: p, home: f.home, data: data, own: f.own})
				}
			case refuse(v, func(string) bool { return false }) != "":
				s.programs(f, v)
			}
		}
	}
}

// programs protects files of the tree that a setting's value names: it may be a
// command line that git runs at the top of a worktree.
func (s *scan) programs(f gitFile, v setting) {
	words := strings.FieldsFunc(v.value, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`!=$", r) })
	for _, word := range words {
		if !strings.Contains(word, "/") {
			continue
		}
		for _, from := range s.from(f) {
			p := target(from, word, f.home)
			if st, err := os.Lstat(p); p != "" && err == nil && !st.IsDir() {
				s.resolve(p, v.section+"."+v.key, "git runs it: its configuration names it")
			}
		}
	}
}

// remember notes the settings of a repository that are not harmless, so that a
// config which the user rewrites during a run is not taken for another's.
func (s *scan) remember(dir string, c config) {
	for _, v := range c.settings {
		if why := refuse(v, func(string) bool { return false }); why != "" {
			if s.found.Settings == nil {
				s.found.Settings = map[Name][]string{}
			}
			s.found.Settings[Name(dir)] = append(s.found.Settings[Name(dir)], v.sum())
		}
	}
}

// from lists the directories that a relative core.hooksPath may start from: the
// place where the hook runs, which is the top of a worktree or, in a bare
// repository, the repository.
func (s *scan) from(f gitFile) []string {
	root := string(s.found.Root) + "/"
	var out []string
	if f.own {
		out = []string{root + f.dir, root + parent(f.dir)}
		for _, p := range s.pointers {
			out = append(out, root+parent(p))
		}
		return out
	}
	for _, t := range s.tops {
		out = append(out, root+t)
	}
	return out
}

// target is the absolute path that a value stands for; "" for none.
func target(from, value, home string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		if home == "" {
			home = os.Getenv("HOME")
		}
		value = home + "/" + rest
	} else if value != "" && !path.IsAbs(value) {
		value = from + "/" + value
	}
	if !path.IsAbs(value) {
		return ""
	}
	return value
}

// readHost reads a configuration file as git would, through links, but never
// opens what is no regular file.
func readHost(p string) []byte {
	probe, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(probe)
	var st unix.Stat_t
	if unix.Fstat(probe, &st) != nil || st.Mode&typeMask != typeReg {
		return nil
	}
	name, err := fdPath(probe)
	if err != nil {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil
	}
	return b
}
