//go:build linux

package supervise

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"golang.org/x/sys/unix"
)

// What the file system may hold. The launch makes some hundred directories and a
// few small files, the largest a list of certificate authorities; the rest is for
// what is made in the private directories. What files hold there is in the
// storage, and bounded by it.
const (
	treeNodes = 1 << 18
	treeBytes = 64 << 20 // names, targets of links, and files of the launch
)

// node is a directory, link, file or special file. Its number is never used
// again, so that what the kernel still holds is what it means.
type node struct {
	id         uint64
	parent     *node // of a directory: where it is, of a removed one where it was; the root's is the root
	name       string
	mode       uint32 // type and permissions, stat(2)
	private    bool   // any process inside may change it, even after the launch
	covers     bool   // it is mounted over something hidden, or contains such mounts
	names      uint32 // how many names it has; 0 once it is removed
	held       uint64 // look-ups that the kernel has not forgotten
	honeytoken string // where it was put, of a file that no program has a reason to open; else ""
	changed    int64  // content, nanoseconds since 1970; 0 for what the launch made
	altered    int64  // attributes, likewise

	kids  map[string]*entry
	order []*entry // kids in the order of their making, with gaps
	gaps  int
	last  uint64 // place of the last entry
	dirs  uint32 // of the kids

	data   []byte // of a file that was there from the beginning; the target of a link
	stored bool   // the content of a file is in the storage, and not in data
	size   uint64 // of a file that is in the storage
}

// entry is a name in a directory.
type entry struct {
	name  string
	node  *node  // nil for a gap
	place uint64 // where a listing continues that ended before it
}

func (n *node) kind() uint32 { return n.mode & unix.S_IFMT }
func (n *node) dir() bool    { return n.kind() == unix.S_IFDIR }

// length is what stat(2) calls the size.
func (n *node) length() uint64 {
	switch {
	case n.stored:
		return n.size
	case n.covers:
		return 0
	}
	return uint64(len(n.data))
}

// child is the node of a name, nil for none.
func (n *node) child(name string) *node {
	if e := n.kids[name]; e != nil {
		return e.node
	}
	return nil
}

// path of a directory is absolute.
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

// childPath is the path of a name in n.
func (n *node) childPath(name string) string {
	if n.parent == n {
		return "/" + name
	}
	return n.path() + "/" + name
}

// touch notes that the content of a file, or what a directory lists, changed now.
func (n *node) touch() {
	if n.private {
		n.changed = time.Now().UnixNano()
		n.altered = n.changed
	}
}

// alter notes that attributes changed now.
func (n *node) alter() {
	if n.private {
		n.altered = time.Now().UnixNano()
	}
}

// tree is all that the file system has.
type tree struct {
	nodes   map[uint64]*node
	next    uint64 // number of the next node
	bytes   int
	private map[string]bool // paths of directories that are private with all below them
	covers  string          // path of the directory that has what is mounted over what is hidden
	store   *store          // what files of private directories hold; nil before there is one
}

// coverPath ends the name of the file that says what a directory beside it covers.
const coverPath = ".path"

// coveredPath is the path that n is mounted over.
func (n *node) coveredPath() string {
	if !n.dir() {
		return string(n.data)
	}
	if cover := n.parent.child(n.name + coverPath); cover != nil {
		return string(cover.data)
	}
	return ""
}

func newTree(private ...string) *tree {
	root := &node{id: fuseRoot, mode: unix.S_IFDIR | 0o755, names: 1, kids: map[string]*entry{}}
	root.parent = root
	t := &tree{nodes: map[uint64]*node{fuseRoot: root}, next: fuseRoot + 1, private: map[string]bool{}}
	for _, path := range private {
		t.private[path] = true
	}
	return t
}

// get returns nil when there is no such node.
func (t *tree) get(id uint64) *node { return t.nodes[id] }

// add makes a node for a request: a file in a private directory is empty,
// and in the storage.
func (t *tree) add(dir *node, name string, mode uint32, data []byte) (*node, unix.Errno) {
	n, errno := t.addInMemory(dir, name, mode, data)
	if errno != 0 || !n.private || n.kind() != unix.S_IFREG {
		return n, errno
	}
	if errno := t.moveToStore(n); errno != 0 {
		t.leave(dir, name)
		t.drop(n)
		return nil, errno
	}
	return n, 0
}

// moveToStore moves the content of a file to the storage.
func (t *tree) moveToStore(n *node) unix.Errno {
	if errno := t.store.create(n.id); errno != 0 {
		return errno
	}
	if len(n.data) > 0 {
		if k, errno := t.store.write(n.id, 0, n.data); errno != 0 || k < len(n.data) {
			t.store.remove(n.id)
			return cmp.Or(errno, unix.ENOSPC)
		}
	}
	n.stored, n.size = true, uint64(len(n.data))
	t.bytes -= len(n.data)
	n.data = nil
	return 0
}

