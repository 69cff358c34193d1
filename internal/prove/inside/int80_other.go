//go:build linux && !amd64

package inside

import "golang.org/x/sys/unix"

// map32Bit does not exist here.
const map32Bit = 0

// int80 exists on amd64 only.
func int80(_, _, _, _, _, _ uint32) int32 { return -int32(unix.ENOSYS) }

// callVsyscall exists on amd64 only; see inVsyscall.
func callVsyscall() int64 { return 0 }

// portCalls are calls that only amd64 has.
func portCalls() []spelled { return nil }
