package netstack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// device is a TUN device: one packet is read or written by each call.
type device struct {
	file *os.File
	raw  interface {
		Read(func(fd uintptr) bool) error
		Write(func(fd uintptr) bool) error
	}
}

// openDevice checks that f is what New asks for, and sets how it behaves: the
// header's length, and that the kernel may leave checksums and segmentation to
// us. Neither needs a capability (drivers/net/tun.c).
func openDevice(f *os.File) (*device, error) {
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("TUN device is not in non-blocking mode: %w", err)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("TUN device: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = configure(int(fd)) }); err != nil {
		return nil, fmt.Errorf("TUN device: %w", err)
	}
	if failed != nil {
		return nil, failed
	}
	return &device{file: f, raw: raw}, nil
}

func configure(fd int) error {
	req, err := unix.NewIfreq("")
	if err != nil {
		return fmt.Errorf("reading the flags of the TUN device: %w", err)
	}
	if err := unix.IoctlIfreq(fd, unix.TUNGETIFF, req); err != nil {
		return fmt.Errorf("reading the flags of the TUN device: %w", err)
	}
	const mask = unix.IFF_TUN | unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR
	if got, want := req.Uint16()&mask, uint16(unix.IFF_TUN|unix.IFF_NO_PI|unix.IFF_VNET_HDR); got != want {
		return fmt.Errorf("TUN device %s has flags %#x, not %#x", req.Name(), got, want)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, vnetSize); err != nil {
		return fmt.Errorf("setting the header of the TUN device: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6); err != nil {
		return fmt.Errorf("setting the offloads of the TUN device: %w", err)
	}
	return nil
}

// read waits for a packet: its header into head, the rest into body. It returns
// how long the rest is.
func (d *device) read(head, body []byte) (int, error) {
	var n int
	var err error
	parts := [][]byte{head, body}
	closed := d.raw.Read(func(fd uintptr) bool {
		for {
			n, err = unix.Readv(int(fd), parts)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	switch {
	case closed != nil:
		return 0, fmt.Errorf("reading the TUN device: %w", closed)
	case err != nil:
		return 0, fmt.Errorf("reading the TUN device: %w", err)
	case n < len(head):
		return 0, fmt.Errorf("reading the TUN device: %w", io.ErrUnexpectedEOF)
	}
	return n - len(head), nil
}

// write sends one packet given in parts, the first of which is its header. It does not
// wait: if the kernel has no room for it, that is an error.
func (d *device) write(parts [][]byte) error {
	var err error
	closed := d.raw.Write(func(fd uintptr) bool {
		for {
			_, err = unix.Writev(int(fd), parts)
			if !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	if closed != nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing to the TUN device: %w", err)
	}
	return nil
}

func (d *device) close() { d.file.Close() }
