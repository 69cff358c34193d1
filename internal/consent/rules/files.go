package rules

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// files knows the programs that rules name by the hash of their files, so that
// a copy or a link under another name is recognised. Nothing is hashed before a
// file is executed that may be one.
type files struct {
	find   func(name string) (path, sha256 string) // Host.Find
	wanted []string
	fixed  func(path string) bool // Host.Fixed
	hashes func() map[string][]string
}

// loaders are the paths of dynamic loaders, which are not commands.
var loaders = []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"}

// programTrees are the system trees that nothing inside can write, unless the
// policy says otherwise: not those of devices, processes and runtime data,
// which have places for everybody (/dev/shm).
var programTrees = []string{"/boot", "/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr"}

// gitParts are the programs, besides itself, that git starts for a push, where
// distributions put them: they too are not commands.
var gitParts = []string{
	"/usr/lib/git-core/git", "/usr/lib/git-core/git-remote-http", "/usr/lib/git-core/git-http-push", "/usr/lib/git-core/git-imap-send",
	"/usr/libexec/git-core/git", "/usr/libexec/git-core/git-remote-http", "/usr/libexec/git-core/git-http-push", "/usr/libexec/git-core/git-imap-send",
}

func newFiles(names []string, h Host) *files {
	slices.Sort(names)
	f := &files{find: h.Find, wanted: slices.Compact(names), fixed: h.Fixed}
	if f.fixed == nil {
		f.fixed = SystemFile
	}
	f.hashes = sync.OnceValue(f.hash)
	return f
}

// SystemFile reports whether a path is in a tree of the system that nothing
// inside can write, unless the policy says otherwise.
func SystemFile(path string) bool {
	return slices.ContainsFunc(programTrees, func(tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") })
}

// names are the names of a known file, besides its own name.
func (f *files) names(path, sha256 string) []string {
	if f.find == nil || sha256 == "" || f.fixed(path) {
		return nil
	}
	return slices.Clone(f.hashes()[sha256])
}

// unknown reports whether a file could be a copy of any program: its content could
// not be read, and something inside may have put it there. That is so for a file
// that may only be executed (mode 0111), and for one that changes all the time.
func (f *files) unknown(path, sha256 string) bool {
	return f.find != nil && path != "" && sha256 == "" && !f.fixed(path)
}

// hasTrustedName reports whether a file that the dynamic loader opens by itself is what
// its name says. It is not hashed, and a link or a descriptor may lead
// anywhere, so only a name counts that nothing inside can give to another file.
func (f *files) hasTrustedName(name string) bool {
	return f.find == nil || path.IsAbs(name) && path.Clean(name) == name && f.fixed(name)
}

func (f *files) hash() map[string][]string {
	out := map[string][]string{}
	wanted := f.wanted
	if slices.Contains(wanted, "git") {
		wanted = slices.Concat(wanted, gitParts)
	}
	for _, name := range slices.Concat(wanted, loaders, []string{"busybox", "toybox", "coreutils", "env", "corepack"}) {
		_, sum := f.find(name)
		if name = filepath.Base(name); sum != "" && !slices.Contains(out[sum], name) {
			out[sum] = append(out[sum], name)
		}
	}
	return out
}
