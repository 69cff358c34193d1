//go:build linux

package inside

import (
	"net"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// lendSocket has another program hold the socket through which a connection is
// made. That program is started first, so that its PID is the smaller one.
func lendSocket(p *Probe) {
	p.Try("connect by a socket that another program holds too", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		socket := os.NewFile(uintptr(fd), "socket")
		holder := exec.Command("sleep", "10")
		holder.ExtraFiles = []*os.File{socket}
		if err := holder.Start(); err != nil {
			return err
		}
		defer func() { _, _ = holder.Process.Kill(), holder.Wait() }()
		c := exec.Command(os.Args[0], "-child", p.nonce, "dial-lent", "port="+p.Arg("port"))
		c.ExtraFiles = []*os.File{socket}
		if err := c.Start(); err != nil {
			return err
		}
		_ = socket.Close()
		if c.Wait() != nil {
			return unix.ECONNREFUSED
		}
		return nil
	})
}

// dialLent connects its descriptor 3 once no process above it holds that any
// more.
func dialLent(p *Probe) {
	time.Sleep(300 * time.Millisecond)
	to, err := net.ResolveTCPAddr("tcp4", "127.0.0.1:"+p.Arg("port"))
	if err == nil {
		err = unix.Connect(3, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
	}
	buf := make([]byte, 16)
	if err == nil {
		_, err = unix.Write(3, []byte("lent"))
	}
	n := 0
	if err == nil {
		n, err = unix.Read(3, buf)
	}
	if err != nil || n == 0 {
		os.Exit(1)
	}
}
