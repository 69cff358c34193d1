package netstack

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkBulk moves data between a client inside and a server on the loopback
// outside, relayed with a buffer of 128 KiB, beside the same without a relay.
func BenchmarkBulk(b *testing.B) {
	const size = 64 << 20
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	go serveBulk(server)
	w := launch(b, usual)
	go relayAll(w.s.Listener(), server.Addr().String())
	dials := map[string]func() net.Conn{
		"direct": func() net.Conn {
			c, err := net.Dial("tcp", server.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			return c
		},
		"stack": func() net.Conn {
			family, sa := sockaddr("198.51.100.7:80")
			fd := w.socket(family, unix.SOCK_STREAM, 0)
			if err := unix.Connect(fd, sa); err != nil {
				b.Fatal(err)
			}
			return fileConn(b, fd)
		},
	}
	for _, direction := range []string{"download", "upload"} {
		for _, way := range []string{"direct", "stack"} {
			for _, n := range []int{1, 32} {
				b.Run(direction+"/"+way+"/"+map[int]string{1: "one", 32: "many"}[n], func(b *testing.B) {
					b.SetBytes(size)
					for b.Loop() {
						var all sync.WaitGroup
						for range n {
							c := dials[way]()
							all.Go(func() { bulk(b, c, direction, int64(size/n)) })
						}
						all.Wait()
					}
				})
			}
		}
	}
}

// serveBulk answers 'd' and a number with as many bytes, and 'u' and a number
// with one byte after the end of what comes.
func serveBulk(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 1<<17)
			if _, err := io.ReadFull(c, b[:9]); err != nil {
				return
			}
			if b[0] == 'u' {
				for err = error(nil); err == nil; _, err = c.Read(b) {
				}
				c.Write(b[:1])
				return
			}
			for left := int(binary.BigEndian.Uint64(b[1:])); left > 0 && err == nil; left -= len(b) {
				_, err = c.Write(b[:min(left, len(b))])
			}
		}()
	}
}

func bulk(b *testing.B, c net.Conn, direction string, n int64) {
	defer c.Close()
	buf := make([]byte, 1<<17)
	if _, err := c.Write(binary.BigEndian.AppendUint64([]byte(direction[:1]), uint64(n))); err != nil {
		b.Error(err)
		return
	}
	if direction == "download" {
		for n > 0 {
			m, err := c.Read(buf)
			if err != nil {
				b.Error(err)
				return
			}
			n -= int64(m)
		}
		return
	}
	for ; n > 0; n -= int64(len(buf)) {
		if _, err := c.Write(buf); err != nil {
			b.Error(err)
			return
		}
	}
	c.(*net.TCPConn).CloseWrite()
	if _, err := io.ReadFull(c, buf[:1]); err != nil {
		b.Error(err)
	}
}

// relayAll joins each accepted connection with a new one to address.
func relayAll(l net.Listener, address string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			up, err := net.Dial("tcp", address)
			if err != nil {
				c.Close()
				return
			}
			var both sync.WaitGroup
			pump := func(to, from net.Conn) {
				buf := make([]byte, 1<<17)
				var err error
				for err == nil {
					var n int
					n, err = from.Read(buf)
					if n > 0 {
						if _, e := to.Write(buf[:n]); e != nil {
							err = e
						}
					}
				}
				to.(interface{ CloseWrite() error }).CloseWrite()
			}
			both.Go(func() { pump(up, c) })
			both.Go(func() { pump(c, up) })
			both.Wait()
			up.Close()
			c.Close()
		}()
	}
}
