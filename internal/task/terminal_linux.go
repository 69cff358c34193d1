package task

import (
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/sandbox"
)

// resizeTerminal sets the size of the command's terminal, whose programs learn
// of it by SIGWINCH (ioctl_tty(2)).
func resizeTerminal(master *os.File, size sandbox.WindowSize) {
	unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
}

// plainOutput leaves line ends of the command's terminal as they are
// (termios(3), OPOST).
func plainOutput(master *os.File) {
	t, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
	if err != nil {
		return
	}
	t.Oflag &^= unix.OPOST
	unix.IoctlSetTermios(int(master.Fd()), unix.TCSETS, t)
}
