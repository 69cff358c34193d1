//go:build linux

package workspace

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// maxSingle is the number of hard links up to which each gets a row of its own.
// Managers of packages that link whole trees from a store of theirs (pnpm, uv) make
// tens of thousands.
const maxSingle = 256

const linkReason = "another name of it is outside the workspace, or protected"

// hardLinks adds rows for the regular files that have names that were not seen. Names
// below a protected directory are not seen, so that a writable name of a protected file
// gets a row too.
func (s *scan) hardLinks() {
	var rows []row
	for _, l := range s.links {
		if int(l.nlink) <= len(l.paths) {
			continue
		}
		for _, p := range l.paths {
			r := newRow(p, "hard link", linkReason, &l.st)
			r.Linked = true
			rows = append(rows, r)
		}
	}
	if len(rows) > maxSingle {
		rows = s.mergeLinks(rows)
	}
	s.found.Rows = append(s.found.Rows, rows...)
}

// mergeLinks replaces rows by one row for each topmost directory that holds nothing but
// such files. Directories of repositories are left alone: git adds files to them.
func (s *scan) mergeLinks(rows []row) []row {
	g := linkedDirs{s: s, linked: map[inode]bool{}, whole: map[string]bool{}}
	dirs := map[string]bool{}
	for _, r := range rows {
		g.linked[inode{r.Dev, r.Ino}] = true
		dirs[parent(string(r.Path))] = true
	}
	for d := range dirs {
		for g.isWhole(d) && d != "" {
			d = parent(d)
		}
	}
	var out []row
	tops := map[string]bool{}
	for _, r := range rows {
		top := ""
		for d := parent(string(r.Path)); d != "" && g.whole[d]; d = parent(d) {
			top = d
		}
		if top == "" {
			out = append(out, r)
		} else if !tops[top] {
			tops[top] = true
			var st unix.Statx_t
			if statBeneath(s.root, top, &st) == nil {
				r = newRow(top, "hard link", "all files in it are also files outside the workspace", &st)
				r.Linked = true
			}
			out = append(out, r)
		}
	}
	return out
}

// linkedDirs finds directories that hold nothing but files of linked and symbolic links.
type linkedDirs struct {
	s      *scan
	linked map[inode]bool
	whole  map[string]bool // what isWhole answered
}

func (g *linkedDirs) isWhole(rel string) bool {
	if rel == "" || g.inRepository(rel) {
		return false
	}
	if known, ok := g.whole[rel]; ok {
		return known
	}
	g.whole[rel] = false
	fd, err := OpenBeneath(g.s.root, rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	names, err := readNames(fd)
	g.whole[rel] = err == nil && !slices.ContainsFunc(names, func(n string) bool { return !g.entry(fd, rel, n) })
	return g.whole[rel]
}

func (g *linkedDirs) entry(dir int, rel, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	switch st.Mode & typeMask {
	case typeLink:
		return true
	case typeReg:
		return g.linked[inode{st.Dev, st.Ino}]
	case typeDir:
		return g.isWhole(path.Join(rel, name))
	}
	return false
}

func (g *linkedDirs) inRepository(rel string) bool {
	return slices.ContainsFunc(g.s.found.Repos, func(r Name) bool {
		return paths.Within(string(r), rel)
	})
}
