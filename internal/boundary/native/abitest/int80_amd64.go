package abitest

// Int80 calls number nr of the 32 bit system call list with int $0x80. The
// result is the kernel's: negative is an errno. It must be called on a kernel
// with IA32 emulation; without it the processor raises a fault.
//
//go:noescape
func Int80(nr, a, b, c uint32) int32
