package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what was received and not read (tcflush(3)).
func flushInput(f *os.File) { unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
