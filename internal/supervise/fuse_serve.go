//go:build linux

package supervise

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// fileSystem answers requests from a tree in memory. Until it is sealed the launch
// changes all of it, and then everybody what is private.
type fileSystem struct {
	tree   *tree
	sealed bool
	uid    uint32 // owner of everything, in the user namespace of the mount
	gid    uint32
	minor  uint32 // that was agreed on; 0 before INIT
}

// noReply is a result of handle: the kernel waits for no answer.
const noReply = unix.Errno(1 << 12)

// handle answers one request, into buf. It returns nil when none is due.
func (f *fileSystem) handle(r fuseRequest, buf []byte) []byte {
	answer, errno := f.answer(r, fuseAnswer(buf, r.unique))
	switch errno {
	case 0:
		return fuseFinish(answer)
	case noReply:
		return nil
	default:
		return fuseFailure(buf, r.unique, errno)
	}
}

func (f *fileSystem) answer(r fuseRequest, out []byte) ([]byte, unix.Errno) {
	switch r.op {
	case fuseInit:
		return f.init(r, out)
	case fuseForget, fuseBatchForget:
		f.forget(r)
		return nil, noReply
	case fuseInterrupt:
		return nil, noReply // no answer takes long
	case fuseDestroy, fuseRelease, fuseReleasedir:
		return out, 0
	}
	n := f.tree.get(r.node)
	if n == nil {
		return nil, unix.ESTALE
	}
	switch r.op {
	case fuseStatfs:
		return f.statfs(n, out)
	case fuseLookup:
		return f.lookup(n, r, out)
	case fuseGetattr:
		return f.attrOut(n, out), 0
	case fuseReadlink:
		if n.kind() != unix.S_IFLNK {
			return nil, unix.EINVAL
		}
		return append(out, n.data...), 0
	case fuseRead:
		return f.read(n, r, out)
	case fuseReaddir:
		return f.readdir(n, r, out)
	case fuseSetattr, fuseSymlink, fuseMknod, fuseMkdir, fuseUnlink, fuseRmdir, fuseWrite, fuseRename, fuseRename2, fuseLink:
		if f.sealed && !n.private {
			return nil, unix.EROFS
		}
		return f.change(n, r, out)
	}
	// The kernel takes it as: there is no such operation, and does not ask again. An
	// OPEN so answered succeeds and keeps cached pages; a CREATE becomes a MKNOD.
	return nil, unix.ENOSYS
}

// init agrees on a version.
func (f *fileSystem) init(r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.splitFixed(16)
	if !ok || f.minor != 0 {
		return nil, unix.EPROTO
	}
	le := binary.LittleEndian
	major, minor, readahead, flags := le.Uint32(in), le.Uint32(in[4:]), le.Uint32(in[8:]), le.Uint32(in[12:])
	switch {
	case major > fuseMajor: // it asks again, in ours
		return append(appendHalves(out, fuseMajor, fuseMinor), make([]byte, 56)...), 0
	case major < fuseMajor || minor < fuseMinor:
		return nil, unix.EPROTO
	}
	f.minor = fuseMinor
	out = appendHalves(out, fuseMajor, fuseMinor, readahead, flags&fuseFlags)
	out = append(out, 0, 0, 0, 0) // as many background requests as the kernel thinks right
	out = appendHalves(out, fuseMaxWrite, 1)
	return append(out, make([]byte, 36)...), 0
}

// lookup finds a name. A missing name is ENOENT, which the kernel does not cache: it
// asks each time.
func (f *fileSystem) lookup(dir *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	name, _, errno := fuseName(r.body)
	if errno != 0 {
		return nil, errno
	}
	if n := dir.child(name); n != nil {
		return f.entryOut(n, out), 0
	}
	return nil, unix.ENOENT
}

func (f *fileSystem) read(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.splitFixed(40)
	if !ok {
		return nil, unix.EINVAL
	}
	return f.tree.read(n, binary.LittleEndian.Uint64(in[8:]), uint64(binary.LittleEndian.Uint32(in[16:])), out)
}

// statfs describes the storage. A file system that is not private is full, as a tmpfs
// of the same size would be.
func (f *fileSystem) statfs(n *node, out []byte) ([]byte, unix.Errno) {
	st := unix.Statfs_t{Bsize: 4096, Frsize: 4096}
	if n.private && f.tree.store != nil {
		var errno unix.Errno
		if st, errno = f.tree.store.room(); errno != 0 {
			return nil, errno
		}
	}
	out = appendWords(out, st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree)
	return appendHalves(out, uint32(st.Bsize), unix.NAME_MAX, uint32(st.Frsize), 0, 0, 0, 0, 0, 0, 0), 0
}

// readdir lists from a place on.
func (f *fileSystem) readdir(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.splitFixed(40)
	if !ok || !n.dir() {
		return nil, unix.ENOTDIR
	}
	from, size := binary.LittleEndian.Uint64(in[8:]), int(min(binary.LittleEndian.Uint32(in[16:]), fuseMaxWrite))
	room := len(out) + size
	dots := []*entry{{".", n, 0}, {"..", n.parent, 1}}
	for _, list := range [][]*entry{dots[min(from, 2):], n.entriesFrom(from)} {
		for _, e := range list {
			if e.node == nil {
				continue
			}
			if len(out)+24+len(e.name)+7 > room {
				return out, 0
			}
			out = appendWords(out, e.node.id, e.place+1)
			out = appendHalves(out, uint32(len(e.name)), e.node.kind()>>12)
			out = append(out, e.name...)
			for len(out)%8 != 0 { // the answer's header is a multiple, too
				out = append(out, 0)
			}
		}
	}
	return out, 0
}

