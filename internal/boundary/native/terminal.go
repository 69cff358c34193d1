//go:build linux

package native

import (
	"os"

	"golang.org/x/sys/unix"
)

// plainOutput leaves line ends of the command's terminal as they are (termios(3),
// OPOST): where its input is not the user's terminal, that one is not raw, and
// ends lines itself.
func plainOutput(master *os.File) {
	t, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
	if err != nil {
		return
	}
	t.Oflag &^= unix.OPOST
	unix.IoctlSetTermios(int(master.Fd()), unix.TCSETS, t)
}
