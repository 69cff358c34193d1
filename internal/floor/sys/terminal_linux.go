package sys

import (
	"fmt"
	"os"

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

// SetTerminalSize sets the size of a terminal in characters; its programs learn
// of it by SIGWINCH (ioctl_tty(2)).
func SetTerminalSize(f *os.File, rows, cols uint16) error {
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		return fmt.Errorf("setting terminal size: %w", err)
	}
	return nil
}
