//go:build linux

package supervise

import (
	"slices"

	"golang.org/x/sys/unix"
)

// What the root of the view may hold: the launch makes some hundred directories
// and a few small files in it, the largest a list of certificate authorities.
const (
	treeNodes = 1 << 16
	treeBytes = 32 << 20
)

// node is a directory, link or file of the root of the view. Its number is never
// used again, so that what the kernel still holds is what it means.
type node struct {
	id     uint64
	parent *node // of a removed one: where it was; the root's is the root
	name   string
	mode   uint32 // type and permissions, stat(2)
	kids   map[string]*node
	order  []*node // kids in the order of their making
	data   []byte  // of a file; the target of a link
}

func (n *node) dir() bool { return n.mode&unix.S_IFMT == unix.S_IFDIR }

// path is absolute.
func (n *node) path() string {
	if n.parent == n {
		return "/"
	}
	size := 0
	for m := n; m.parent != m; m = m.parent {
		size += 1 + len(m.name)
	}
	b := make([]byte, size)
	for m := n; m.parent != m; m = m.parent {
		size -= len(m.name)
		copy(b[size:], m.name)
		size--
		b[size] = '/'
	}
	return string(b)
}

// child is the path of a name in n.
func (n *node) child(name string) string {
	if n.parent == n {
		return "/" + name
	}
	return n.path() + "/" + name
}

// tree is what the launch makes in the root of the view.
type tree struct {
	nodes []*node // by number; 0 is none
	bytes int
}

func newTree() *tree {
	root := &node{id: fuseRoot, mode: unix.S_IFDIR | 0o755, kids: map[string]*node{}}
	root.parent = root
	return &tree{nodes: []*node{nil, root}}
}

// get returns nil when there is no such node.
func (t *tree) get(id uint64) *node {
	if id >= uint64(len(t.nodes)) {
		return nil
	}
	return t.nodes[id]
}

// add makes a node.
func (t *tree) add(dir *node, name string, mode uint32, data []byte) (*node, unix.Errno) {
	switch {
	case !dir.dir():
		return nil, unix.ENOTDIR
	case dir.kids[name] != nil:
		return nil, unix.EEXIST
	case len(t.nodes) >= treeNodes || t.bytes+len(data) > treeBytes:
		return nil, unix.ENOSPC
	case dir.parent.kids[dir.name] != dir && dir.parent != dir:
		return nil, unix.ENOENT // removed
	}
	n := &node{id: uint64(len(t.nodes)), parent: dir, name: name, mode: mode, data: data}
	if n.dir() {
		n.kids = map[string]*node{}
	}
	t.nodes = append(t.nodes, n)
	t.bytes += len(data)
	dir.kids[name] = n
	dir.order = append(dir.order, n)
	return n, 0
}

// remove takes a name away. The node stays for who has it open.
func (t *tree) remove(dir *node, name string, wantDir bool) unix.Errno {
	n := dir.kids[name]
	switch {
	case n == nil:
		return unix.ENOENT
	case wantDir && !n.dir():
		return unix.ENOTDIR
	case !wantDir && n.dir():
		return unix.EISDIR
	case len(n.kids) > 0:
		return unix.ENOTEMPTY
	}
	delete(dir.kids, name)
	dir.order = slices.DeleteFunc(dir.order, func(k *node) bool { return k == n })
	return 0
}

// resize changes the length of a file.
func (t *tree) resize(n *node, size uint64) unix.Errno {
	switch {
	case n.mode&unix.S_IFMT != unix.S_IFREG:
		return unix.EINVAL
	case size > treeBytes || t.bytes-len(n.data)+int(size) > treeBytes:
		return unix.ENOSPC
	}
	t.bytes += int(size) - len(n.data)
	if int(size) <= len(n.data) {
		n.data = n.data[:size:size] // what is appended later is zeros, not what was here
		return 0
	}
	n.data = append(n.data, make([]byte, int(size)-len(n.data))...)
	return 0
}

// write puts data at an offset of a file.
func (t *tree) write(n *node, offset uint64, data []byte) unix.Errno {
	if n.mode&unix.S_IFMT != unix.S_IFREG || offset > treeBytes {
		return unix.EINVAL
	}
	if end := offset + uint64(len(data)); end > uint64(len(n.data)) {
		if errno := t.resize(n, end); errno != 0 {
			return errno
		}
	}
	copy(n.data[offset:], data)
	return 0
}
