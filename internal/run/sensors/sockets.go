//go:build linux

package sensors

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// sockets finds the socket of one network that has two given addresses. It asks the
// kernel for exactly that one (sock_diag(7)): for a list of all, such as
// /proc/PID/net/tcp, the kernel walks a table of the whole host, which takes
// milliseconds.
type sockets struct {
	mu    sync.Mutex // one question at a time
	file  *os.File   // netlink socket that was opened in that network
	asked uint32     // number of the last question
}

// newSockets owns file; nil gives nil.
func newSockets(file *os.File) *sockets {
	if file == nil {
		return nil
	}
	return &sockets{file: file}
}

func (s *sockets) close() {
	if s != nil {
		s.file.Close()
	}
}

var errNoTable = errors.New("the kernel has no socket table")

// Structures of linux/inet_diag.h behind a struct nlmsghdr.
const (
	diagRequest = unix.NLMSG_HDRLEN + 56 // struct inet_diag_req_v2
	diagAnswer  = unix.NLMSG_HDRLEN + 72 // struct inet_diag_msg
	diagID      = unix.NLMSG_HDRLEN + 4  // struct inet_diag_sockid, in an answer
	diagInode   = diagAnswer - 4
)

// inode is the inode of the TCP socket whose own address is local and whose peer's is
// remote, 0 if its process has closed it. An error means that the kernel did not report
// it.
func (s *sockets) inode(local, remote netip.AddrPort) (inode string, err error) {
	if s == nil {
		return "", errNoTable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := s.file.SyscallConn()
	if err != nil {
		return "", err
	}
	if rerr := raw.Control(func(fd uintptr) { inode, err = s.ask(int(fd), local, remote) }); rerr != nil {
		return "", rerr
	}
	return inode, err
}

// ask sends one question. The kernel answers before sendto(2) returns.
func (s *sockets) ask(fd int, local, remote netip.AddrPort) (string, error) {
	s.asked++
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(fd, question(s.asked, local, remote), unix.MSG_DONTWAIT, kernel); err != nil {
		return "", fmt.Errorf("querying a socket: %w", err)
	}
	answer := make([]byte, 1<<10)
	for {
		n, from, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
		if err != nil {
			return "", fmt.Errorf("querying a socket: %w", err)
		}
		sender, ok := from.(*unix.SockaddrNetlink)
		if !ok || sender.Pid != 0 || n < unix.NLMSG_HDRLEN || binary.NativeEndian.Uint32(answer[8:]) != s.asked {
			continue // not of the kernel, or of another question
		}
		if n < diagAnswer || binary.NativeEndian.Uint16(answer[4:]) != unix.SOCK_DIAG_BY_FAMILY || !isBetween(answer[diagID-4:], local, remote) {
			return "", errNoTable // an error, or a listener instead of the connection
		}
		return strconv.FormatUint(uint64(binary.NativeEndian.Uint32(answer[diagInode:])), 10), nil
	}
}

// question is the message that asks for the socket of a connection.
func question(number uint32, local, remote netip.AddrPort) []byte {
	b := make([]byte, 0, diagRequest)
	b = binary.NativeEndian.AppendUint32(b, diagRequest)
	b = binary.NativeEndian.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, number)
	b = append(b, 0, 0, 0, 0) // whose socket: the kernel fills it in
	family := byte(unix.AF_INET6)
	if local.Addr().Is4() {
		family = unix.AF_INET
	}
	b = append(b, family, unix.IPPROTO_TCP, 0, 0)
	b = append(b, 0xff, 0xff, 0xff, 0xff) // of every state
	b = binary.BigEndian.AppendUint16(b, local.Port())
	b = binary.BigEndian.AppendUint16(b, remote.Port())
	for _, a := range []netip.AddrPort{local, remote} {
		room := make([]byte, 16)
		copy(room, a.Addr().AsSlice())
		b = append(b, room...)
	}
	b = append(b, 0, 0, 0, 0)                                        // of every device
	return append(b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // INET_DIAG_NOCOOKIE
}

// isBetween reports whether a struct inet_diag_msg is about a socket with these
// addresses.
func isBetween(msg []byte, local, remote netip.AddrPort) bool {
	id := msg[4:]
	at := func(port, address int) netip.AddrPort {
		a := netip.AddrFrom16([16]byte(id[address : address+16]))
		if msg[0] == unix.AF_INET {
			a = netip.AddrFrom4([4]byte(id[address : address+4]))
		}
		return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(id[port:]))
	}
	return at(0, 4) == local && at(2, 20) == remote
}

// listedInode is inode from the list of all TCP sockets of the network of a process, ""
// for none (proc_pid_net(5)).
func listedInode(pid int, local, remote netip.AddrPort) string {
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			continue
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 {
				continue
			}
			own, ok := listedAddress(fields[1])
			peer, ok2 := listedAddress(fields[2])
			if ok && ok2 && own == local && peer == remote {
				return fields[9]
			}
		}
	}
	return ""
}

// listedAddress reads an address as the kernel writes it there: words of four bytes
// in the order of the machine, each as eight digits.
func listedAddress(text string) (netip.AddrPort, bool) {
	words, digits, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(words)
	port, perr := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil || perr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	a, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), ok
}
