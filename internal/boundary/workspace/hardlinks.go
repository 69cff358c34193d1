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

// maxSingle is the number of hard links up to which each gets a row of its own.
// Managers of packages that link whole trees from a store of theirs (pnpm, uv) make
// tens of thousands.
const maxSingle = 256

const linkReason = "another name of it is outside the workspace, or protected"

// hardLinks adds rows for the regular files of which not all names were seen.
// A name below a protected directory was not, so that a writable name of a
// protected file gets a row too.
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
		rows = s.together(rows)
	}
	s.found.Rows = append(s.found.Rows, rows...)
}

// together replaces rows by rows for the topmost directories that hold nothing
// else. Directories of repositories are left as they are: git adds to them.
func (s *scan) together(rows []row) []row {
	g := gather{s: s, linked: map[inode]bool{}, whole: map[string]bool{}}
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
			if dir, ok := s.dirRow(top); ok {
				out = append(out, dir)
			} else {
				out = append(out, r)
			}
		}
	}
	return out
}

func (s *scan) dirRow(rel string) (row, bool) {
	fd, err := openBeneath(s.root, rel, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return row{}, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return row{}, false
	}
	return row{Path: Name(rel), Rule: "hard link", Reason: "all files in it are also files outside the workspace",
		Ino: st.Ino, Dev: st.Dev, Mode: st.Mode, Ctime: unix.TimespecToNsec(st.Ctim), Linked: true}, true
}

// gather finds directories that hold nothing but files of linked and links.
type gather struct {
	s      *scan
	linked map[inode]bool
	whole  map[string]bool // what isWhole answered
}

func (g *gather) isWhole(rel string) bool {
	if rel == "" || g.inRepository(rel) {
		return false
	}
	if known, ok := g.whole[rel]; ok {
		return known
	}
	g.whole[rel] = false
	fd, err := openBeneath(g.s.root, rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, n := range names {
			if !g.entry(fd, rel, n) {
				return false
			}
		}
		if err != nil {
			g.whole[rel] = err == io.EOF
			return g.whole[rel]
		}
	}
}

func (g *gather) entry(dir int, rel, name string) bool {
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

func (g *gather) inRepository(rel string) bool {
	return slices.ContainsFunc(g.s.found.Repos, func(r Name) bool {
		return rel == string(r) || strings.HasPrefix(rel, string(r)+"/")
	})
}
