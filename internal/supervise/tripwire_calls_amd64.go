//go:build linux

package supervise

import (
	"sync"

	"golang.org/x/sys/unix"
)

// pathCalls are the system calls of this machine that take a path, by number.
var pathCalls = sync.OnceValue(func() map[int]pathCall {
	calls := commonPathCalls()
	for nr, name := range map[int]string{
		unix.SYS_OPEN: "open", unix.SYS_STAT: "stat", unix.SYS_LSTAT: "lstat", unix.SYS_ACCESS: "access", unix.SYS_RENAME: "rename",
		unix.SYS_MKDIR: "mkdir", unix.SYS_RMDIR: "rmdir", unix.SYS_CREAT: "creat", unix.SYS_UNLINK: "unlink",
		unix.SYS_READLINK: "readlink", unix.SYS_CHMOD: "chmod", unix.SYS_CHOWN: "chown", unix.SYS_LCHOWN: "lchown",
		unix.SYS_UTIME: "utime", unix.SYS_UTIMES: "utimes", unix.SYS_MKNOD: "mknod", unix.SYS_USELIB: "uselib",
	} {
		calls[nr] = pathCall{name: name, dir: -1, path: 0, second: -1}
	}
	calls[unix.SYS_RENAME] = pathCall{name: "rename", dir: -1, path: 0, second: 1}
	calls[unix.SYS_LINK] = pathCall{name: "link", dir: -1, path: 0, second: 1}
	calls[unix.SYS_SYMLINK] = pathCall{name: "symlink", dir: -1, path: 1, second: -1}
	calls[unix.SYS_FUTIMESAT] = pathCall{name: "futimesat", dir: 0, path: 1, second: -1}
	return calls
})
