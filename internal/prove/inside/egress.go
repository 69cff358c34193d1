//go:build linux

package inside

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func egressActions() map[string]Action {
	return map[string]Action{
		"dial":          dialAll,
		"http":          httpDirect,
		"shell-dial":    shellDial,
		"client-dial":   clientDial,
		"odd-dial":      oddDial,
		"low-sockets":   lowSockets,
		"join-file":     joinFile,
		"set-interface": setInterface,
		"own-loopback":  ownLoopback,
	}
}

// services returns the network and address of each listener that the row opened.
func services(p *Probe) [][2]string {
	var out [][2]string
	for line := range strings.SplitSeq(p.Arg("at"), "\n") {
		network, addr, _ := strings.Cut(line, " ")
		out = append(out, [2]string{network, addr})
	}
	return out
}

func dialAll(p *Probe) {
	for _, s := range services(p) {
		p.Read("dial "+s[0]+" "+s[1], func() ([]byte, error) {
			c, err := net.DialTimeout(s[0], s[1], 2*time.Second)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			return greet(c)
		})
	}
}

// greet sends a greeting and returns the answer.
func greet(c net.Conn) ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte("hello\n")); err != nil {
		return nil, err
	}
	b := make([]byte, 256)
	n, err := c.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil // it was sent; no answer is fine
	}
	return b[:n], err
}

func httpDirect(p *Probe) {
	c := &http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: 2 * time.Second}
	for _, s := range services(p) {
		p.Try("get http://"+s[1], func() error {
			resp, err := c.Get("http://" + s[1])
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			} else if ErrnoName(err) == "" {
				return nil // connected, but not to an HTTP server
			}
			return err
		})
	}
}

// client turns the exit status of a client into a denial: only the listener knows
// whether it got through.
func client(argv ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	err := exec.CommandContext(ctx, argv[0], argv[1:]...).Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited(), ctx.Err() != nil:
		return unix.ECONNREFUSED
	case errors.Is(err, exec.ErrNotFound):
		return unix.ENOENT
	}
	return err
}

func shellDial(p *Probe) {
	for _, s := range services(p) {
		host, port, err := net.SplitHostPort(s[1])
		if err != nil {
			return
		}
		p.Try("bash /dev/"+s[0], func() error {
			return client("bash", "-c", "exec 3<>/dev/"+s[0]+"/"+host+"/"+port+" && echo hello >&3")
		})
	}
}

// clientDial tries each available client; a shell must be there.
func clientDial(p *Probe) {
	shellDial(p)
	at := services(p)[0][1]
	host, port, _ := net.SplitHostPort(at)
	for _, argv := range [][]string{
		{"curl", "-s", "-m", "2", "--noproxy", "*", "http://" + at},
		{"wget", "-q", "-T", "2", "-t", "1", "-O", "/dev/null", "http://" + at},
		{"env", "NO_PROXY=*", "no_proxy=*", "curl", "-s", "-m", "2", "http://" + at},
		{"nc", "-w", "2", host, port},
		{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", "-o", "StrictHostKeyChecking=no", "-p", port, host, "true"},
		{"git", "ls-remote", "git://" + at + "/x"},
		{"openssl", "s_client", "-connect", at},
		{"python3", "-c", "import socket; socket.create_connection((\"" + host + "\", " + port + "), 2)"},
		{"perl", "-MIO::Socket::INET", "-e", "IO::Socket::INET->new(PeerAddr => \"" + at + "\", Timeout => 2) or exit 1"},
		{"node", "-e", "require(\"net\").connect(" + port + ", \"" + host + "\").on(\"error\", () => process.exit(1)).on(\"connect\", () => process.exit(0))"},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue
		}
		p.Try(strings.Join(argv[:1], " "), func() error { return client(argv...) })
	}
}

// oddDial connects without connect(2), and with other protocols.
func oddDial(p *Probe) {
	for _, s := range services(p) {
		addr, err := net.ResolveTCPAddr("tcp", s[1])
		if err != nil {
			return
		}
		to := &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
		p.Try("fast open", func() error {
			return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("hello\n"), unix.MSG_FASTOPEN, to)
			})
		})
		p.Try("multipath", func() error {
			return withSocket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, func(fd int) error { return connectTo(fd, to) })
		})
		p.Try("SCTP", func() error {
			return withSocket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, func(fd int) error { return connectTo(fd, to) })
		})
		p.Try("connect again after AF_UNSPEC", func() error {
			return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				_ = connectTo(fd, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}})
				return connectTo(fd, to)
			})
		})
	}
}

func withSocket(family, kind, proto int, f func(fd int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// lowSockets makes sockets and sends nothing.
func lowSockets(p *Probe) {
	fine := func(int) error { return nil }
	for _, s := range []struct {
		name                string
		family, kind, proto int
	}{
		{"raw ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"raw IP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW},
		{"raw IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0},
		{"packet datagram", unix.AF_PACKET, unix.SOCK_DGRAM, 0},
	} {
		p.Try(s.name, func() error { return withSocket(s.family, s.kind, s.proto, fine) })
	}
}

func joinFile(p *Probe) {
	p.Try("join "+p.Arg("path"), func() error {
		fd, err := unix.Open(p.Arg("path"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = Forked([]Call{C(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWNET)})
		return err
	})
}

// setInterface sets what it has just read.
func setInterface(p *Probe) {
	for _, c := range []struct {
		name     string
		get, set uint
	}{
		{"flags", unix.SIOCGIFFLAGS, unix.SIOCSIFFLAGS},
		{"MTU", unix.SIOCGIFMTU, unix.SIOCSIFMTU},
		{"queue length", unix.SIOCGIFTXQLEN, unix.SIOCSIFTXQLEN},
	} {
		p.Try("set the "+c.name+" of lo", func() error {
			return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
				req, err := unix.NewIfreq("lo")
				if err != nil {
					return err
				}
				if _, err := Raw(unix.SYS_IOCTL, uintptr(fd), uintptr(c.get), Pointer(req)); err != nil {
					return err
				}
				_, err = Raw(unix.SYS_IOCTL, uintptr(fd), uintptr(c.set), Pointer(req))
				return err
			})
		})
	}
}

// ownLoopback must work: a server and a client inside.
func ownLoopback(p *Probe) {
	p.Try("serve and reach it", func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte("hello\n"))
				c.Close()
			}
		}()
		c, err := net.DialTimeout("tcp", l.Addr().String(), 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = io.ReadAll(c)
		return err
	})
}

// connectTo is connect(2) until it is done: after a signal the connection continues
// in the background (EINTR), and the Go runtime sends signals.
func connectTo(fd int, to unix.Sockaddr) error {
	err := unix.Connect(fd, to)
	if err != unix.EINTR {
		return err
	}
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for err == unix.EINTR {
		_, err = unix.Poll(ready, 5000)
	}
	if err != nil {
		return err
	}
	if ready[0].Revents == 0 {
		return unix.ETIMEDOUT
	}
	number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && number != 0 {
		err = unix.Errno(number)
	}
	return err
}
