//go:build linux

package inside

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func netActions() map[string]Action {
	return map[string]Action{
		"net-get":         netGet,
		"net-say":         netSay,
		"net-tls":         netTLS,
		"net-dns":         netDNS,
		"net-tunnel":      netTunnel,
		"net-odd":         netOdd,
		"net-seize":       netSeize,
		"net-filter":      netFilter,
		"net-leak":        netLeak,
		"net-nested":      netNested,
		"net-wait":        netWait,
		"net-relay":       netRelay,
		"net-socks":       netSocks,
		"net-datagram":    netDatagram,
		"net-children":    netChildren,
		"net-follow":      netFollow,
		"net-secret":      netSecret,
		"net-h2":          netH2,
		"net-garbage":     netGarbage,
		"net-allowed":     netAllowed,
		"net-print":       netPrint,
		"net-environment": netEnvironment,
		"net-listeners":   netListeners,
	}
}

// sockaddr converts an address of either family.
func sockaddr(at netip.AddrPort) (int, unix.Sockaddr) {
	if a := at.Addr(); a.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: a.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

// netOdd connects in ways that a filter of connect(2) may not know.
func netOdd(p *Probe) {
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
	var all []attempt
	for line := range strings.SplitSeq(p.Arg("at"), "\n") {
		at, err := netip.ParseAddrPort(line)
		if err != nil {
			continue
		}
		family, to := sockaddr(at)
		for _, o := range oddWays(to) {
			all = append(all, attempt{o.name + " to " + line, func() ([]byte, error) { return requestOver(family, o.kind, o.proto, o.way) }})
		}
	}
	netAttempts(p, all)
}

type oddWay struct {
	name        string
	kind, proto int
	way         func(fd int) error
}

func oddWays(to unix.Sockaddr) []oddWay {
	direct := func(fd int) error { return connectTo(fd, to) }
	option := func(level, name, value int) func(int) error {
		return func(fd int) error {
			_ = unix.SetsockoptInt(fd, level, name, value)
			return connectTo(fd, to)
		}
	}
	return []oddWay{
		{"fast open", unix.SOCK_STREAM, 0, func(fd int) error {
			return unix.Sendto(fd, []byte("GET / HTTP/1.0\r\n\r\n"), unix.MSG_FASTOPEN, to)
		}},
		{"deferred fast open", unix.SOCK_STREAM, 0, option(unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1)},
		{"multipath TCP", unix.SOCK_STREAM, unix.IPPROTO_MPTCP, direct},
		{"SCTP", unix.SOCK_STREAM, unix.IPPROTO_SCTP, direct},
		{"DCCP", 6, 33, direct},
		{"a transparent socket", unix.SOCK_STREAM, 0, option(unix.SOL_IP, unix.IP_TRANSPARENT, 1)},
		{"a free-bound socket", unix.SOCK_STREAM, 0, option(unix.SOL_IP, unix.IP_FREEBIND, 1)},
		{"a marked socket", unix.SOCK_STREAM, 0, option(unix.SOL_SOCKET, unix.SO_MARK, 1)},
		{"a socket of high priority", unix.SOCK_STREAM, 0, option(unix.SOL_SOCKET, unix.SO_PRIORITY, 6)},
		{"a socket past the routing table", unix.SOCK_STREAM, 0, option(unix.SOL_SOCKET, unix.SO_DONTROUTE, 1)},
		{"a socket bound to lo", unix.SOCK_STREAM, 0, func(fd int) error {
			_ = unix.BindToDevice(fd, "lo")
			return connectTo(fd, to)
		}},
		{"a source route", unix.SOCK_STREAM, 0, func(fd int) error {
			_ = unix.SetsockoptString(fd, unix.SOL_IP, unix.IP_OPTIONS, "\x01\x83\x07\x04\x01\x02\x03\x04")
			return connectTo(fd, to)
		}},
		{"an address of its own choice", unix.SOCK_STREAM, 0, func(fd int) error {
			_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1)
			_ = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{1, 2, 3, 4}})
			return connectTo(fd, to)
		}},
		{"a datagram", unix.SOCK_DGRAM, 0, func(fd int) error {
			return unix.Sendto(fd, []byte("hello"), 0, to)
		}},
		{"a UDP-Lite datagram", unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, func(fd int) error {
			return unix.Sendto(fd, []byte("hello"), 0, to)
		}},
	}
}

