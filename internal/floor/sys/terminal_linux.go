package sys

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// FlushInput drops what a terminal received and no program has read yet
// (tcflush(3)).
func FlushInput(f *os.File) error {
	if err := unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return fmt.Errorf("flushing terminal input: %w", err)
	}
	return nil
}

// AwaitQuiet waits until no key was pressed on a terminal for a time, and reports whether
// that was so before the most that it may take. The keys are dropped and not shown, Ctrl-C
// among them.
func AwaitQuiet(f *os.File, still, most time.Duration) (quiet bool, err error) {
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return false, fmt.Errorf("reading the modes of the terminal: %w", err)
	}
	keys := *old // a key is seen at once, not with its line
	keys.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETSF, &keys); err != nil {
		return false, fmt.Errorf("setting the modes of the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, unix.IoctlSetTermios(fd, unix.TCSETSF, old)) }()
	for end := time.Now().Add(most); time.Now().Before(end); {
		came := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(came, int(still.Milliseconds()))
		if n == 0 && err == nil {
			return true, nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) || came[0].Revents&unix.POLLHUP != 0 {
			return false, err
		}
		if err := FlushInput(f); err != nil {
			return false, err
		}
	}
	return false, nil
}

// SetTerminalSize sets the size of a terminal in characters; its programs learn
// of it by SIGWINCH (ioctl_tty(2)).
func SetTerminalSize(f *os.File, rows, cols uint16) error {
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		return fmt.Errorf("setting terminal size: %w", err)
	}
	return nil
}
