//go:build linux

package sensors

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestAProcessIsFoundByItsConnection looks at one of our own.
func TestAProcessIsFoundByItsConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var who clients
	who.begin(os.Getpid(), tableOfSockets(t), func(pid int) event.Process { return event.Process{PID: pid, Exec: 7} })
	defer who.end()
	local, remote := endsOf(c)
	p := who.find(local, remote)
	exe, _ := os.Executable()
	if p.PID != os.Getpid() || p.Exec != 7 || p.Executable != exe || len(p.SHA256) != 64 {
		t.Errorf("%+v", p)
	}
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other := exec.Command("cat") // another program that was given the socket
	other.ExtraFiles = []*os.File{f}
	wait, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	p = who.find(local, remote)
	wait.Close()
	if err := other.Wait(); err != nil || p.PID != 0 || p.Executable != "" {
		t.Errorf("of two programs' it is said to be %+v, %v", p, err)
	}
	if p := who.find(remote, netip.AddrPortFrom(local.Addr(), 1)); p.PID != 0 {
		t.Errorf("of nobody's: %+v", p)
	}
}

// tableOfSockets is what a launch hands out, of our own network.
func tableOfSockets(t testing.TB) (table *os.File) {
	t.Helper()
	testenv.Need(t, "sock_diag", func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		table = os.NewFile(uintptr(fd), "table of sockets")
		return err
	})
	return table
}

func endsOf(c net.Conn) (local, remote netip.AddrPort) {
	local, remote = c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(local.Addr().Unmap(), local.Port()), netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
}

// TestTheKernelAndItsListNameTheSameSocket compares what is asked for with what is read.
func TestTheKernelAndItsListNameTheSameSocket(t *testing.T) {
	table := newSockets(tableOfSockets(t))
	defer table.close()
	for _, row := range []struct{ listen, dial string }{
		{"127.0.0.1:0", ""}, {"[::1]:0", ""}, {"[::]:0", "127.0.0.1"}, {"127.0.0.1:0", "::ffff:127.0.0.1"},
	} {
		t.Run(row.listen+" "+row.dial, func(t *testing.T) {
			var l net.Listener
			testenv.Need(t, "ipv6", func() (err error) { l, err = net.Listen("tcp", row.listen); return err })
			defer l.Close()
			c := dialled(t, l.Addr().(*net.TCPAddr), row.dial)
			local, remote := endsOf(c)
			asked, err := table.inode(local, remote)
			if read := listedInode(os.Getpid(), local, remote); err != nil || asked != read || asked == "" || asked == "0" {
				t.Errorf("asked %q, %v; read %q", asked, err, read)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer accepted.Close()
			other, err := table.inode(remote, local)
			if err != nil || other == asked || other != listedInode(os.Getpid(), remote, local) {
				t.Errorf("the socket at the other end is %q, %v", other, err)
			}
			c.Close()
			if gone, err := table.inode(local, remote); err == nil && gone != "0" {
				t.Errorf("closed, it is still said to be %q", gone)
			}
			if found, err := table.inode(remote, netip.AddrPortFrom(local.Addr(), 1)); err == nil { // where it listens
				t.Errorf("a connection that is none is said to be %q", found)
			}
		})
	}
}

// dialled connects to a listener, by another address where one is given: a mapped one
// is dialled with a socket of IPv6.
func dialled(t *testing.T, at *net.TCPAddr, by string) net.Conn {
	t.Helper()
	a := netip.AddrPortFrom(at.AddrPort().Addr(), uint16(at.Port))
	if by != "" {
		a = netip.AddrPortFrom(netip.MustParseAddr(by), uint16(at.Port))
	}
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: at.Port, Addr: a.Addr().As16()})
	if a.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: at.Port, Addr: a.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "client")
	defer f.Close()
	if err := unix.Connect(fd, to); err != nil {
		t.Fatal(err)
	}
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkSocketOfAConnection asks the kernel, and reads its list.
func BenchmarkSocketOfAConnection(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	local, remote := endsOf(c)
	table := newSockets(tableOfSockets(b))
	defer table.close()
	b.Run("asked", func(b *testing.B) {
		for b.Loop() {
			if inode, err := table.inode(local, remote); inode == "" || err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("listed", func(b *testing.B) {
		for b.Loop() {
			if listedInode(os.Getpid(), local, remote) == "" {
				b.Fatal("not found")
			}
		}
	})
}
