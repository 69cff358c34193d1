//go:build linux

package supervise

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Entry is what is in the file system from the beginning.
type Entry struct {
	Path    string // absolute
	Mode    uint32 // type and permissions (stat(2))
	Content string // of a file; the target of a link
}

// make makes an entry, whose directory is there.
func (t *tree) make(e Entry) unix.Errno {
	above, name := path.Split(e.Path)
	dir := t.find(above)
	if dir == nil {
		return unix.ENOENT
	}
	_, errno := t.addInMemory(dir, name, e.Mode, []byte(e.Content))
	return errno
}

// find is the node of an absolute path, nil for none.
func (t *tree) find(path string) *node {
	n := t.nodes[fuseRoot]
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}
