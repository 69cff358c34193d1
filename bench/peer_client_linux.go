package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// client is the inner end.
type client struct {
	address    string // of the server as seen in this layout
	proxy      string // "" for none
	plain, tls string // ports
	open       []net.Conn
}

// reachTime is how long a layout may take until the server is reached.
const reachTime = 20 * time.Second

// peerClient executes orders from standard input until it ends.
func peerClient(args []string) error {
	var c client
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.StringVar(&c.address, "address", "", "of the server: an address, a name, or gateway")
	flags.StringVar(&c.proxy, "proxy", "", "to ask for connections")
	flags.StringVar(&c.plain, "plain", "", "port without TLS")
	flags.StringVar(&c.tls, "tls", "", "port with TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(c.answer(order{Do: "reach"})); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading an order: %w", err)
		}
		if err := out.Encode(c.answer(o)); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

func (c *client) answer(o order) answer {
	before := ownCPU()
	var a answer
	var err error
	switch o.Do {
	case "reach":
		err = c.reach()
	case "bulk":
		a.Wall, err = c.downloadBulk(o)
	case "fresh":
		a.Delays, err = c.openFresh(o.Count)
	case "open":
		err = c.openIdle(o.Conns)
	case "close":
		err = c.closeAll()
	case "tls":
		a.Wall, err = c.downloadTLS(o)
	case "events":
		a.Delays, err = c.events(o.Count)
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	a.CPU = ownCPU() - before
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reach waits until the layout works, and sets the server's address.
func (c *client) reach() error {
	end := time.Now().Add(reachTime)
	for {
		address := c.address
		var err error
		switch {
		case address == "gateway":
			address, err = gateway()
		case c.proxy == "" && net.ParseIP(address) == nil:
			var all []string
			if all, err = net.LookupHost(address); err == nil {
				address = all[0]
			}
		}
		if err == nil {
			err = c.echo(address)
		}
		if err == nil {
			c.address = address
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server cannot be reached at %s: %w", c.address, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *client) echo(address string) error {
	conn, err := c.dial(address, c.plain)
	if err != nil {
		return err
	}
	defer conn.Close()
	return sendRequest(conn)
}

// gateway is the gateway of the default route, from the kernel's table.
func gateway() (string, error) {
	text, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return "", fmt.Errorf("reading the routes: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != "00000000" {
			continue
		}
		n, err := strconv.ParseUint(f[2], 16, 32)
		if err != nil {
			return "", fmt.Errorf("reading a route: %w", err)
		}
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], uint32(n))
		return net.IP(a[:]).String(), nil
	}
	return "", errors.New("there is no default route")
}

func (c *client) dial(address, port string) (net.Conn, error) {
	if c.proxy != "" {
		return connectThrough(c.proxy, net.JoinHostPort(address, port))
	}
	return net.Dial("tcp", net.JoinHostPort(address, port))
}

// sendRequest sends a small request and waits for its answer.
func sendRequest(conn net.Conn) error {
	message := []byte("e12345678")
	if _, err := conn.Write(message); err != nil {
		return fmt.Errorf("sending the request: %w", err)
	}
	if _, err := io.ReadFull(conn, message[:8]); err != nil {
		return fmt.Errorf("waiting for an answer: %w", err)
	}
	return nil
}

// downloadBulk downloads over the open connections.
func (c *client) downloadBulk(o order) (time.Duration, error) {
	each := o.Bytes / int64(len(c.open))
	failed := make(chan error, len(c.open))
	buffers := make([][]byte, len(c.open))
	for i := range buffers {
		buffers[i] = make([]byte, stepBytes)
	}
	begin := time.Now()
	for i, conn := range c.open {
		go func() { failed <- download(conn, each, buffers[i]) }()
	}
	var err error
	for range c.open {
		err = errors.Join(err, <-failed)
	}
	return time.Since(begin), err
}

func download(conn net.Conn, n int64, buffer []byte) error {
	request := binary.BigEndian.AppendUint64([]byte{'d'}, uint64(n))
	if _, err := conn.Write(request); err != nil {
		return fmt.Errorf("requesting the bytes: %w", err)
	}
	return discardBytes(conn, n, buffer)
}

func discardBytes(r io.Reader, n int64, buffer []byte) error {
	for n > 0 {
		m, err := r.Read(buffer[:min(n, int64(len(buffer)))])
		n -= int64(m)
		if err != nil && n > 0 {
			return fmt.Errorf("reading with %d bytes to go: %w", n, err)
		}
	}
	return nil
}

// openFresh makes one connection after another, each for one small request. A delay
// is from before the connection to the answer.
func (c *client) openFresh(count int) ([]time.Duration, error) {
	delays := make([]time.Duration, 0, count)
	for range count {
		begin := time.Now()
		conn, err := c.dial(c.address, c.plain)
		if err != nil {
			return nil, fmt.Errorf("connecting: %w", err)
		}
		err = sendRequest(conn)
		delays = append(delays, time.Since(begin))
		if err := errors.Join(err, conn.Close()); err != nil {
			return nil, err
		}
	}
	return delays, nil
}

// openIdle opens connections, uses each once, and keeps them.
func (c *client) openIdle(n int) error {
	for range n {
		conn, err := c.dial(c.address, c.plain)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		c.open = append(c.open, conn)
		if err := sendRequest(conn); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) closeAll() (err error) {
	for _, conn := range c.open {
		err = errors.Join(err, conn.Close())
	}
	c.open = nil
	return err
}

// tlsClient is a client for one connection to the TLS port.
func (c *client) tlsClient(second bool) *http.Client {
	t := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c.dial(c.address, c.tls) },
		TLSClientConfig:   &tls.Config{ServerName: serverName},
		ForceAttemptHTTP2: second,
		ReadBufferSize:    stepBytes,
	}
	return &http.Client{Transport: t}
}

