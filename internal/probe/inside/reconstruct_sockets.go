//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where deeds aim: addresses of documentation (RFC 5737, RFC 3849) and ports of the
// inner loopback, which nobody else uses.
const (
	deedHost  = "192.0.2.77"
	deedHost6 = "2001:db8::77"
	deedName  = "deed.example"
	deedPort  = 47101
)

// socketDeeds reach for other processes and hosts.
func socketDeeds(p *Probe) []Deed {
	w := place(p.Arg("W"))
	unixAt := func(name string) *unix.SockaddrUnix { return &unix.SockaddrUnix{Name: name} }
	here := func(port int) *unix.SockaddrInet4 {
		return &unix.SockaddrInet4{Port: deedPort + port, Addr: [4]byte{127, 0, 0, 1}}
	}
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", deedPort+port) }
	stream := func(family int, f func(fd int) error) func() error {
		return func() error { return withSocket(family, unix.SOCK_STREAM, 0, f) }
	}
	socket := func(what, action, object string, do func() error) Deed {
		return Deed{Kind: "socket", What: what, Action: action, Object: object, do: do}
	}
	return []Deed{
		socket("a socket that is not there", "sock.connect", "unix:"+w.path("s-none"), stream(unix.AF_UNIX, func(fd int) error { return unix.Connect(fd, unixAt(w.path("s-none"))) })),
		socket("a file that is no socket", "sock.connect", "unix:"+p.In("W", "given", "o"), stream(unix.AF_UNIX, func(fd int) error { return unix.Connect(fd, unixAt(p.In("W", "given", "o"))) })),
		{Kind: "socket", What: "a socket outside", Action: "sock.connect", Object: "unix:" + p.In("O", "s"), Denied: true, do: stream(unix.AF_UNIX, func(fd int) error { return unix.Connect(fd, unixAt(p.In("O", "s"))) })},
		socket("a socket of its own", "sock.bind", "unix:"+w.path("s-own"), stream(unix.AF_UNIX, func(fd int) error {
			return errors.Join(unix.Bind(fd, unixAt(w.path("s-own"))), unix.Listen(fd, 1), reach(unix.AF_UNIX, unixAt(w.path("s-own"))))
		})),
		socket("to a socket of its own", "sock.connect", "unix:"+w.path("s-own"), func() error { return nil }),
		socket("a name that is there", "sock.bind", "unix:"+p.In("W", "given", "y"), stream(unix.AF_UNIX, func(fd int) error { return unix.Bind(fd, unixAt(p.In("W", "given", "y"))) })),
		socket("an abstract socket that is not there", "sock.connect", "unix:@deed-none", stream(unix.AF_UNIX, func(fd int) error { return unix.Connect(fd, unixAt("@deed-none")) })),
		socket("an abstract socket", "sock.bind", "unix:@deed-own", stream(unix.AF_UNIX, func(fd int) error { return unix.Bind(fd, unixAt("@deed-own")) })),
		socket("a port", "sock.bind", at(0), stream(unix.AF_INET, func(fd int) error {
			return errors.Join(unix.Bind(fd, here(0)), unix.Listen(fd, 1), reach(unix.AF_INET, here(0)))
		})),
		socket("to a port of its own", "sock.connect", at(0), func() error { return nil }),
		socket("a port that nobody listens on", "sock.connect", at(1), func() error { return reach(unix.AF_INET, here(1)) }),
		socket("a datagram", "sock.send", at(2), func() error {
			return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error { return unix.Sendto(fd, []byte("x"), 0, here(2)) })
		}),
	}
}

func reach(family int, to unix.Sockaddr) error {
	return withSocket(family, unix.SOCK_STREAM, 0, func(fd int) error { return unix.Connect(fd, to) })
}

// netDeeds go to other machines, which nothing allows. What comes back depends on
// how the network is made, so it is not compared.
func netDeeds() []Deed {
	no := func(error) string { return "" }
	out := func(what, action, object string, do func() error) Deed {
		return Deed{Kind: "network", What: what, Action: action, Object: object, Denied: true, do: do, status: no}
	}
	dial := func(network, to string) func() error {
		return func() error {
			c, err := net.DialTimeout(network, to, 2*time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			_, err = c.Write([]byte("GET /deed HTTP/1.1\r\nHost: " + deedName + "\r\n\r\n"))
			_, _ = c.Read(make([]byte, 100))
			return err
		}
	}
	return []Deed{
		out("a connection", "sock.connect|net.connect|net.request", deedHost+":80", dial("tcp", deedHost+":80")),
		out("a connection by IPv6", "sock.connect|net.connect|net.request", "["+deedHost6+"]:80", dial("tcp", "["+deedHost6+"]:80")),
		out("a datagram to a host", "sock.send|sock.connect|net.connect", deedHost+":9999", dial("udp", deedHost+":9999")),
	}
}

// callDeeds make system calls that a boundary refuses.
func callDeeds() []Deed {
	call := func(name string, nr uintptr, args ...uintptr) Deed {
		return Deed{Kind: "call", What: name, Action: "sys.call", Object: name, Denied: true, do: func() error { _, err := Raw(nr, args...); return err }}
	}
	return []Deed{
		call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		call("setns", unix.SYS_SETNS, 0, 0),
		call("mount", unix.SYS_MOUNT, 0, 0, 0, 0, 0),
		call("pivot_root", unix.SYS_PIVOT_ROOT, 0, 0),
		call("chroot", unix.SYS_CHROOT, 0),
		call("ptrace", unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0, 0),
		call("bpf", unix.SYS_BPF, 0, 0, 0),
		call("keyctl", unix.SYS_KEYCTL, 0, 0, 0, 0, 0),
		call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0),
		call("init_module", unix.SYS_INIT_MODULE, 0, 0, 0),
		call("userfaultfd", unix.SYS_USERFAULTFD, 0),
	}
}

// nameDeed asks for a name at the server that /etc/resolv.conf names, if there is one.
func nameDeed() []Deed {
	return []Deed{{Kind: "network", What: "a name", Action: "net.query", Object: deedName, Denied: true, status: func(error) string { return "" }, do: func() error {
		server := ""
		if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
			for line := range strings.Lines(string(b)) {
				if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
					server = f[1]
				}
			}
		}
		if server == "" {
			return errNotHere
		}
		c, err := net.DialTimeout("udp", net.JoinHostPort(server, "53"), time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		query := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
		for label := range strings.SplitSeq(deedName, ".") {
			query = append(append(query, byte(len(label))), label...)
		}
		_, err = c.Write(append(query, 0, 0, 1, 0, 1))
		_, _ = c.Read(make([]byte, 512))
		return err
	}}}
}
