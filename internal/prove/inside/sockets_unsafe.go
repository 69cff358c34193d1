//go:build linux

package inside

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// namePointer is addr as a message header wants it.
func namePointer(addr *unix.RawSockaddrUnix) *byte { return (*byte)(unsafe.Pointer(addr)) }
