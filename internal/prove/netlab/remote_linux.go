package netlab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// serve is the process of the other side. It makes sockets on request and keeps
// none. It ends with the near side, when the socket has no peer left: that end is
// closed on execution, so no program started there holds it.
func serve(fd, near int) error {
	unix.CloseOnExec(fd)
	unix.CloseOnExec(near)
	namespace, err := nearNamespace(near)
	if err != nil {
		_ = unix.Sendmsg(fd, []byte(err.Error()), nil, nil, 0) // instead of the first answer
		return err
	}
	buf := make([]byte, 1024)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return sweep(namespace)
		}
		f, err := answer(string(buf[:n]))
		text, rights := "ok", []byte(nil)
		switch {
		case err != nil:
			text = err.Error()
		case f != nil:
			rights = unix.UnixRights(int(f.Fd()))
		}
		err = unix.Sendmsg(fd, []byte(text[:min(len(text), 1000)]), rights, nil, 0)
		if f != nil {
			f.Close()
		}
		if err != nil && !errors.Is(err, unix.EPIPE) {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// nearNamespace returns the name of the namespace behind the descriptor near. Its
// processes will be killed, so it must be a network namespace, and neither this
// process's nor the machine's.
func nearNamespace(near int) (string, error) {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", near))
	if err != nil {
		return "", err
	}
	for _, other := range []string{"/proc/self/ns/net", "/proc/1/ns/net"} {
		if to, err := os.Readlink(other); err == nil && to == namespace {
			return "", fmt.Errorf("%s is the network namespace %s, and not one of a private network", namespace, other)
		}
	}
	if !strings.HasPrefix(namespace, "net:[") {
		return "", fmt.Errorf("%s is not a network namespace", namespace)
	}
	return namespace, nil
}

func answer(request string) (*os.File, error) {
	network, addr, _ := strings.Cut(request, " ")
	// No address is assigned here: packets to all of them arrive.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var errs []error
		err := c.Control(func(fd uintptr) {
			errs = append(errs, unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1))
			_ = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1) // fails for an IPv4 socket
		})
		return errors.Join(append(errs, err)...)
	}}
	switch network {
	case "up":
		return nil, remoteSide()
	case "tcp":
		l, err := config.Listen(context.Background(), network, addr)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		return l.(*net.TCPListener).File()
	case "udp":
		c, err := config.ListenPacket(context.Background(), network, addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.(*net.UDPConn).File()
	}
	return nil, fmt.Errorf("no socket is called %q", network)
}

// sweepTime is how long leftover processes of a network are killed for: each may
// start others before it is killed.
const sweepTime = 5 * time.Second

// sweep kills every process that is still in the network namespace near, which
// belonged to the ended process alone.
func sweep(near string) error {
	for end := time.Now().Add(sweepTime); ; time.Sleep(10 * time.Millisecond) {
		left := members(near, os.Getpid())
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes are left in the network", len(left))
		}
		for _, pid := range left {
			endMember(near, pid)
		}
	}
}

// members returns the processes in a network namespace.
func members(namespace string, but int) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	var out []int
	for _, link := range links {
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil || pid == but {
			continue
		}
		if to, err := os.Readlink(link); err == nil && to == namespace {
			out = append(out, pid)
		}
	}
	return out
}

// endMember kills a process if it is in that namespace. If its number is reused
// meanwhile, the descriptor does not follow it.
func endMember(namespace string, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	if to, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && to == namespace {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
