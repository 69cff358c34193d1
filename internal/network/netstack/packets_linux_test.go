package netstack

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRootNameQueries(t *testing.T) {
	w := launch(t, usual)
	for _, to := range []string{"1.1.1.1:53", "10.9.8.7:53", "[2001:db8::53]:53"} {
		// Connected: the kernel takes the answer only from the address that was asked.
		c, err := w.dial(unix.SOCK_DGRAM, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 512, queryBytes} {
			question := bytes.Repeat([]byte{'q'}, size)
			if _, err := c.Write(question); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, queryBytes)
			n, asked, client, err := w.s.Packets().Read(b)
			if err != nil || asked.String() != to || client.String() != c.LocalAddr().String() || !bytes.Equal(b[:n], question) {
				t.Fatalf("read %d bytes to %s from %s, %v", n, asked, client, err)
			}
			answer := bytes.Repeat([]byte{'a'}, 3*size)
			if err := w.s.Packets().Write(answer, asked, client); err != nil {
				t.Fatal(err)
			}
			b = make([]byte, 1<<16)
			if n, err = c.Read(b); err != nil || !bytes.Equal(b[:n], answer) {
				t.Errorf("%s: the answer is %d bytes, %v", to, n, err)
			}
		}
	}
}

func TestRootOtherDatagramsAreRefused(t *testing.T) {
	w := launch(t, usual)
	for _, to := range []string{"198.51.100.7:443", "[2001:db8::1]:443", "9.9.9.9:5353"} {
		for _, size := range []int{0, 1, 1350, 9000} {
			c, err := w.dial(unix.SOCK_DGRAM, to)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%d bytes to %s: %v", size, to, err)
			}
			c.Close()
		}
	}
}

func TestRootPingIsAnsweredWithProhibited(t *testing.T) {
	w := launch(t, usual)
	fd := w.socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	f := os.NewFile(uintptr(fd), "icmp")
	defer f.Close()
	limit := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	_, sa := sockaddr("198.51.100.7:0")
	if err := unix.Sendto(fd, []byte{echo4, 0, 0xf7, 0xfd, 0, 1, 0, 1}, 0, sa); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2048)
	n, from, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if a := from.(*unix.SockaddrInet4).Addr; a != [4]byte{198, 51, 100, 7} || n < 28 || b[20] != unreachable4 || b[21] != prohibited4 {
		t.Errorf("%x from %v", b[:n], a)
	}
}
