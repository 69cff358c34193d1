//go:build linux

package native

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Numbers of calls that x/sys/unix names differently or whose arguments need a
// constant that it lacks.
const (
	cloneNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	signalChild = int(unix.SIGCHLD)
	openPath    = unix.O_PATH | unix.O_CLOEXEC
)

// Descriptors that the first process of a launch inherits.
const (
	fdControl = 3 // seqpacket socket to the supervisor: requests, reports, failures
	fdJanitor = 4 // seqpacket socket: closed when the supervisor is gone
	fdPortal  = 5 // seqpacket socket: asks for sockets of the inner network
	fdBinary  = 6 // this executable, for the orphaned command
	fdAlive   = 7 // seqpacket socket: at its end when the janitor is dead
	fdHeld    = 8 // its other side, which the janitor alone keeps open
	fdTrees   = 9 // detached mounts, where the supervisor had to make them
)

// Kinds of messages on the control socket; each is three 64-bit words.
const (
	msgFailed  = 1  // operation, result: a step failed
	msgSpawned = 2  // pid: the first process inside, as the janitor sees it
	msgReady   = 3  // -: the command's process is complete and waits
	msgStatus  = 4  // wait status of the command
	msgNoExec  = 5  // errno bits: nothing could be executed
	msgMaster  = 6  // -: the terminal's master side comes along
	msgDoor    = 7  // kind, detail: a socket of the inner network comes along
	msgWatch   = 8  // number of the listener of the filter, to be taken; waits for a word
	msgRoot    = 9  // -: sends the device of the root's file system
	msgStore   = 10 // -: sends the directory for what private files hold; waits for a word
	msgLimited = 11 // -: the first process waits for a word that it is in its control groups
	msgSockets = 12 // -: sends a netlink socket that reports the sockets of the inner network
)

// message appends a step that sends one message. fields are given its address, to
// fill in its second and third word.
func (p *program) message(name string, kind uint64, fields ...func(addr uint64)) {
	addr := p.words(kind, 0, 0)
	for _, f := range fields {
		f(addr)
	}
	p.call(name, unix.SYS_WRITE, []any{fdControl, addr, 24}, ignored())
}

// rights stores a struct msghdr that sends size bytes at buf along with one
// descriptor (unix(7), cmsg(3)), and returns its address and where the number of
// the descriptor goes.
func (p *program) rights(buf uint64, size int) (msg uint64, fd ref) {
	header := make([]byte, unix.CmsgSpace(4))
	binary.LittleEndian.PutUint64(header, uint64(unix.CmsgLen(4)))
	binary.LittleEndian.PutUint32(header[8:], unix.SOL_SOCKET)
	binary.LittleEndian.PutUint32(header[12:], unix.SCM_RIGHTS)
	control := p.bytes(header)
	iov := p.words(buf, uint64(size))
	return p.words(0, 0, iov, 1, control, uint64(len(header)), 0), ref(control + 16)
}

// clone appends a fork. The raw call's argument order differs between
// architectures, but with no stack, ids or TLS only the flags matter.
func (p *program) clone(name string, flags int, pid ref, child *label) {
	p.call(name, unix.SYS_CLONE, []any{flags | signalChild, 0, 0, 0, 0}, into(pid), goIfZero(child))
}

// await waits for a word on the control socket; it ends the process when the
// supervisor is gone.
func (p *program) await(name string) {
	gone, next := &label{}, &label{}
	p.call(name, unix.SYS_READ, []any{fdControl, p.words(0), 8}, goIfZero(gone))
	p.goTo(next)
	p.placeLabel(gone)
	p.exit(125)
	p.placeLabel(next)
}

// mapIDs gives a new user namespace one user and one group, of the same numbers as
// outside.
func (b *builder) mapIDs() {
	b.writeFile("deny setgroups", "/proc/self/setgroups", "deny")
	b.writeFile("map user id", "/proc/self/uid_map", fmt.Sprintf("%d %d 1", b.facts.uid, b.facts.uid))
	b.writeFile("map group id", "/proc/self/gid_map", fmt.Sprintf("%d %d 1", b.facts.gid, b.facts.gid))
}

// exit ends the process.
func (p *program) exit(code int) {
	p.call("exit", unix.SYS_EXIT_GROUP, []any{code})
}

// mkdir makes a directory and its parents, as far as they are missing.
func (b *builder) mkdir(path string, mode int) {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			b.mkdirOne(path[:i], 0o755)
		}
	}
	b.mkdirOne(path, mode)
}

func (b *builder) mkdirOne(path string, mode int) {
	if b.made[path] {
		return
	}
	b.made[path] = true
	if b.serve(path, unix.S_IFDIR|uint32(mode), "") {
		return
	}
	b.call("mkdir "+path, unix.SYS_MKDIRAT, []any{unix.AT_FDCWD, b.str(path), mode}, or(-int64(unix.EEXIST)))
}

// file makes a file of the boundary's own with the given content.
func (b *builder) file(path, content string, mode int) {
	served := b.serve(path, unix.S_IFREG|uint32(mode), content)
	b.own[path] = true
	if served {
		return
	}
	fd := b.slot()
	b.call("create "+path, unix.SYS_OPENAT,
		[]any{unix.AT_FDCWD, b.str(path), unix.O_CREAT | unix.O_WRONLY | unix.O_EXCL | unix.O_CLOEXEC, mode}, into(fd))
	if content != "" {
		b.call("write "+path, unix.SYS_WRITE, []any{fd, b.str(content), len(content)}, want(int64(len(content))))
	}
	b.closeFD(fd)
}

