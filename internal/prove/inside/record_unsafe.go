//go:build linux

package inside

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	header unix.Msghdr
	_      [2]uint32 // how much of it was sent, and padding
}

// messageTo is a message of one byte to a loopback port.
func messageTo(address *unix.RawSockaddrInet4, iov *unix.Iovec) (m mmsghdr) {
	m.header.Name, m.header.Namelen = (*byte)(unsafe.Pointer(address)), unix.SizeofSockaddrInet4
	m.header.Iov, m.header.Iovlen = iov, 1
	return m
}

// portOfLoopback is a port of 127.0.0.1.
func portOfLoopback(port int) *unix.RawSockaddrInet4 {
	return &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port<<8 | port>>8), Addr: [4]byte{127, 0, 0, 1}}
}

// oneByte is what is sent.
func oneByte() *unix.Iovec {
	text := []byte("x")
	return &unix.Iovec{Base: &text[0], Len: 1}
}
