//go:build linux

package supervise

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// renaming is a request for another name.
type renaming struct {
	to          uint64 // node of the other directory
	flags       uint32
	name, other string
}

// parseRename reads a struct fuse_rename_in or fuse_rename2_in, and the names.
func parseRename(r fuseRequest) (n renaming, errno unix.Errno) {
	size := 8
	if r.op == fuseRename2 {
		size = 16
	}
	in, rest, ok := r.splitFixed(size)
	if !ok {
		return n, unix.EINVAL
	}
	n.to = binary.LittleEndian.Uint64(in)
	if r.op == fuseRename2 {
		n.flags = binary.LittleEndian.Uint32(in[8:])
	}
	if n.name, rest, errno = fuseName(rest); errno == 0 {
		n.other, _, errno = fuseName(rest)
	}
	return n, errno
}

// rename gives what has a name in dir another, in dir or elsewhere. The kernel has
// looked at permissions, and holds both directories (renameat2(2)); what would harm
// the tree is refused here as well.
func (f *fileSystem) rename(dir *node, r fuseRequest) unix.Errno {
	n, errno := parseRename(r)
	if errno != 0 {
		return errno
	}
	to := f.tree.get(n.to)
	switch {
	case to == nil:
		return unix.ESTALE
	case f.sealed && !to.private || to.private != dir.private:
		return unix.EROFS
	case n.flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0:
		return unix.EINVAL
	}
	return f.tree.rename(dir, n.name, to, n.other, n.flags)
}

func (t *tree) rename(dir *node, name string, to *node, other string, flags uint32) unix.Errno {
	n, old := dir.child(name), to.child(other)
	switch {
	case n == nil || old == nil && flags&unix.RENAME_EXCHANGE != 0:
		return unix.ENOENT
	case old != nil && flags&unix.RENAME_NOREPLACE != 0:
		return unix.EEXIST
	case n == old:
		return 0
	case n.encloses(to) || flags&unix.RENAME_EXCHANGE != 0 && old.encloses(dir):
		return unix.EINVAL
	}
	if flags&unix.RENAME_EXCHANGE != 0 {
		t.leave(dir, name)
		t.leave(to, other)
		t.enter(dir, name, old)
		t.enter(to, other, n)
		return 0
	}
	if old != nil {
		if n.dir() && !old.dir() {
			return unix.ENOTDIR
		}
		if errno := t.remove(to, other, n.dir()); errno != 0 {
			return errno
		}
	}
	if errno := t.canName(to, other); errno != 0 {
		return errno
	}
	t.leave(dir, name)
	t.enter(to, other, n)
	return 0
}

// encloses reports whether dir is n or below it.
func (n *node) encloses(dir *node) bool {
	for ; dir != n; dir = dir.parent {
		if dir.parent == dir {
			return false
		}
	}
	return true
}

// link gives a file a further name in dir.
func (f *fileSystem) link(dir *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, rest, ok := r.splitFixed(8) // struct fuse_link_in: the file
	if !ok {
		return nil, unix.EINVAL
	}
	name, _, errno := fuseName(rest)
	if errno != 0 {
		return nil, errno
	}
	n := f.tree.get(binary.LittleEndian.Uint64(in))
	switch {
	case n == nil || n.names == 0:
		return nil, unix.ENOENT
	case n.dir():
		return nil, unix.EPERM
	case n.private != dir.private:
		return nil, unix.EXDEV
	}
	if errno := f.tree.canName(dir, name); errno != 0 {
		return nil, errno
	}
	f.tree.enter(dir, name, n)
	n.alter()
	return f.entryOut(n, out), 0
}

// forget takes back what the kernel no longer holds: struct fuse_forget_in, or
// fuse_batch_forget_in with as many fuse_forget_one as it says.
func (f *fileSystem) forget(r fuseRequest) {
	le := binary.LittleEndian
	if r.op == fuseForget {
		if in, _, ok := r.splitFixed(8); ok {
			f.tree.forget(r.node, le.Uint64(in))
		}
		return
	}
	in, rest, ok := r.splitFixed(8)
	if !ok {
		return
	}
	for n := le.Uint32(in); n > 0 && len(rest) >= 16; n-- {
		f.tree.forget(le.Uint64(rest), le.Uint64(rest[8:]))
		rest = rest[16:]
	}
}

func (t *tree) forget(id, times uint64) {
	if n := t.get(id); n != nil {
		n.held -= min(n.held, times)
		t.drop(n)
	}
}
