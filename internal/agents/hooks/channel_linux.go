package hooks

import (
	"errors"
	"fmt"
	"net"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// errForged says that a program inside serves the channel.
var errForged = errors.New("a program inside took the place of the socket")

// servedOutside checks that the other end was made outside of this pid namespace,
// where its process has no number (SO_PEERCRED, unix(7)): what runs inside can put a
// socket of its own where that of the run was.
func servedOutside(c net.Conn) error {
	who, err := sys.Peer(c.(*net.UnixConn))
	if err != nil {
		return fmt.Errorf("asking who serves the channel: %w", err)
	}
	if who.Pid != 0 {
		return errForged
	}
	return nil
}
