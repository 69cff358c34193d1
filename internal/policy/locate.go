package policy

import (
	"errors"
	"io/fs"

	lexical "holdfast.dev/holdfast/internal/floor/paths"
)

// located is a file as the kernel found it.
type located struct {
	path  string // absolute; no component is a link
	dir   bool
	file  bool // a regular file
	mode  uint32
	owner int
	id    FileID
	links []link // that were followed on the way, in this order
}

// link is a symbolic link on the way to a file.
type link struct {
	at     string // its own name; no component above it is a link
	target string // as written in the link
	owner  int
}

// maxFollowed is how many links the kernel follows in one path
// (path_resolution(7)).
const maxFollowed = 40

// within reports whether path is tree or lies below it. Both are resolved
// names of the kernel's.
func within(path, tree string) bool { return lexical.Within(tree, path) }

// reason is the cause of a failed look-up without the path, which the message
// has already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