// addInMemory makes a node that holds its content itself.
func (t *tree) addInMemory(dir *node, name string, mode uint32, data []byte) (*node, unix.Errno) {
	if errno := t.canName(dir, name); errno != 0 {
		return nil, errno
	}
	if len(t.nodes) >= treeNodes || t.bytes+len(data) > treeBytes {
		return nil, unix.ENOSPC
	}
	n := &node{id: t.next, mode: mode, data: data, private: dir.private, covers: dir.covers}
	if n.dir() {
		n.kids = map[string]*entry{}
		if !n.private {
			path := dir.childPath(name)
			n.private, n.covers = t.private[path], n.covers || path == t.covers
		}
	}
	n.touch()
	t.next++
	t.nodes[n.id] = n
	t.bytes += len(data)
	t.enter(dir, name, n)
	return n, 0
}

// canName reports whether dir can have one name more.
func (t *tree) canName(dir *node, name string) unix.Errno {
	switch {
	case !dir.dir():
		return unix.ENOTDIR
	case dir.kids[name] != nil:
		return unix.EEXIST
	case dir.names == 0:
		return unix.ENOENT // removed
	case t.bytes+len(name) > treeBytes:
		return unix.ENOSPC
	}
	return 0
}

// enter gives n a name in dir, which has none such.
func (t *tree) enter(dir *node, name string, n *node) {
	dir.last++
	e := &entry{name: name, node: n, place: dir.last + 1} // 0 and 1 are . and ..
	dir.kids[name] = e
	dir.order = append(dir.order, e)
	dir.touch()
	n.names++
	n.parent, n.name = dir, name
	if n.dir() {
		dir.dirs++
	}
	t.bytes += len(name)
}

// leave takes the name of n in dir away.
func (t *tree) leave(dir *node, name string) {
	e := dir.kids[name]
	n := e.node
	delete(dir.kids, name)
	e.node = nil
	if dir.gaps++; dir.gaps > len(dir.order)/2 {
		dir.order = slices.DeleteFunc(dir.order, func(e *entry) bool { return e.node == nil })
		dir.gaps = 0
	}
	dir.touch()
	n.names--
	n.alter()
	if n.dir() {
		dir.dirs--
	}
	t.bytes -= len(name)
}

// remove removes a name. The node stays for processes that have it open.
func (t *tree) remove(dir *node, name string, wantDir bool) unix.Errno {
	n := dir.child(name)
	switch {
	case n == nil:
		return unix.ENOENT
	case wantDir && !n.dir():
		return unix.ENOTDIR
	case !wantDir && n.dir():
		return unix.EISDIR
	case len(n.kids) > 0 && !n.covers: // what covers is mounted, and needs no name
		return unix.ENOTEMPTY
	}
	t.leave(dir, name)
	t.drop(n)
	return 0
}

// drop frees a node that has no name any more and that the kernel does not hold.
func (t *tree) drop(n *node) {
	if n.names > 0 || n.held > 0 || !n.private {
		return
	}
	delete(t.nodes, n.id)
	t.bytes -= len(n.data)
	if n.stored {
		t.store.remove(n.id)
	}
}

// entriesFrom are the entries of a directory from a place on.
func (n *node) entriesFrom(from uint64) []*entry {
	i := sort.Search(len(n.order), func(i int) bool { return n.order[i].place >= from })
	return n.order[i:]
}

// resize changes the length of a file.
func (t *tree) resize(n *node, size uint64) unix.Errno {
	if errno := t.changing(n); errno != 0 {
		return errno
	}
	switch {
	case n.stored:
		errno := t.store.resize(n.id, size)
		if errno == 0 {
			n.size = size
			n.touch()
		}
		return errno
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

// changing makes ready to change the content of n: from then on a file in a private
// directory takes what everything inside may use, and no longer our own memory.
func (t *tree) changing(n *node) unix.Errno {
	if n.kind() != unix.S_IFREG {
		return unix.EINVAL
	}
	if n.private && !n.stored {
		return t.moveToStore(n)
	}
	return 0
}

// write puts data at an offset of a file.
func (t *tree) write(n *node, offset uint64, data []byte) (int, unix.Errno) {
	if errno := t.changing(n); errno != 0 {
		return 0, errno
	}
	switch {
	case n.stored:
		k, errno := t.store.write(n.id, offset, data)
		if k > 0 {
			n.size = max(n.size, offset+uint64(k))
			n.touch()
		}
		return k, errno
	case offset > treeBytes:
		return 0, unix.EINVAL
	}
	if end := offset + uint64(len(data)); end > uint64(len(n.data)) {
		if errno := t.resize(n, end); errno != 0 {
			return 0, errno
		}
	}
	return copy(n.data[offset:], data), 0
}

// read appends what a file holds from an offset on.
func (t *tree) read(n *node, offset, size uint64, out []byte) ([]byte, unix.Errno) {
	switch {
	case n.kind() != unix.S_IFREG:
		return nil, unix.EINVAL
	case offset >= n.length():
		return out, 0
	}
	size = min(size, n.length()-offset, fuseMaxWrite)
	if n.stored {
		return t.store.read(n.id, offset, int(size), out)
	}
	return append(out, n.data[offset:offset+size]...), 0
}
