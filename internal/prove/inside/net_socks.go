//go:build linux

package inside

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// netSocks uses the parts of SOCKS that a proxy may have forgotten. Each line of
// try is "COMMAND HOST:PORT": socks4, socks4a, bind or associate.
func netSocks(p *Probe) {
	netControls(p, [][2]string{{"socks", "http://allowed.test/"}})
	netAttempts(p, linesOf(p.Arg("try"), func(line string) ([]byte, error) {
		command, target, _ := strings.Cut(line, " ")
		return socksCommand(command, target)
	}))
}

func socksCommand(command, target string) ([]byte, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", proxyDoor, netPatience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(netPatience)); err != nil {
		return nil, err
	}
	address := socksAddress(host, port)
	switch command {
	case "socks4", "socks4a":
		if err := socks4(c, command, host, address); err != nil {
			return nil, err
		}
	case "bind", "associate":
		number := map[string]byte{"bind": 2, "associate": 3}[command]
		if _, err := c.Write([]byte{5, 1, 0}); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			return nil, err
		}
		if _, err := c.Write(append([]byte{5, number, 0}, address...)); err != nil {
			return nil, err
		}
		b := make([]byte, 10)
		if _, err := io.ReadFull(c, b); err != nil {
			return nil, err
		}
		if b[1] != 0 {
			return nil, refusedErr{fmt.Sprintf("SOCKS reply %d", b[1])}
		}
		if command == "associate" {
			return sendRelayed(b, address)
		}
	}
	fmt.Fprintf(c, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", host)
	return listen(c)
}

func socks4(c net.Conn, command, host string, address []byte) error {
	b := append([]byte{4, 1}, address[len(address)-2:]...)
	if command == "socks4" {
		b = append(append(b, address[1:5]...), 0)
	} else {
		b = append(append(append(b, 0, 0, 0, 1, 0), host...), 0)
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	reply := make([]byte, 8)
	if _, err := io.ReadFull(c, reply); err != nil {
		return err
	}
	if reply[1] != 90 {
		return refusedErr{fmt.Sprintf("SOCKS reply %d", reply[1])}
	}
	return nil
}

// sendRelayed sends a datagram to the relay in a reply.
func sendRelayed(reply, address []byte) ([]byte, error) {
	at := fmt.Sprintf("%d.%d.%d.%d:%d", reply[4], reply[5], reply[6], reply[7], binary.BigEndian.Uint16(reply[8:]))
	c, err := net.Dial("udp", at)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(append(append([]byte{0, 0, 0}, address...), "hello"...)); err != nil {
		return nil, err
	}
	return listen(c)
}
