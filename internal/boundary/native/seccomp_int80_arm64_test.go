//go:build linux

package native

// seccompInt80 has no counterpart: a 64 bit process of arm64 cannot enter the
// 32 bit call list. The answer is the one of a kernel without the call.
func seccompInt80(uint32) int32 { return -38 }
