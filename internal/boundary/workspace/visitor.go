//go:build linux

package workspace

import "golang.org/x/sys/unix"

// visitor receives what a walk finds. Its methods are called from several goroutines. w.path names the directory; the descriptor of d is valid during
// the call only.
type visitor interface {
	// deny: a name of the deny tier, of any type. False stops the walk from
	// entering it.
	deny(w *walker, d *dir, e entry) (enter bool, err error)
	// flag: a name of the flag tier that is not a directory, or a directory
	// whose tree is one entry.
	flag(w *walker, d *dir, e entry, st *unix.Statx_t) error
	// file: any other entry that is not a directory. st is nil for links and
	// special files.
	file(w *walker, d *dir, e entry, st *unix.Statx_t) error
	// repository: d is one, entered before anything in it.
	repository(w *walker, d *dir) error
	// dotGit: the name .git that is not a directory.
	dotGit(w *walker, d *dir, e entry) error
	// tree: a tree that is listed as one, after flag was called for its top.
	tree(t *dep)
	// beforeRules: any entry, before the rules are applied. With true they are not.
	beforeRules(w *walker, d *dir, e entry) (bool, error)
	// closed: a directory that cannot be read, or is too deep to be named. It may
	// return a descriptor of it with which the walk continues, else -1.
	closed(w *walker, d *dir, e entry, why error) (int, error)
	// knownRepository reports whether path was a repository from the start.
	knownRepository(path []byte) bool
}