// change does what the launch may do, and later everybody with what is private.
func (f *fileSystem) change(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	switch r.op {
	case fuseMkdir, fuseMknod:
		return f.create(n, r, out)
	case fuseSymlink:
		name, rest, errno := fuseName(r.body)
		if errno != 0 {
			return nil, errno
		}
		target, _, ok := fuseString(rest)
		if !ok || target == "" || len(target) >= unix.PathMax {
			return nil, unix.EINVAL
		}
		return f.makeEntry(n, name, unix.S_IFLNK|0o777, []byte(target), out)
	case fuseUnlink, fuseRmdir:
		name, _, errno := fuseName(r.body)
		if errno == 0 {
			errno = f.tree.remove(n, name, r.op == fuseRmdir)
		}
		return out, errno
	case fuseRename, fuseRename2:
		return out, f.rename(n, r)
	case fuseLink:
		return f.link(n, r, out)
	case fuseWrite:
		in, data, ok := r.splitFixed(40)
		if !ok || uint64(binary.LittleEndian.Uint32(in[16:])) != uint64(len(data)) {
			return nil, unix.EINVAL
		}
		k, errno := f.tree.write(n, binary.LittleEndian.Uint64(in[8:]), data)
		if k > 0 {
			errno = 0 // some was written, which the kernel says
		}
		return appendHalves(out, uint32(k), 0), errno
	default:
		return f.setattr(n, r, out)
	}
}

// create makes a directory, an empty file, or in a private directory a pipe or a
// socket.
func (f *fileSystem) create(dir *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	size := 8 // struct fuse_mkdir_in: mode, umask, which the kernel has applied
	if r.op == fuseMknod {
		size = 16 // struct fuse_mknod_in: mode, device, umask
	}
	in, rest, ok := r.splitFixed(size)
	if !ok {
		return nil, unix.EINVAL
	}
	name, _, errno := fuseName(rest)
	if errno != 0 {
		return nil, errno
	}
	mode := binary.LittleEndian.Uint32(in) & (unix.S_IFMT | 0o7777)
	switch {
	case r.op == fuseMkdir:
		mode = mode&0o7777 | unix.S_IFDIR
	case mode&unix.S_IFMT != unix.S_IFREG && !(dir.private && (mode&unix.S_IFMT == unix.S_IFIFO || mode&unix.S_IFMT == unix.S_IFSOCK)):
		return nil, unix.EPERM
	}
	return f.makeEntry(dir, name, mode, nil, out)
}

func (f *fileSystem) makeEntry(dir *node, name string, mode uint32, data []byte, out []byte) ([]byte, unix.Errno) {
	n, errno := f.tree.add(dir, name, mode, data)
	if errno != 0 {
		return nil, errno
	}
	return f.entryOut(n, out), 0
}

// setattr changes mode, size or times. The owner is what it is.
func (f *fileSystem) setattr(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.splitFixed(88)
	if !ok {
		return nil, unix.EINVAL
	}
	le := binary.LittleEndian
	valid := le.Uint32(in)
	if valid&fuseSetUID != 0 && le.Uint32(in[76:]) != f.uid || valid&fuseSetGID != 0 && le.Uint32(in[80:]) != f.gid {
		return nil, unix.EPERM
	}
	if valid&fuseSetSize != 0 {
		if errno := f.tree.resize(n, le.Uint64(in[16:])); errno != 0 {
			return nil, errno
		}
	}
	if valid&fuseSetMode != 0 {
		n.mode = n.kind() | le.Uint32(in[68:])&0o7777
	}
	n.alter()
	if valid&(fuseSetMtime|fuseSetMtimeNow) != 0 && n.private {
		n.changed = n.altered
		if valid&fuseSetMtimeNow == 0 {
			n.changed = int64(le.Uint64(in[40:]))*1e9 + int64(le.Uint32(in[60:]))
		}
	}
	return f.attrOut(n, out), 0
}

// entryOut appends a struct fuse_entry_out: number, generation, how long the
// name and the attributes are good for.
func (f *fileSystem) entryOut(n *node, out []byte) []byte {
	n.held++
	out = appendWords(out, n.id, 0, fuseForever, n.attrFor())
	return f.attr(n, appendHalves(out, 0, 0))
}

func (f *fileSystem) attrOut(n *node, out []byte) []byte {
	return f.attr(n, appendHalves(appendWords(out, n.attrFor()), 0, 0))
}

// attr appends a struct fuse_attr. Times of what the launch made are zero: they
// would say when the run began, and nothing needs them. No access time is kept.
func (f *fileSystem) attr(n *node, out []byte) []byte {
	size, links := n.length(), n.names
	if n.dir() {
		links = 2 + n.dirs
	}
	changed, altered := time.Unix(0, n.changed), time.Unix(0, n.altered)
	out = appendWords(out, n.id, size, (size+511)/512, uint64(changed.Unix()), uint64(changed.Unix()), uint64(altered.Unix()))
	out = appendHalves(out, uint32(changed.Nanosecond()), uint32(changed.Nanosecond()), uint32(altered.Nanosecond()))
	return appendHalves(out, n.mode, links, f.uid, f.gid, 0, 4096, 0)
}
