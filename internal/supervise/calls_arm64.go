//go:build linux

package supervise

import "golang.org/x/sys/unix"

const (
	nativeABI = unix.AUDIT_ARCH_AARCH64
	sysRmdir  = -1 // arm64 has none
	x32Bit    = 0

	resultRegister = 0 // x0 in struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h)
)

// legacyCalls: arm64 came after them and has none.
func legacyCalls() map[uint32]callInfo { return nil }
