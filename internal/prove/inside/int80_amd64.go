//go:build linux

package inside

import "golang.org/x/sys/unix"

// int80 makes an i386 system call. A result between -4095 and -1 is the negative
// errno.
//
//go:noescape
func int80(nr, a, b, c, d, e uint32) int32

// callVsyscall calls time() on the page at a fixed address that old programs use.
func callVsyscall() int64

const map32Bit = unix.MAP_32BIT

// portCalls are calls that only this architecture has.
func portCalls() []spelled {
	return []spelled{
		{"iopl", unix.SYS_IOPL, 110, []uintptr{3}},
		{"ioperm", unix.SYS_IOPERM, 101, []uintptr{0x80, 1, 1}},
		{"modify_ldt, to read", unix.SYS_MODIFY_LDT, 123, []uintptr{0, badPointer, 16}},
		{"modify_ldt, to write", unix.SYS_MODIFY_LDT, 123, []uintptr{0x11, badPointer, 16}},
		{"vm86", 0, 166, []uintptr{0, badPointer}},
		{"vm86old", 0, 113, []uintptr{badPointer}},
	}
}
