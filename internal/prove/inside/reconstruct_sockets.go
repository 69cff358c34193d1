//go:build linux

package inside

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// deedPort is the first port of the loopback that deeds use.
const deedPort = 47101

// socketDeeds connect to other processes and hosts.
func socketDeeds(p *Probe) []Deed {
	w := deedDir(p.Arg("W"))
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

// unusedPID is higher than any PID (PID_MAX_LIMIT of Linux).
const unusedPID = 1<<22 + 1

// callDeeds make system calls that a boundary refuses, with arguments that change
// nothing without one.
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
		call("ptrace", unix.SYS_PTRACE, unix.PTRACE_ATTACH, unusedPID, 0, 0),
		call("bpf", unix.SYS_BPF, 0, 0, 0),
		call("keyctl", unix.SYS_KEYCTL, 0, 0, 0, 0, 0),
		call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0),
		call("init_module", unix.SYS_INIT_MODULE, 0, 0, 0),
		call("userfaultfd", unix.SYS_USERFAULTFD, 0),
	}
}
