//go:build linux

package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// dotGit checks a .git that is no directory: a pointer stays if it leads to a repository
// in one of the trees, which is checked itself.
func (v *settle) dotGit(w *walker, d *dir, e entry) error {
	r := &Rule{Pattern: ".git", Reason: "git takes the repository, its config and its hooks from where it points"}
	target, ok := readPointer(d.fd, string(e.name()))
	switch {
	case !ok:
		return v.moveOut(w, d, e, r, "it appeared during the run and is not a plain pointer")
	case !v.leadsToRepository(string(w.path), target):
		return v.moveOut(w, d, e, r, "it appeared during the run and leads to no repository in the workspace")
	}
	return nil
}

// readPointer returns where the file .git of a worktree points.
func readPointer(dir int, name string) (target string, ok bool) {
	b, ok := readFile(dir, name, maxPointer)
	target, cut := strings.CutPrefix(string(bytes.TrimRight(b, "\r\n")), "gitdir: ")
	return target, ok && cut
}

// leadsToRepository reports whether target, read in the directory rel, is a
// repository of one of the trees, reached without a link.
func (v *settle) leadsToRepository(rel, target string) bool {
	fd := v.openInTrees(rel, target)
	if fd < 0 {
		return false
	}
	defer unix.Close(fd)
	return hasName(fd, "HEAD") && (hasName(fd, "commondir") || hasName(fd, "objects") && hasName(fd, "refs"))
}

// openInTrees opens the directory that target names when it is read in the directory
// rel, if that lies in one of the trees and no link is on the way; else it returns -1.
// A text that is not in its shortest form is not followed: the kernel resolves
// "link/.." to a different place than its text suggests.
func (v *settle) openInTrees(rel, target string) int {
	if path.Clean(target) != target {
		return -1
	}
	if !path.IsAbs(target) {
		target = path.Clean(string(v.t.Root) + "/" + rel + "/" + target)
	}
	roots := slices.Clone(v.snap.beside)
	for _, t := range v.snap.trees {
		roots = append(roots, string(t.Root))
	}
	for _, top := range roots {
		in, ok := strings.CutPrefix(target+"/", top+"/")
		if !ok {
			continue
		}
		root, err := openResolved(top, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		fd, err := OpenBeneath(root, strings.TrimSuffix(in, "/"), unix.O_PATH|unix.O_DIRECTORY)
		unix.Close(root)
		if err == nil {
			return fd
		}
	}
	return -1
}

// judge says why a file of a repository may not stay; "" lets it stay.
func (v *settle) judge(w *walker, d *dir, e entry) string {
	switch e.rule.Pattern {
	case "config", "config.worktree":
		b, ok := readFile(d.fd, string(e.name()), MaxConfig)
		if !ok {
			return "is not a plain file"
		}
		return configHarm(b, func(value string) bool {
			fd := v.openInTrees(string(w.path), value)
			if fd < 0 {
				return false
			}
			return unix.Close(fd) == nil
		}, func(s setting) bool {
			return slices.Contains(v.t.Settings[Name(w.path)], s.sum())
		})
	case "hooks":
		return samplesOnly(d.fd, string(e.name()))
	case "info/attributes":
		b, ok := readFile(d.fd, string(e.name()), MaxConfig)
		if !ok || slices.ContainsFunc([]string{"filter", "diff=", "merge=", "[attr]", "working-tree-encoding"},
			func(s string) bool { return bytes.Contains(b, []byte(s)) }) {
			return "it assigns programs to files"
		}
		return ""
	case "commondir", "gitdir":
		if v.repos[string(w.path)] {
			return "the repository was there without it"
		}
		b, ok := readFile(d.fd, string(e.name()), maxPointer)
		target := strings.TrimRight(string(b), "\r\n")
		if !ok || strings.ContainsAny(target, "\x00\n") || target == "" {
			return "is not a plain pointer"
		}
		if e.rule.Pattern == "commondir" && v.leadsToRepository(string(w.path), target) {
			return ""
		}
		if e.rule.Pattern == "gitdir" {
			if v.inTree(string(w.path), target) || v.inWorkspace(target) {
				return ""
			}
		}
		return "it leads out of the workspace"
	}
	return "is not known to be harmless"
}

func (v *settle) inWorkspace(target string) bool {
	return slices.ContainsFunc(slices.Concat(v.snap.beside, []string{v.snap.Root}), func(top string) bool {
		return strings.HasPrefix(path.Clean(target), top+"/")
	})
}

// samplesOnly reports why a hooks directory may not stay. Git runs a hook by
// its exact name, and none ends in .sample.
func samplesOnly(dir int, name string) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "it is not a plain directory"
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	list, err := f.ReadDir(1000)
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".sample") || !e.Type().IsRegular() {
			return fmt.Sprintf("holds %q", e.Name())
		}
	}
	if len(list) == 1000 || err != nil && !errors.Is(err, io.EOF) {
		return "cannot be read to the end"
	}
	return ""
}
