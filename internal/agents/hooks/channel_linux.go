package hooks

import (
	"errors"
	"fmt"
	"net"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// errForged means that a program inside serves the channel.
var errForged = errors.New("a program inside replaced the socket")

// servedOutside checks that the peer created its socket outside this pid
// namespace, where its process has no pid (SO_PEERCRED, unix(7)): a program
// inside can replace the run's socket by its own.
func servedOutside(c net.Conn) error {
	who, err := sys.Peer(c.(*net.UnixConn))
	if err != nil {
		return fmt.Errorf("identifying the server of the channel: %w", err)
	}
	if who.Pid != 0 {
		return errForged
	}
	return nil
}
