//go:build linux

package supervise

import (
	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// shape says what the arguments of a call are.
type shape uint8

const (
	shapeNone     shape = iota // nothing that is looked at
	shapeOpen                  // a path with flags of open(2)
	shapePath                  // a path
	shapeFD                    // a descriptor
	shapeTwo                   // two paths
	shapeSymlink               // a text and a path
	shapeExec                  // a path and arguments
	shapeSock                  // a socket address
	shapeMessage               // a struct msghdr
	shapeMessages              // several of them
	shapeLook                  // a path that is looked up and nothing else
)

// callInfo says which argument of a call is what. An index of none is an
// argument that it does not have.
type callInfo struct {
	action string
	shape  shape
	want   want
	stay   bool // the last component is not followed when it is a link
	dir    int8
	path   int8
	dir2   int8 // of the second path, or of the text
	path2  int8
	flags  int8 // AT_ flags, or those of open(2)
	arg    int8 // mode, owner, name of the attribute, length of the address
}

const none = -1

// newCall describes a call on one path.
func newCall(action string, w want, dir, path, flags, arg int8) callInfo {
	return callInfo{action: action, shape: shapePath, want: w, dir: dir, path: path, dir2: none, path2: none, flags: flags, arg: arg}
}

func (c callInfo) withShape(s shape) callInfo { c.shape = s; return c }
func (c callInfo) nofollow() callInfo         { c.stay = true; return c }

// withSecondPath adds the second path.
func (c callInfo) withSecondPath(dir, path int8) callInfo { c.dir2, c.path2 = dir, path; return c }

// callTable has what arrives on every architecture; legacyCalls has what came
// before the calls with a directory.
func callTable() map[uint32]callInfo {
	t := map[uint32]callInfo{
		unix.SYS_OPENAT:        newCall(event.FileOpen, wantRead, 0, 1, 2, 3).withShape(shapeOpen),
		unix.SYS_MKDIRAT:       newCall(event.FileMkdir, wantCreate, 0, 1, none, 2).nofollow(),
		unix.SYS_MKNODAT:       newCall(event.FileMknod, wantCreate, 0, 1, none, 2).nofollow(),
		unix.SYS_RENAMEAT2:     newCall(event.FileRename, wantRemove, 0, 1, 4, none).withSecondPath(2, 3).withShape(shapeTwo).nofollow(),
		unix.SYS_RENAMEAT:      newCall(event.FileRename, wantRemove, 0, 1, none, none).withSecondPath(2, 3).withShape(shapeTwo).nofollow(),
		unix.SYS_LINKAT:        newCall(event.FileLink, wantCreate, 2, 3, 4, none).withSecondPath(0, 1).withShape(shapeTwo).nofollow(),
		unix.SYS_SYMLINKAT:     newCall(event.FileSymlink, wantCreate, 1, 2, none, none).withSecondPath(none, 0).withShape(shapeSymlink).nofollow(),
		unix.SYS_UNLINKAT:      newCall(event.FileUnlink, wantRemove, 0, 1, none, none).nofollow(),
		unix.SYS_FCHMOD:        newCall(event.FileChmod, wantOwner, 0, none, none, 1).withShape(shapeFD),
		unix.SYS_FCHMODAT:      newCall(event.FileChmod, wantOwner, 0, 1, none, 2),
		unix.SYS_FCHMODAT2:     newCall(event.FileChmod, wantOwner, 0, 1, 3, 2),
		unix.SYS_FCHOWN:        newCall(event.FileChown, wantOwner, 0, none, none, 1).withShape(shapeFD),
		unix.SYS_FCHOWNAT:      newCall(event.FileChown, wantOwner, 0, 1, 4, 2),
		unix.SYS_TRUNCATE:      newCall(event.FileTruncate, wantWrite, none, 0, none, none),
		unix.SYS_SETXATTR:      newCall(event.FileXattr, wantOwner, none, 0, none, 1),
		unix.SYS_LSETXATTR:     newCall(event.FileXattr, wantOwner, none, 0, none, 1).nofollow(),
		unix.SYS_FSETXATTR:     newCall(event.FileXattr, wantOwner, 0, none, none, 1).withShape(shapeFD),
		unix.SYS_SETXATTRAT:    newCall(event.FileXattr, wantOwner, 0, 1, 2, 3),
		unix.SYS_REMOVEXATTR:   newCall(event.FileXattr, wantOwner, none, 0, none, 1),
		unix.SYS_LREMOVEXATTR:  newCall(event.FileXattr, wantOwner, none, 0, none, 1).nofollow(),
		unix.SYS_FREMOVEXATTR:  newCall(event.FileXattr, wantOwner, 0, none, none, 1).withShape(shapeFD),
		unix.SYS_REMOVEXATTRAT: newCall(event.FileXattr, wantOwner, 0, 1, 2, 3),
		unix.SYS_CONNECT:       newCall(event.SockConnect, wantReach, none, 1, none, 2).withShape(shapeSock),
		unix.SYS_BIND:          newCall(event.SockBind, wantCreate, none, 1, none, 2).withShape(shapeSock),
		unix.SYS_SENDTO:        newCall(event.SockSend, wantReach, none, 4, 3, 5).withShape(shapeSock),
		unix.SYS_SENDMSG:       newCall(event.SockSend, wantReach, none, 1, 2, none).withShape(shapeMessage),
		unix.SYS_SENDMMSG:      newCall(event.SockSend, wantReach, none, 1, 3, 2).withShape(shapeMessages),
		unix.SYS_EXECVE:        newCall(event.ProcExec, wantExec, none, 0, none, 1).withShape(shapeExec),
		unix.SYS_EXECVEAT:      newCall(event.ProcExec, wantExec, 0, 1, 4, 2).withShape(shapeExec),
	}
	for nr, c := range lookupCalls() {
		t[nr] = c
	}
	for nr, c := range legacyCalls() {
		t[nr] = c
	}
	return t
}
