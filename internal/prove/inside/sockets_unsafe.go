//go:build linux

package inside

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// namePointer returns addr as a message header needs it.
func namePointer(addr *unix.RawSockaddrUnix) *byte { return (*byte)(unsafe.Pointer(addr)) }
