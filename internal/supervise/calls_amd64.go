//go:build linux

package supervise

import (
	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

const (
	nativeABI = unix.AUDIT_ARCH_X86_64
	sysRmdir  = unix.SYS_RMDIR
	x32Bit    = 0x40000000 // __X32_SYSCALL_BIT (arch/x86/include/uapi/asm/unistd.h)

	resultRegister = 10 // rax in struct user_regs_struct (arch/x86/include/asm/user_64.h)
)

// legacyCalls are the additional calls of amd64.
func legacyCalls() map[uint32]callInfo {
	return map[uint32]callInfo{
		unix.SYS_OPEN:    newCall(event.FileOpen, wantRead, none, 0, 1, 2).withShape(shapeOpen),
		unix.SYS_CREAT:   newCall(event.FileWrite, wantWrite, none, 0, none, 1).withShape(shapeOpen),
		unix.SYS_MKDIR:   newCall(event.FileMkdir, wantCreate, none, 0, none, 1).nofollow(),
		unix.SYS_MKNOD:   newCall(event.FileMknod, wantCreate, none, 0, none, 1).nofollow(),
		unix.SYS_RENAME:  newCall(event.FileRename, wantRemove, none, 0, none, none).withSecondPath(none, 1).withShape(shapeTwo).nofollow(),
		unix.SYS_LINK:    newCall(event.FileLink, wantCreate, none, 1, none, none).withSecondPath(none, 0).withShape(shapeTwo).nofollow(),
		unix.SYS_SYMLINK: newCall(event.FileSymlink, wantCreate, none, 1, none, none).withSecondPath(none, 0).withShape(shapeSymlink).nofollow(),
		unix.SYS_UNLINK:  newCall(event.FileUnlink, wantRemove, none, 0, none, none).nofollow(),
		unix.SYS_RMDIR:   newCall(event.FileUnlink, wantRemove, none, 0, none, none).nofollow(),
		unix.SYS_CHMOD:   newCall(event.FileChmod, wantOwner, none, 0, none, 1),
		unix.SYS_CHOWN:   newCall(event.FileChown, wantOwner, none, 0, none, 1),
		unix.SYS_LCHOWN:  newCall(event.FileChown, wantOwner, none, 0, none, 1).nofollow(),

		unix.SYS_ACCESS:    lookup(none, 0, none).withMode(1),
		unix.SYS_READLINK:  lookup(none, 0, none).nofollow(),
		unix.SYS_UTIME:     lookup(none, 0, none),
		unix.SYS_UTIMES:    lookup(none, 0, none),
		unix.SYS_FUTIMESAT: lookup(0, 1, none),
	}
}
