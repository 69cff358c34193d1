//go:build linux

package workspace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxPointer is the size in bytes above which a .git file is not read. Git's
// own limit is 1 MiB; a path is at most 4 KiB.
const maxPointer = 8 << 10

// worktrees looks at where the .git files of the tree point. It returns git directories
// outside the tree that name that worktree, or submodule, in turn: a pointer alone
// proves nothing, because any writer of the tree can write it.
func (s *scan) worktrees() []string {
	var out []string
	for _, p := range s.pointers {
		top, err := OpenBeneath(s.root, parent(p), unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		dir, why := s.repositoryOf(top, path.Base(p))
		unix.Close(top)
		if why != "" {
			s.warn("the repository that %q points to is not in view: %s", p, why)
		} else if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// repositoryOf returns the git directory outside the tree that must be in view
// for the .git file name in top to work, "" if it is in the tree. why says what
// is wrong with it.
func (s *scan) repositoryOf(top int, name string) (dir, why string) {
	gitdir, why := openPointer(top, top, name, "gitdir: ")
	if why != "" {
		return "", why
	}
	defer unix.Close(gitdir)
	at, err := fdPath(gitdir)
	if err != nil {
		return "", err.Error()
	}
	if _, ok := s.relativeToRoot(at); ok {
		return "", ""
	}
	if !s.ownedByOwner(gitdir) {
		return "", "it belongs to another user"
	}
	if _, ok := readFile(gitdir, "commondir", maxPointer); !ok {
		return s.submoduleOf(top, gitdir, at)
	}
	common, why := openPointer(gitdir, gitdir, "commondir", "")
	if why != "" {
		return "", why
	}
	defer unix.Close(common)
	base, err := fdPath(common)
	if err != nil {
		return "", err.Error()
	}
	switch {
	case !s.ownedByOwner(common):
		return "", "it belongs to another user"
	case path.Dir(path.Dir(at)) != base || path.Base(path.Dir(at)) != "worktrees":
		return "", "it is not among the worktrees of its repository"
	case !hasName(common, "HEAD") || !hasName(common, "objects") || !hasName(common, "refs"):
		return "", "it is not a repository"
	case !namesBack(gitdir, top, name):
		return "", "it does not name this worktree"
	}
	return base, ""
}

// submoduleOf accepts a submodule's repository whose core.worktree is top.
func (s *scan) submoduleOf(top, gitdir int, at string) (dir, why string) {
	if !hasName(gitdir, "HEAD") || !hasName(gitdir, "objects") || !hasName(gitdir, "refs") {
		return "", "it is not a repository"
	}
	data, _ := readFile(gitdir, "config", MaxConfig)
	c, err := parseConfig(data)
	if err != nil {
		return "", "its config cannot be parsed"
	}
	for _, v := range c.settings {
		if v.section != "core" || v.hasSub || v.key != "worktree" {
			continue
		}
		fd, err := unix.Openat(gitdir, v.value, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		same := sameFile(fd, top)
		unix.Close(fd)
		if same {
			return at, ""
		}
	}
	return "", "it does not name this worktree"
}

// openPointer opens the directory that a file names, relative to from.
func openPointer(from, dir int, name, prefix string) (int, string) {
	b, ok := readFile(dir, name, maxPointer)
	target, cut := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), prefix)
	if !ok || !cut || target == "" || strings.ContainsAny(target, "\x00\n") {
		return -1, "the pointer cannot be read"
	}
	fd, err := unix.Openat(from, target, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Sprintf("opening it: %v", err)
	}
	return fd, ""
}

// namesBack reports whether the file gitdir in a worktree's git directory names
// the .git file name in top.
func namesBack(gitdir, top int, name string) bool {
	b, ok := readFile(gitdir, "gitdir", maxPointer)
	back := strings.TrimRight(string(b), "\r\n")
	if !ok || back == "" {
		return false
	}
	fd, err := unix.Openat(gitdir, back, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	own, err := unix.Openat(top, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(own)
	return sameFile(fd, own)
}

func sameFile(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Ino == y.Ino && x.Dev == y.Dev
}

func hasName(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// ownedByOwner reports whether fd belongs to the owner of the tree.
func (s *scan) ownedByOwner(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Uid == s.found.Owner
}

// scanExternal scans a git directory outside the workspace.
func scanExternal(ctx context.Context, dir string, r *Rules, b *Budget) (*tree, []string, error) {
	s := &scan{rules: r, external: true, budget: b}
	if err := s.open(dir); err != nil {
		return nil, nil, err
	}
	defer unix.Close(s.root)
	if err := run(ctx, s.root, r, maxPath, true, s, walkMemory{}); err != nil {
		return nil, nil, fmt.Errorf("scanning repository %s: %w", dir, err)
	}
	if _, err := s.finish(ctx); err != nil {
		return nil, nil, fmt.Errorf("scanning repository %s: %w", dir, err)
	}
	return s.found, s.warnings, nil
}
