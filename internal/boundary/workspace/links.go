//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// parent is the directory above a relative path; "" is the root.
func parent(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return ""
}

// finish adds what can only be known when the whole tree was seen: the targets
// of links and of git's configuration, hard links, and the repositories of
// worktrees, which it returns when they lie outside.
func (s *scan) finish(ctx context.Context) ([]string, error) {
	if err := s.findObeyed(ctx); err != nil {
		return nil, err
	}
	s.hardLinks()
	s.hideSecrets()
	s.statFixed()
	outside := s.worktrees()
	s.found.tidy()
	return outside, nil
}

// followLinks adds rows for the targets of links that have a protected name, at any
// distance, and of links inside protected directories.
func (s *scan) followLinks(ctx context.Context) error {
	seen := map[string]bool{}
	for i := 0; i < len(s.found.Rows) && i <= 4*MaxProtected; i++ {
		r := s.found.Rows[i]
		if r.Linked || r.Closed || seen[string(r.Path)] {
			continue
		}
		seen[string(r.Path)] = true
		full := string(s.found.Root) + "/" + string(r.Path)
		at, err := s.lookup(full)
		if err != nil {
			continue // it has gone, or is in the other tree
		}
		switch at.st.Mode & typeMask {
		case typeLink:
			s.resolve(full, r.Rule, r.Reason)
		case typeDir:
			if err := s.linksBelow(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// linksBelow resolves the links inside a protected directory.
func (s *scan) linksBelow(ctx context.Context, r row) error {
	for _, root := range s.roots {
		fd, err := OpenBeneath(root, string(r.Path), unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue // it is in the other tree, a link, or gone
		}
		f := &linkFinder{scan: scan{found: s.found, budget: s.budget}}
		none := compile(nil, nil, nil, nil)
		err = run(ctx, fd, &none, maxPath, false, f, walkMemory{})
		unix.Close(fd)
		if err != nil {
			return err
		}
		for _, p := range f.links {
			s.resolve(string(s.found.Root)+"/"+string(r.Path)+"/"+p, r.Rule, r.Reason)
		}
	}
	return nil
}

// resolve follows target as the host would. Links met on the way and the end
// become rows when they lie in the tree.
func (s *scan) resolve(target, rule, reason string) {
	if !s.afford(1, 0) {
		return
	}
	end := s.follow(target, func(at located) { s.addEnd(at.path, rule, reason, &at.st) })
	if len(end.missing) > 0 {
		s.addMissing(end.path, end.missing, rule, reason)
	}
}

// openResolved opens a path none of whose components is a link any more: if one
// became a link again, that is an error.
func openResolved(p string, flags int) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{
		Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// relativeToRoot returns the path of p below the root. Both are resolved.
func (s *scan) relativeToRoot(p string) (string, bool) {
	return strings.CutPrefix(p, string(s.found.Root)+"/")
}

func (s *scan) addEnd(full, rule, reason string, st *unix.Statx_t) {
	rel, ok := s.relativeToRoot(full)
	if !ok {
		if full == string(s.found.Root) {
			s.warn("%s is the workspace itself and stays writable (%s)", rule, reason)
			s.all = &Rule{Pattern: rule, Tier: Deny, Reason: reason}
		}
		s.outward = append(s.outward, newRow(full, rule, reason, st))
		return
	}
	r := newRow(rel, rule, reason, st)
	if !s.rowAt[r.Path] {
		s.rowAt[r.Path] = true
		s.found.Rows = append(s.found.Rows, r)
	}
}

// addMissing remembers a path of the tree where nothing is yet. Its first missing
// component is what Settle looks for.
func (s *scan) addMissing(dir string, missing []string, rule, reason string) {
	if slices.Contains(missing, "..") {
		return
	}
	full := path.Join(dir, strings.Join(missing, "/"))
	rel, ok := s.relativeToRoot(full)
	if !ok {
		s.outward = append(s.outward, row{Path: Name(full), Rule: rule, Reason: reason})
		return
	}
	s.found.Absent = append(s.found.Absent, row{Path: Name(rel), Rule: rule, Reason: reason})
}

// OpenBeneath opens rel below root in one call, through no link of any kind. "" is the
// root itself; a path with ".." in it is refused.
func OpenBeneath(root int, rel string, flags int) (int, error) {
	if rel == "" {
		rel = "."
	}
	if path.Clean(rel) != rel {
		return -1, errors.New("not a plain path")
	}
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for range 100 {
		fd, err := unix.Openat2(root, rel, &how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
	return -1, fmt.Errorf("directories of the path keep being moved: %w", unix.EAGAIN)
}

// fdPath is the host's name of an open file.
func fdPath(fd int) (string, error) {
	return os.Readlink(selfPath(fd))
}

// linkFinder is a visitor that notes symbolic links.
type linkFinder struct {
	scan
	links []string
}

func (f *linkFinder) file(w *walker, _ *dir, e entry, _ *unix.Statx_t) error {
	if e.typ == unix.DT_LNK {
		f.mu.Lock()
		f.links = append(f.links, w.pathTo(e))
		f.mu.Unlock()
	}
	return nil
}

func (f *linkFinder) beforeRules(w *walker, _ *dir, _ entry) (bool, error) {
	return false, f.countEntry(w)
}
func (f *linkFinder) dotGit(*walker, *dir, entry) error               { return nil }
func (f *linkFinder) repository(*walker, *dir) error                  { return nil }
func (f *linkFinder) closed(*walker, *dir, entry, error) (int, error) { return -1, nil }
