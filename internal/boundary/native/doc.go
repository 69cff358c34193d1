// Package native is the boundary of the kernel's own parts: namespaces, mounts,
// Landlock, seccomp, control groups. It needs no root and no daemon.
//
// A launch is data. The supervisor writes a flat list of raw system calls
// (builder.go and the *_steps.go files, in the order in which they run), wraps
// it with an interpreter of some 400 bytes of machine code into a static ELF
// file in memory (program.go, elf.go, interp_*.s) and executes that. Its first
// process, the janitor, stays outside and outlives the supervisor by as much
// as cleaning up takes; its child is the first process inside; the child of
// that becomes the command. None of the three runs Go code, so there is no
// runtime, no allocation and no second thread between a fork and the exec, and
// what idles inside is a few pages.
package native
