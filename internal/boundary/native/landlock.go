//go:build linux

package native

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// Rights by what they allow (landlock(7)); each ABI added some.
const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE

	rightsWriteFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	rightsMake = unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER

	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE | rightsWriteFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	scopeAbstract = 1 << 0 // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, ABI 6
	scopeSignal   = 1 << 1 // LANDLOCK_SCOPE_SIGNAL, ABI 6
)

// handledRights are the rights that a kernel of this ABI can withhold. MAKE_CHAR
// and MAKE_BLOCK are among them and are granted nowhere.
func handledRights(abi int) uint64 {
	rights := uint64(1<<13 - 1) // ABI 1: EXECUTE to MAKE_SYM
	if abi >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// landlockABI asks the kernel; 0 means that there is no Landlock or that it is
// switched off at boot.
var landlockABI = sync.OnceValue(func() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
})

// landlock is the second wall: over the same view, on dentries instead of
// mounts, so that a descriptor or a handle that should not exist opens nothing.
func (b *builder) landlock() {
	abi := b.facts.landlock
	handled := handledRights(abi)
	size, scoped := 8, uint64(0)
	if abi >= 6 {
		size = 24
		if !b.omit["landlock-scopes"] {
			scoped = scopeAbstract | scopeSignal
		}
	}
	set := b.slot()
	b.call("landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, []any{b.words(handled, 0, scoped), size, 0}, into(set))
	rule := func(path string, rights uint64) {
		attr := b.words(rights&handled, 0) // packed: rights, 32-bit descriptor
		fd := ref(attr + 8)
		b.call("landlock open "+path, unix.SYS_OPENAT, []any{unix.AT_FDCWD, b.str(path), openPath, 0}, into(fd))
		b.call("landlock rule "+path, unix.SYS_LANDLOCK_ADD_RULE, []any{set, unix.LANDLOCK_RULE_PATH_BENEATH, attr, 0})
		b.closeFD(fd)
	}
	rule("/", rightsRead)
	rule("/dev", rightsWriteFile|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	if b.facts.privProc {
		rule("/proc", rightsWriteFile)
	}
	for _, p := range b.parts {
		switch {
		case p.access == policy.Read, p.access == policy.Copy && !p.dir:
		case p.dir:
			rule(p.at, rightsRead|rightsWriteFile|rightsMake)
		default:
			rule(p.at, (rightsRead|rightsWriteFile)&rightsOfFiles)
		}
	}
	flags := 0
	if o := b.spec.Observe; o != nil && o.Denials != nil && b.facts.landlock >= 7 {
		flags = logNewExec
	}
	b.call("landlock restrict", unix.SYS_LANDLOCK_RESTRICT_SELF, []any{set, flags}, want(0))
	b.closeFD(set)
}

// logNewExec lets the kernel write denials into the audit records also after the
// command was executed (LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON, kernel 6.15).
const logNewExec = 1 << 1

// lastCapability is the highest capability of the kernel (capabilities(7));
// dropping one that it does not know would fail.
var lastCapability = sync.OnceValue(func() int {
	raw, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return unix.CAP_LAST_CAP
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || n < 0 || n > 63 {
		return unix.CAP_LAST_CAP
	}
	return n
})
