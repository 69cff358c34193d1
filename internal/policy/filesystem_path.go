package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemPath is searched after the caller's own directories.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Bounds of what PATH may lead to.
const (
	maxSearch = 256  // entries of PATH
	maxLinks  = 1000 // links in one directory of programs
)

// path adds the directories of the caller's PATH, in their order, with the
// trees that the programs in them need. Relative entries, entries in the
// workspace and entries that what runs inside could write to are left out: a
// program that is looked up must be the one that the user would get outside.
func (v *view) path() {
	var found []string
	for i, dir := range filepath.SplitList(v.host.lookup("PATH")) {
		if i == maxSearch {
			v.notes = append(v.notes, "PATH: the entries after the first 256 are left out")
			break
		}
		if !filepath.IsAbs(dir) {
			continue
		}
		at, err := v.locate(dir)
		if err != nil || !at.dir || within(at.path, v.workspace) || v.host.findUntrustedLink(at, v.writable) != nil {
			continue
		}
		if v.access(at.path) == Hidden {
			v.show(v.programTree(at), Read, "PATH")
		}
		found = append(found, at.path)
	}
	for _, dir := range found {
		if v.access(dir) == Read && !v.system(dir) {
			v.links(dir)
		}
	}
	for _, dir := range append(found, systemPath...) {
		if at, err := v.locate(dir); err == nil && v.access(at.path) == Read && !slices.Contains(v.search, at.path) {
			v.search = append(v.search, at.path)
		}
	}
}

// programTree is the tree to show for a directory of programs: the directory above bin,
// if it has libraries beside bin, and is no shared root, no .local, and shows neither
// the workspace nor credentials; otherwise the directory itself.
func (v *view) programTree(dir located) string {
	if base := filepath.Base(dir.path); base != "bin" && base != "sbin" && base != "shims" && base != "condabin" {
		return dir.path
	}
	parent, err := v.locate(filepath.Dir(dir.path))
	if err != nil || v.unfit(parent, Read) != "" || slices.Contains(sharedRoots, parent.path) ||
		within(v.workspace, parent.path) || filepath.Base(parent.path) == ".local" || v.credentials(parent.path) {
		return dir.path
	}
	for _, beside := range []string{"lib", "lib64", "libexec", "share", "versions", "pkg", "include"} {
		if _, err := os.Stat(filepath.Join(parent.path, beside)); err == nil {
			return parent.path
		}
	}
	return dir.path
}

// credentials reports whether something in or directly below dir has the name
// of a credential file. What cannot be read counts as one.
func (v *view) credentials(dir string) bool {
	names := embeddedToolchains().CredentialNames
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	for _, e := range entries {
		if slices.Contains(names, e.Name()) {
			return true
		}
		if !e.IsDir() {
			continue
		}
		for _, name := range names {
			if _, err := os.Lstat(filepath.Join(dir, e.Name(), name)); err == nil {
				return true
			}
		}
	}
	return false
}

// links adds what the links in a directory of programs lead to, such as
// ~/.local/bin/tool → ~/.local/share/tool/versions/3/tool.
func (v *view) links(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	followed, last := 0, ""
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil || target == last { // one program by many names, as rustup does it
			continue
		}
		last = target
		if followed++; followed > maxLinks {
			v.notes = append(v.notes, "PATH: "+dir+" has more than 1000 links; the others are left out")
			return
		}
		at, err := v.locate(filepath.Join(dir, e.Name()))
		if err != nil || !at.file || at.mode&0o111 == 0 || v.access(at.path) != Hidden || within(at.path, v.workspace) || v.host.findUntrustedLink(at, v.writable) != nil {
			continue
		}
		v.show(v.programOf(at), Read, "PATH link "+filepath.Join(dir, e.Name()))
	}
}

// programOf is the tree to show for one program: the packages around a node
// program, the tree around a bin directory, else the file alone.
func (v *view) programOf(file located) string {
	if i := strings.Index(file.path, "/node_modules/"); i >= 0 {
		return file.path[:i] + "/node_modules"
	}
	dir, err := v.locate(filepath.Dir(file.path))
	if err != nil {
		return file.path
	}
	if tree := v.programTree(dir); tree != dir.path {
		return tree
	}
	return file.path
}

// access is what the rules so far, the workspace and the system give path.
func (v *view) access(path string) Access {
	rules := make([]PathRule, len(v.rules))
	for i, r := range v.rules {
		rules[i] = r.PathRule
	}
	return v.accessAbove(rules, path)
}

func (v *view) system(path string) bool {
	return slices.ContainsFunc(v.host.System, func(r PathRule) bool { return within(path, r.Path) })
}

// searchPath is PATH inside.
func (v *view) searchPath() string { return strings.Join(v.search, ":") }

// shell is the caller's shell where it is in view, else the system's.
func (v *view) shell() string {
	for _, shell := range []string{v.host.lookup("SHELL"), "/bin/bash"} {
		if !filepath.IsAbs(shell) {
			continue
		}
		if at, err := v.locate(shell); err == nil && at.file && v.access(at.path) == Read {
			return shell
		}
	}
	return "/bin/sh"
}
