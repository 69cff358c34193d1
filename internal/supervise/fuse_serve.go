//go:build linux

package supervise

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// fileSystem answers requests from a tree in memory. It is obeyed as long as it
// is not sealed, and only read afterwards.
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
		return nil, noReply // the tree keeps everything
	case fuseDestroy, fuseRelease, fuseReleasedir:
		return out, 0
	case fuseStatfs:
		// Full, as a tmpfs of the same size would be.
		return appendHalves(appendWords(out, 0, 0, 0, 0, 0), 4096, unix.NAME_MAX, 4096, 0, 0, 0, 0, 0, 0, 0), 0
	}
	n := f.tree.get(r.node)
	if n == nil {
		return nil, unix.ESTALE
	}
	switch r.op {
	case fuseLookup:
		return f.lookup(n, r, out)
	case fuseGetattr:
		return f.attrOut(n, out), 0
	case fuseReadlink:
		if n.mode&unix.S_IFMT != unix.S_IFLNK {
			return nil, unix.EINVAL
		}
		return append(out, n.data...), 0
	case fuseRead:
		return f.read(n, r, out)
	case fuseReaddir:
		return f.readdir(n, r, out)
	case fuseSetattr, fuseSymlink, fuseMknod, fuseMkdir, fuseUnlink, fuseRmdir, fuseWrite:
		if f.sealed {
			return nil, unix.EROFS
		}
		return f.change(n, r, out)
	case fuseRename, fuseRename2, fuseLink:
		if f.sealed {
			return nil, unix.EROFS
		}
	}
	// The kernel takes it as: there is no such operation, and asks no more. An
	// OPEN so answered succeeds and keeps cached pages; a CREATE becomes a MKNOD.
	return nil, unix.ENOSYS
}

// init agrees on a version.
func (f *fileSystem) init(r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.fixed(16)
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

// lookup finds a name. What is not there is ENOENT, which the kernel does not
// remember: it asks each time.
func (f *fileSystem) lookup(dir *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	name, _, errno := fuseName(r.body)
	if errno != 0 {
		return nil, errno
	}
	if n := dir.kids[name]; n != nil {
		return f.entryOut(n, out), 0
	}
	return nil, unix.ENOENT
}

func (f *fileSystem) read(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.fixed(40)
	if !ok || n.mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EINVAL
	}
	offset, size := binary.LittleEndian.Uint64(in[8:]), uint64(binary.LittleEndian.Uint32(in[16:]))
	if offset >= uint64(len(n.data)) {
		return out, 0
	}
	data := n.data[offset:]
	return append(out, data[:min(size, uint64(len(data)), fuseMaxWrite)]...), 0
}

// readdir lists from an offset, which is how many entries were given out.
func (f *fileSystem) readdir(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.fixed(40)
	if !ok || !n.dir() {
		return nil, unix.ENOTDIR
	}
	offset, size := binary.LittleEndian.Uint64(in[8:]), int(min(binary.LittleEndian.Uint32(in[16:]), fuseMaxWrite))
	room := len(out) + size
	for i := offset; i < uint64(len(n.order))+2; i++ {
		kid, name := n, "."
		switch {
		case i == 1:
			kid, name = n.parent, ".."
		case i > 1:
			kid, name = n.order[i-2], n.order[i-2].name
		}
		if len(out)+24+len(name)+7 > room {
			break
		}
		out = appendWords(out, kid.id, i+1)
		out = appendHalves(out, uint32(len(name)), kid.mode&unix.S_IFMT>>12)
		out = append(out, name...)
		for len(out)%8 != 0 { // the answer's header is a multiple, too
			out = append(out, 0)
		}
	}
	return out, 0
}

// change does what only the launch may do.
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
		return f.made(n, name, unix.S_IFLNK|0o777, []byte(target), out)
	case fuseUnlink, fuseRmdir:
		name, _, errno := fuseName(r.body)
		if errno == 0 {
			errno = f.tree.remove(n, name, r.op == fuseRmdir)
		}
		return out, errno
	case fuseWrite:
		in, data, ok := r.fixed(40)
		if !ok || uint64(binary.LittleEndian.Uint32(in[16:])) != uint64(len(data)) {
			return nil, unix.EINVAL
		}
		errno := f.tree.write(n, binary.LittleEndian.Uint64(in[8:]), data)
		return appendHalves(out, uint32(len(data)), 0), errno
	default:
		return f.setattr(n, r, out)
	}
}

// create makes a directory or an empty file.
func (f *fileSystem) create(dir *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	size := 8 // struct fuse_mkdir_in: mode, umask, which the kernel has applied
	if r.op == fuseMknod {
		size = 16 // struct fuse_mknod_in: mode, device, umask
	}
	in, rest, ok := r.fixed(size)
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
	case mode&unix.S_IFMT != unix.S_IFREG:
		return nil, unix.EPERM
	}
	return f.made(dir, name, mode, nil, out)
}

func (f *fileSystem) made(dir *node, name string, mode uint32, data []byte, out []byte) ([]byte, unix.Errno) {
	n, errno := f.tree.add(dir, name, mode, data)
	if errno != 0 {
		return nil, errno
	}
	return f.entryOut(n, out), 0
}

// setattr changes mode or size. Owner and times are what they are.
func (f *fileSystem) setattr(n *node, r fuseRequest, out []byte) ([]byte, unix.Errno) {
	in, _, ok := r.fixed(88)
	if !ok {
		return nil, unix.EINVAL
	}
	valid := binary.LittleEndian.Uint32(in)
	if valid&fuseSetSize != 0 {
		if errno := f.tree.resize(n, binary.LittleEndian.Uint64(in[16:])); errno != 0 {
			return nil, errno
		}
	}
	if valid&fuseSetMode != 0 {
		n.mode = n.mode&unix.S_IFMT | binary.LittleEndian.Uint32(in[68:])&0o7777
	}
	return f.attrOut(n, out), 0
}

// entryOut appends a struct fuse_entry_out: number, generation, how long the
// name and the attributes are good for.
func (f *fileSystem) entryOut(n *node, out []byte) []byte {
	out = appendWords(out, n.id, 0, fuseForever, fuseForever)
	return f.attr(n, appendHalves(out, 0, 0))
}

func (f *fileSystem) attrOut(n *node, out []byte) []byte {
	return f.attr(n, appendHalves(appendWords(out, fuseForever), 0, 0))
}

// attr appends a struct fuse_attr. Times are zero: they would say when the run
// began, and nobody asks.
func (f *fileSystem) attr(n *node, out []byte) []byte {
	size, links := uint64(len(n.data)), uint32(1)
	if n.dir() {
		links = 2
	}
	out = appendWords(out, n.id, size, (size+511)/512, 0, 0, 0)
	return appendHalves(out, 0, 0, 0, n.mode, links, f.uid, f.gid, 0, 4096, 0)
}
