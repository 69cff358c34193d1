//go:build linux

package supervise

import "golang.org/x/sys/unix"

// commonPathCalls are the system calls of every machine that take a path.
func commonPathCalls() map[int]pathCall {
	calls := map[int]pathCall{}
	for nr, name := range map[int]string{
		unix.SYS_EXECVE: "execve", unix.SYS_CHDIR: "chdir", unix.SYS_CHROOT: "chroot", unix.SYS_STATFS: "statfs",
		unix.SYS_TRUNCATE: "truncate", unix.SYS_UMOUNT2: "umount2", unix.SYS_SETXATTR: "setxattr", unix.SYS_LSETXATTR: "lsetxattr",
		unix.SYS_GETXATTR: "getxattr", unix.SYS_LGETXATTR: "lgetxattr", unix.SYS_LISTXATTR: "listxattr",
		unix.SYS_LLISTXATTR: "llistxattr", unix.SYS_REMOVEXATTR: "removexattr", unix.SYS_LREMOVEXATTR: "lremovexattr",
		unix.SYS_SWAPON: "swapon", unix.SYS_ACCT: "acct", unix.SYS_PIVOT_ROOT: "pivot_root",
	} {
		calls[nr] = pathCall{name: name, dir: -1, path: 0, second: -1}
	}
	for nr, name := range map[int]string{
		unix.SYS_OPENAT: "openat", unix.SYS_OPENAT2: "openat2", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_STATX: "statx",
		unix.SYS_FACCESSAT: "faccessat", unix.SYS_FACCESSAT2: "faccessat2", unix.SYS_READLINKAT: "readlinkat",
		unix.SYS_MKDIRAT: "mkdirat", unix.SYS_MKNODAT: "mknodat", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_FCHMODAT: "fchmodat",
		unix.SYS_FCHMODAT2: "fchmodat2", unix.SYS_FCHOWNAT: "fchownat", unix.SYS_UTIMENSAT: "utimensat",
		unix.SYS_EXECVEAT: "execveat", unix.SYS_NAME_TO_HANDLE_AT: "name_to_handle_at", unix.SYS_OPEN_TREE: "open_tree",
	} {
		calls[nr] = pathCall{name: name, dir: 0, path: 1, second: -1}
	}
	for nr, name := range map[int]string{unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_LINKAT: "linkat"} {
		calls[nr] = pathCall{name: name, dir: 0, path: 1, second: 3}
	}
	calls[unix.SYS_SYMLINKAT] = pathCall{name: "symlinkat", dir: 1, path: 2, second: -1}
	calls[unix.SYS_INOTIFY_ADD_WATCH] = pathCall{name: "inotify_add_watch", dir: -1, path: 1, second: -1}
	calls[unix.SYS_FANOTIFY_MARK] = pathCall{name: "fanotify_mark", dir: 3, path: 4, second: -1}
	calls[unix.SYS_MOUNT] = pathCall{name: "mount", dir: -1, path: 1, second: -1}
	calls[unix.SYS_CONNECT] = pathCall{name: "connect", dir: -1, path: 1, second: -1, socket: true}
	calls[unix.SYS_BIND] = pathCall{name: "bind", dir: -1, path: 1, second: -1, socket: true}
	calls[unix.SYS_SENDTO] = pathCall{name: "sendto", dir: -1, path: 4, second: -1, socket: true}
	return calls
}
