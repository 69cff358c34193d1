//go:build linux

package native

import (
	"sync"

	"golang.org/x/sys/unix"
)

// callConstants are the names a condition of the table may use. Their values are
// the same on every architecture that has a list.
var callConstants = sync.OnceValue(func() map[string]uint32 {
	return map[string]uint32{
		"S_ISUID":  unix.S_ISUID,
		"S_ISGID":  unix.S_ISGID,
		"S_IFMT":   unix.S_IFMT,
		"S_IFCHR":  unix.S_IFCHR,
		"S_IFBLK":  unix.S_IFBLK,
		"O_CREAT":  unix.O_CREAT,
		"O_WRONLY": unix.O_WRONLY,
		"O_RDWR":   unix.O_RDWR,
		"O_TRUNC":  unix.O_TRUNC,
		"TMPFILE":  0x400000, // O_TMPFILE without the O_DIRECTORY that differs by architecture
		"WHITEOUT": unix.RENAME_WHITEOUT,

		"CLONE_VM":        unix.CLONE_VM,
		"CLONE_FS":        unix.CLONE_FS,
		"CLONE_FILES":     unix.CLONE_FILES,
		"CLONE_SIGHAND":   unix.CLONE_SIGHAND,
		"CLONE_THREAD":    unix.CLONE_THREAD,
		"CLONE_VFORK":     unix.CLONE_VFORK,
		"CLONE_SYSVSEM":   unix.CLONE_SYSVSEM,
		"CLONE_NEWNS":     unix.CLONE_NEWNS,
		"CLONE_NEWCGROUP": unix.CLONE_NEWCGROUP,
		"CLONE_NEWUTS":    unix.CLONE_NEWUTS,
		"CLONE_NEWIPC":    unix.CLONE_NEWIPC,
		"CLONE_NEWUSER":   unix.CLONE_NEWUSER,
		"CLONE_NEWPID":    unix.CLONE_NEWPID,
		"CLONE_NEWNET":    unix.CLONE_NEWNET,

		"AF_UNIX":        unix.AF_UNIX,
		"AF_INET":        unix.AF_INET,
		"AF_INET6":       unix.AF_INET6,
		"AF_NETLINK":     unix.AF_NETLINK,
		"SOCK_TYPE_MASK": 0xf, // include/linux/net.h; what is above it are flags
		"SOCK_STREAM":    unix.SOCK_STREAM,
		"SOCK_DGRAM":     unix.SOCK_DGRAM,
		"SOCK_RAW":       unix.SOCK_RAW,
		"SOCK_SEQPACKET": unix.SOCK_SEQPACKET,
		"IPPROTO_TCP":    unix.IPPROTO_TCP,
		"IPPROTO_UDP":    unix.IPPROTO_UDP,
		"SOCK_PACKET":    unix.SOCK_PACKET,
		"IPPROTO_ICMP":   unix.IPPROTO_ICMP,
		"IPPROTO_ICMPV6": unix.IPPROTO_ICMPV6,
		"NETLINK_ROUTE":  unix.NETLINK_ROUTE,

		"TIOCSTI":   unix.TIOCSTI,
		"TIOCLINUX": 0x541c, // include/uapi/asm-generic/ioctls.h
		"TIOCSETD":  unix.TIOCSETD,
		"TIOCCONS":  unix.TIOCCONS,

		// include/uapi/linux/fs.h, fsverity.h and f2fs.h, as machines of 64 bits have them
		"FS_IOC_GETFLAGS":       0x80086601,
		"FS_IOC_GETVERSION":     0x80087601,
		"EXT4_IOC_GETVERSION":   0x80086603,
		"FS_IOC_FSGETXATTR":     0x801c581f,
		"FS_IOC_FIEMAP":         0xc020660b,
		"FS_IOC_MEASURE_VERITY": 0xc0046686,
		"F2FS_IOC_GET_FEATURES": 0x8004f50c, // SQLite asks for it on every file system
		"FICLONE":               unix.FICLONE,
		"FICLONERANGE":          unix.FICLONERANGE,
		"FIDEDUPERANGE":         unix.FIDEDUPERANGE,

		"F_SETLEASE":      unix.F_SETLEASE,
		"F_SETDELEG":      1024 + 16, // kernel 6.19: a lease on a directory
		"AT_EXECVE_CHECK": 0x10000,
		"PR_SET_MM":       unix.PR_SET_MM,
		"NEW_LISTENER":    unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,

		// arch/x86/include/uapi/asm/prctl.h
		"ARCH_SET_GS":             0x1001,
		"ARCH_SET_FS":             0x1002,
		"ARCH_GET_FS":             0x1003,
		"ARCH_GET_GS":             0x1004,
		"ARCH_GET_CPUID":          0x1011,
		"ARCH_GET_XCOMP_SUPP":     0x1021,
		"ARCH_GET_XCOMP_PERM":     0x1022,
		"ARCH_REQ_XCOMP_PERM":     0x1023,
		"ARCH_CET_STATUS":         0x3001, // asked by older glibc; the kernel answers EINVAL
		"ARCH_GET_UNTAG_MASK":     0x4001,
		"ARCH_ENABLE_TAGGED_ADDR": 0x4002,
		"ARCH_GET_MAX_TAG_BITS":   0x4003,
		"ARCH_FORCE_TAGGED_SVA":   0x4004,
		"ARCH_SHSTK_ENABLE":       0x5001,
		"ARCH_SHSTK_DISABLE":      0x5002,
		"ARCH_SHSTK_LOCK":         0x5003,
		"ARCH_SHSTK_STATUS":       0x5005,
	}
})