func (c *client) get(w *http.Client, path string) (*http.Response, error) {
	r, err := w.Get("https://" + serverName + ":" + c.tls + path)
	if err != nil {
		return nil, fmt.Errorf("requesting: %w", err)
	}
	if r.StatusCode != http.StatusOK {
		r.Body.Close()
		return nil, fmt.Errorf("requesting: the status is %s", r.Status)
	}
	return r, nil
}

// downloadTLS downloads over TLS, on a connection that a small request has opened.
func (c *client) downloadTLS(o order) (time.Duration, error) {
	w := c.tlsClient(o.H2)
	defer w.CloseIdleConnections()
	buffer := make([]byte, stepBytes)
	var begin time.Time
	for _, n := range []int64{1, o.Bytes} {
		begin = time.Now()
		r, err := c.get(w, "/bytes?n="+strconv.FormatInt(n, 10))
		if err != nil {
			return 0, err
		}
		if second := r.ProtoMajor == 2; second != o.H2 {
			r.Body.Close()
			return 0, fmt.Errorf("the answer is %s", r.Proto)
		}
		if err := discardBytes(r.Body, n, buffer); err != nil {
			r.Body.Close()
			return 0, err
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // to the end, so that the connection can be reused
			return 0, fmt.Errorf("reading the end: %w", err)
		}
		r.Body.Close()
	}
	return time.Since(begin), nil
}

// events are the delays between the server's clock and ours, which are the same.
func (c *client) events(count int) ([]time.Duration, error) {
	w := c.tlsClient(false)
	defer w.CloseIdleConnections()
	r, err := c.get(w, "/events?n="+strconv.Itoa(count))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var delays []time.Duration
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		sent, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading an event: %w", err)
		}
		delays = append(delays, time.Duration(time.Now().UnixNano()-sent))
	}
	if len(delays) != count {
		return nil, fmt.Errorf("received %d of %d events", len(delays), count)
	}
	return delays, nil
}
