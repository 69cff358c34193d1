//go:build linux

package sensors

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
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
	who.begin(os.Getpid(), func(pid int) event.Process { return event.Process{PID: pid, Exec: 7} })
	peer, port := c.LocalAddr().(*net.TCPAddr).AddrPort(), l.Addr().(*net.TCPAddr).Port
	p := who.find(peer, port)
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
	p = who.find(peer, port)
	wait.Close()
	if err := other.Wait(); err != nil || p.PID != 0 || p.Executable != "" {
		t.Errorf("of two programs' it is said to be %+v, %v", p, err)
	}
	if p := who.find(l.Addr().(*net.TCPAddr).AddrPort(), 1); p.PID != 0 && p.PID != os.Getpid() {
		t.Errorf("of nobody's: %+v", p)
	}
}

func BenchmarkProcessOfAConnection(b *testing.B) {
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
	var who clients
	who.begin(os.Getpid(), func(pid int) event.Process { return event.Process{PID: pid} })
	for b.Loop() {
		if p := who.find(c.LocalAddr().(*net.TCPAddr).AddrPort(), 0); p.PID != os.Getpid() {
			b.Fatal(p)
		}
	}
}
