package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Until reads from a file until End is called. A read of the file itself would go on
// waiting, and take what is meant for the next reader.
type Until struct {
	from        *os.File
	ended, open *os.File // two ends of a pipe: at the end of it From is left alone
}

// ReadUntil makes an Until of a file.
func ReadUntil(from *os.File) (*Until, error) {
	ended, open, err := os.Pipe()
	return &Until{from, ended, open}, err
}

// Read returns os.ErrClosed after End.
func (u *Until) Read(buf []byte) (int, error) {
	both := []unix.PollFd{{Fd: int32(u.from.Fd()), Events: unix.POLLIN}, {Fd: int32(u.ended.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(both, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("poll", err)
		}
		if both[1].Revents != 0 {
			return 0, os.ErrClosed
		}
		return u.from.Read(buf)
	}
}

// End ends the reading, also a read that waits.
func (u *Until) End() { u.open.Close() }
