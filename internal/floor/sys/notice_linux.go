package sys

import "golang.org/x/sys/unix"

// What inotify tells of a directory and of the files in it, and of a file that
// goes away (inotify(7)).
const (
	InCreate     = unix.IN_CREATE
	InDelete     = unix.IN_DELETE
	InDeleteSelf = unix.IN_DELETE_SELF
	InMoved      = unix.IN_MOVE // from or to
	InAttrib     = unix.IN_ATTRIB
	InCloseWrite = unix.IN_CLOSE_WRITE
)