func (p *program) closeFD(fd ref) {
	p.call("close", unix.SYS_CLOSE, []any{fd}, ignored())
}

// mountFile makes an empty file to mount another over.
func (b *builder) mountFile(path string, how ...option) {
	if b.serve(path, unix.S_IFREG|0o444, "") {
		return
	}
	b.call("mknod "+path, unix.SYS_MKNODAT, []any{unix.AT_FDCWD, b.str(path), unix.S_IFREG | 0o444, 0}, how...)
}

// link makes a symbolic link.
func (b *builder) link(l viewLink) {
	served := b.serve(l.at, unix.S_IFLNK|0o777, l.target)
	b.own[l.at] = true
	if served {
		return
	}
	b.call("symlink "+l.at, unix.SYS_SYMLINKAT, []any{b.str(l.target), unix.AT_FDCWD, b.str(l.at)})
}

// openNoLinks opens path without following any link in it: the path was
// resolved before, and a link that is there now was put there since. With
// O_NOFOLLOW in last it may end at a link, which is opened itself (openat2(2)).
func (b *builder) openNoLinks(name, path string, last uint64, fd ref) {
	how := b.words(openPath|last, 0, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	b.call(name, unix.SYS_OPENAT2, []any{unix.AT_FDCWD, b.str(path), how, 24}, into(fd))
}

// cloneTree makes a detached copy of the mounts at fd.
func (b *builder) cloneTree(name string, fd, tree ref) {
	b.call(name, unix.SYS_OPEN_TREE, []any{fd, b.empty,
		unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE}, into(tree))
}

// attributes sets mount attributes on all mounts of a detached tree.
func (b *builder) attributes(name string, tree ref, set uint64) {
	b.call(name, unix.SYS_MOUNT_SETATTR,
		[]any{tree, b.empty, unix.AT_EMPTY_PATH | unix.AT_RECURSIVE, b.words(set, 0, 0, 0), 32})
}

// attach moves a detached tree to a path.
func (b *builder) attach(name string, tree ref, path string) {
	b.over[path] = true
	b.call(name, unix.SYS_MOVE_MOUNT,
		[]any{tree, b.empty, unix.AT_FDCWD, b.str(path), unix.MOVE_MOUNT_F_EMPTY_PATH})
	b.closeFD(tree)
}

// attachOver moves a detached tree over what fd is open on.
func (b *builder) attachOver(name string, tree, fd ref) {
	b.call(name, unix.SYS_MOVE_MOUNT,
		[]any{tree, b.empty, fd, b.empty, unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH})
	b.closeFD(tree)
	b.closeFD(fd)
}

// cloneMount makes a detached copy of the mount at a path, without those below it.
func (b *builder) cloneMount(name, from string) (tree ref) {
	tree = b.slot()
	b.call(name+": clone", unix.SYS_OPEN_TREE, []any{unix.AT_FDCWD, b.str(from),
		unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW}, into(tree))
	return tree
}

// overlay mounts a writable layer over a directory; work is a directory of the
// file system of upper (Documentation/filesystems/overlayfs.rst). Nothing in a user
// namespace may set other marks than attributes of the kind user. (userxattr, since
// Linux 5.11).
func (b *builder) overlay(name, lower, upper, work string, attrs int) ref {
	tree := b.slot()
	b.filesystem(name, "overlay", [][2]string{{"lowerdir", lower}, {"upperdir", upper}, {"workdir", work}, {"userxattr", ""}}, attrs, tree)
	return tree
}

// attachOverlay mounts a writable layer over a directory for good.
func (b *builder) attachOverlay(name, lower, upper, work, at string) {
	tree := b.overlay(name, lower, upper, work, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	b.attach("attach "+at, tree, at)
	b.expectMount(at, "overlay", false, true, false)
}

// filesystem makes a new file system and leaves it detached in tree.
func (b *builder) filesystem(name, fstype string, options [][2]string, attrs int, tree ref) {
	fs := b.slot()
	b.call(name+": fsopen "+fstype, unix.SYS_FSOPEN, []any{b.str(fstype), unix.FSOPEN_CLOEXEC}, into(fs))
	for _, o := range options {
		if o[1] == "" {
			b.call(name+": "+o[0], unix.SYS_FSCONFIG, []any{fs, unix.FSCONFIG_SET_FLAG, b.str(o[0]), 0, 0})
			continue
		}
		b.call(name+": "+o[0]+"="+o[1], unix.SYS_FSCONFIG, []any{fs, unix.FSCONFIG_SET_STRING, b.str(o[0]), b.str(o[1]), 0})
	}
	b.call(name+": create", unix.SYS_FSCONFIG, []any{fs, unix.FSCONFIG_CMD_CREATE, 0, 0, 0})
	b.call(name+": fsmount", unix.SYS_FSMOUNT, []any{fs, unix.FSMOUNT_CLOEXEC, attrs}, into(tree))
	b.closeFD(fs)
}

// writeFile writes content to an existing file.
func (b *builder) writeFile(name, path, content string) {
	fd := b.slot()
	b.call(name+": open", unix.SYS_OPENAT, []any{unix.AT_FDCWD, b.str(path), unix.O_WRONLY | unix.O_CLOEXEC, 0}, into(fd))
	b.call(name+": write", unix.SYS_WRITE, []any{fd, b.str(content), len(content)}, want(int64(len(content))))
	b.closeFD(fd)
}