// requestOver makes a socket, connects it with way, and requests a page.
func requestOver(family, kind, proto int, way func(int) error) ([]byte, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, err
	}
	// Not earlier, so that connecting is one system call.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
	err = way(fd)
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fd, true)
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if kind != unix.SOCK_DGRAM {
		fmt.Fprintf(c, "GET / HTTP/1.0\r\nHost: denied.test\r\n\r\n")
	} else {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		b := make([]byte, 512)
		n, err := c.Read(b)
		if n == 0 && os.IsTimeout(err) {
			return nil, refusedErr{"no answer"}
		}
		return b[:n], err
	}
	return listen(c)
}

// netSeize binds the addresses of the doors and then continues as before.
func netSeize(p *Probe) {
	reuse := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		})
	}}
	for line := range strings.SplitSeq(p.Arg("bind"), "\n") {
		network, addr, _ := strings.Cut(line, " ")
		p.Try("bind "+line, func() error {
			if network == "udp" {
				_, err := reuse.ListenPacket(context.Background(), network, addr)
				return err
			}
			l, err := reuse.Listen(context.Background(), network, addr)
			if err == nil {
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						c.Close()
					}
				}()
			}
			return err
		})
	}
	netGet(p)
}

// netFilter asks the kernel to drop every rule of its packet filter, and every
// route, by netlink(7).
func netFilter(p *Probe) {
	const batchBegin, batchEnd, deleteTable = 0x10, 0x11, 10<<8 | 2 // NFNL_MSG_BATCH_*, NFT_MSG_DELTABLE of linux/netfilter
	message := func(kind, flags uint16, body []byte) []byte {
		b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		b = binary.NativeEndian.AppendUint16(b, kind)
		b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
		return append(append(b, make([]byte, 8)...), body...)
	}
	batch := message(batchBegin, 0, []byte{0, 0, 0, 10})
	batch = append(batch, message(deleteTable, 0, []byte{0, 0, 0, 0})...)
	batch = append(batch, message(batchEnd, 0, []byte{0, 0, 0, 10})...)
	p.Try("drop every table of the packet filter", func() error { return netlink(unix.NETLINK_NETFILTER, batch) })
	route := []byte{unix.AF_INET, 32, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0,
		8, 0, byte(unix.RTA_DST), 0, 127, 9, 9, 8, 8, 0, byte(unix.RTA_OIF), 0, 1, 0, 0, 0}
	p.Try("add a route", func() error {
		return netlink(unix.NETLINK_ROUTE, message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, route))
	})
	address := []byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0, 8, 0, byte(unix.IFA_LOCAL), 0, 127, 9, 9, 9}
	p.Try("add an address", func() error {
		return netlink(unix.NETLINK_ROUTE, message(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, address))
	})
	netGet(p)
}

// netlink sends messages and returns the first error in the answers.
func netlink(family int, b []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 8192)
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if err != nil {
			return nil // no more answers
		}
		if n >= 20 && binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
			if errno := int32(binary.NativeEndian.Uint32(answer[16:])); errno != 0 {
				return unix.Errno(-errno)
			}
		}
	}
}

// netLeak searches files for strings that only the host's network has.
func netLeak(p *Probe) {
	for pattern := range strings.SplitSeq(p.Arg("path"), "\n") {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			p.Try("find the host's network in "+path, func() error {
				b, err := os.ReadFile(path)
				for needle := range strings.SplitSeq(p.Arg("find"), "\n") {
					if strings.Contains(string(b), needle) {
						return nil
					}
				}
				if err == nil {
					err = unix.ENOENT
				}
				return err
			})
		}
	}
}

