package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// peerProxy is a simple HTTP CONNECT proxy: the kernel moves the bytes. It prints
// where it listens and serves until standard input ends.
func peerProxy() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Println(l.Addr())
	failed := make(chan error, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			go connectOn(c.(*net.TCPConn))
		}
	}()
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	return <-failed
}

// connectOn serves one client. It does not look up the name: everything measured
// is on loopback, and the other layouts do not resolve a name for each
// connection.
func connectOn(c *net.TCPConn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReaderSize(c, 512))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return
	}
	far, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return
	}
	up := far.(*net.TCPConn)
	defer up.Close()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(c, up) // the client judges how a connection ends
		_ = c.CloseWrite()
	}()
	_, _ = io.Copy(up, c)
	_ = up.CloseWrite()
	<-back
}

// connectThrough requests a connection from a proxy. Its answer ends with an
// empty line, after which the server only sends when asked.
func connectThrough(proxy, host string) (net.Conn, error) {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host); err != nil {
		c.Close()
		return nil, err
	}
	head := make([]byte, 0, 256)
	for !strings.HasSuffix(string(head), "\r\n\r\n") && len(head) < cap(head) {
		n, err := c.Read(head[len(head):cap(head)])
		if err != nil {
			c.Close()
			return nil, err
		}
		head = head[:len(head)+n]
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 200 ") {
		c.Close()
		return nil, fmt.Errorf("the proxy answered %q", head)
	}
	return c, nil
}
