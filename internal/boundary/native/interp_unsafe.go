//go:build linux && (amd64 || arm64)

package native

import "unsafe"

// interp is the interpreter in interp_$GOARCH.s. It is never called in this
// process: its bytes are the text of the launch program's ELF file.
//
//lint:ignore U1000 the assembly refers to it
func interp()

// interpEnd follows interp in the text segment.
//
//lint:ignore U1000 the assembly refers to it
func interpEnd()

// Entry points, set by the assembly: a Go function value would give the
// address of a wrapper.
var interpAddr, interpEndAddr *byte

// interpText returns a copy of the interpreter's machine code.
func interpText() []byte {
	n := int(uintptr(unsafe.Pointer(interpEndAddr)) - uintptr(unsafe.Pointer(interpAddr)))
	if n <= 0 || n > 4096 {
		panic("native: the linker moved the interpreter's end away from its start")
	}
	return append([]byte(nil), unsafe.Slice(interpAddr, n)...)
}