// netNested tries from a network namespace of its own.
func netNested(p *Probe) {
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
	p.Child("in namespaces of its own", "net-get", &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
	}, "ok=none")
}

// netWait reports that it is there and works, and waits for a file to be made.
func netWait(p *Probe) {
	netControls(p, nil)
	if name := p.Arg("resolve"); name != "" {
		p.Control("resolve "+name, func() error {
			found, err := net.DefaultResolver.LookupHost(context.Background(), name)
			if err != nil {
				return err
			}
			return os.WriteFile(p.Arg("there")+".found", []byte(strings.Join(found, "\n")), 0o644)
		})
	}
	p.Control("say that it is there", func() error { return os.WriteFile(p.Arg("there"), []byte(os.Getenv(p.Arg("env"))), 0o644) })
	p.Control("wait", func() error {
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(p.Arg("until")); err == nil {
				return nil
			}
		}
		return os.ErrDeadlineExceeded
	})
	p.Try("nothing", func() error { return unix.ENOENT })
}

// netRelay runs a relay to the proxy, and tries through that.
func netRelay(p *Probe) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.Control("a relay listens", func() error { return err })
		return
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				up, err := net.Dial("tcp", proxyDoor)
				if err != nil {
					return
				}
				defer up.Close()
				go func() { _, _ = up.(*net.TCPConn).ReadFrom(c) }()
				_, _ = c.(*net.TCPConn).ReadFrom(up)
			}()
		}
	}()
	relayed := func(arg string) (all []attempt) {
		for _, t := range doorLines(p.Arg(arg)) {
			all = append(all, attempt{"relayed " + t[1], func() ([]byte, error) { return fetch(t[0]+"@"+l.Addr().String(), t[1]) }})
		}
		return all
	}
	netMust(p, relayed("ok"))
	netAttempts(p, relayed("try"))
}

// netDatagram sends datagrams. One's own socket always accepts them: only the
// outside knows whether they arrived.
func netDatagram(p *Probe) {
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
	netAttempts(p, linesOf(p.Arg("at"), func(addr string) ([]byte, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		c, err := dialDirect("udp", host, port)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			return nil, err
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		b := make([]byte, 512)
		n, err := c.Read(b)
		if n == 0 && os.IsTimeout(err) {
			return nil, refusedErr{"no answer"}
		}
		return b[:n], err
	}))
}

// netTunnel carries data out in names below a suffix, as many as its arguments
// say. Only the resolver outside knows what got out.
func netTunnel(p *Probe) {
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
	var count, size, labels int
	_, _ = fmt.Sscan(p.Arg("labels"), &labels)
	_, _ = fmt.Sscan(p.Arg("count"), &count)
	_, _ = fmt.Sscan(p.Arg("size"), &size)
	var answered atomic.Int64
	var done sync.WaitGroup
	next := make(chan int)
	for range 8 {
		done.Go(func() {
			for i := range next {
				label := strings.Repeat(fmt.Sprintf("%06x", i), size/6+1)[:size]
				name := strings.TrimSuffix(strings.Repeat(label+".", max(labels, 1)), ".")
				if _, err := fetch("direct", "http://"+name+"."+p.Arg("below")+"/"); err == nil {
					answered.Add(1)
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	done.Wait()
	p.Try(fmt.Sprintf("%d of %d names answered", answered.Load(), count), func() error {
		if answered.Load() == int64(count) {
			return nil
		}
		return unix.ECONNREFUSED
	})
}

// netChildren has a program that knows of no proxy make the request.
func netChildren(p *Probe) {
	netControls(p, nil)
	p.Child("in a process of another session", "net-get", &syscall.SysProcAttr{Setsid: true})
}
