//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// patienceOfServers is how long a server waits for a client, so that none
// outlives its row for long.
const patienceOfServers = 30 * time.Second

func (n *internet) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(patienceOfServers)); err != nil {
				return
			}
			n.serve(c)
		}()
	}
}

func (n *internet) serve(c net.Conn) {
	at := c.LocalAddr().(*net.TCPAddr).AddrPort()
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	name, ok := n.server(at)
	if !ok {
		n.mark(fmt.Sprintf("%s was reached", at), nil)
		n.forbidden(c, at.Port())
		return
	}
	base := arrival{to: at, name: name, from: c.RemoteAddr().String()}
	switch at.Port() {
	case 443, 853, 8443:
		n.secure(c, base)
	case 80, 8080, 8081, 8082:
		n.plain(c, base)
	default:
		n.record(base)
		_, _ = io.WriteString(c, "hello from "+name+"\n")
		b, _ := io.ReadAll(io.LimitReader(c, 64<<10))
		_, _ = io.Copy(io.Discard, c)
		n.recordRaw(b)
	}
}

// forbidden answers with the token, whatever the protocol.
func (n *internet) forbidden(c net.Conn, port uint16) {
	web := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(n.token), n.token)
	switch port {
	case 443, 853, 8443:
		t := tls.Server(c, n.config("", nil))
		if err := t.Handshake(); err != nil {
			return
		}
		n.hear(t)
		_, _ = io.WriteString(t, web)
	case 80, 8080, 8081, 8082, 3128:
		n.hear(c)
		_, _ = io.WriteString(c, web)
	default:
		_, _ = io.WriteString(c, n.token+"\n")
		n.hear(c)
	}
}

func (n *internet) hear(c net.Conn) {
	b := make([]byte, 4096)
	l, _ := c.Read(b)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = append(n.heard, b[:l]...)
}

func (n *internet) config(name string, sni *string) *tls.Config {
	certs := n.certs
	if n.choose != nil {
		certs = n.choose(name)
	}
	protocols := n.protocols
	if protocols == nil {
		protocols = []string{"h2", "http/1.1"}
	}
	return &tls.Config{Certificates: []tls.Certificate{certs}, NextProtos: protocols,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if sni != nil {
				*sni = h.ServerName
			}
			return nil, nil
		}}
}

// secure serves HTTP/1.1 and HTTP/2 over TLS, on one connection.
func (n *internet) secure(c net.Conn, base arrival) {
	t := tls.Server(c, n.config(base.name, &base.sni))
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfServers)
	defer cancel()
	err := t.HandshakeContext(ctx)
	if base.sni != "" || n.namesOnly {
		n.record(base) // the name was sent, whatever happened next
	}
	if err != nil {
		return
	}
	if n.unread {
		n.plain(t, base)
		return
	}
	ended := make(chan struct{})
	server := &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			v := base
			v.method, v.target, v.hosts = r.Method, r.RequestURI, []string{r.Host}
			var head bytes.Buffer
			_ = r.Header.Write(&head)
			v.head = head.String()
			if strings.HasPrefix(r.RequestURI, turnPath) {
				n.record(v)
				n.stream(r.Body)
				n.respond(rw, r, base.name)
				return
			}
			first, _ := io.ReadAll(io.LimitReader(r.Body, 4096))
			v.body, v.trailers = string(first), slices.Collect(maps.Keys(r.Trailer))
			n.record(v)
			n.respond(rw, r, base.name)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				close(ended)
			}
		},
	}
	one := &singleListener{c: t, done: ended}
	_ = server.Serve(one)
	<-ended
}

func (n *internet) respond(rw http.ResponseWriter, r *http.Request, name string) {
	u, err := url.ParseRequestURI(r.RequestURI)
	if err == nil && u.Path == "/redirect" {
		rw.Header().Set("Location", u.Query().Get("to"))
		rw.Header().Set("Alt-Svc", `h3="169.254.169.254:443", h2="169.254.169.254:443"`)
		rw.WriteHeader(http.StatusFound)
		return
	}
	if err == nil && strings.HasPrefix(u.Path, "/echo") {
		echo(rw, r, strings.TrimPrefix(u.Path, "/echo"))
	}
	_, _ = io.WriteString(rw, "hello from "+name+"\n")
}

// echo answers with what it was sent, in the given way.
func echo(rw http.ResponseWriter, r *http.Request, way string) {
	text := r.Header.Get("Authorization")
	switch way {
	case "":
		for k := range r.Header {
			rw.Header().Set("X-Echo-"+k, r.Header.Get(k))
		}
	case "/location":
		rw.Header().Set("Location", "https://allowed.test/?"+text)
		rw.WriteHeader(http.StatusFound)
	case "/early":
		rw.Header().Set("Link", "</x>; title=\""+text+"\"")
		rw.WriteHeader(http.StatusEarlyHints)
		rw.Header().Del("Link")
	case "/trailer":
		rw.Header().Set("Trailer", "X-Echo")
		_, _ = io.WriteString(rw, "hello\n")
		rw.Header().Set("X-Echo", text)
	case "/status":
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, "bad token: "+text+"\n")
	case "/parts":
		half := len(text) / 2
		for _, part := range []string{text[:half], text[half:]} {
			_, _ = io.WriteString(rw, part)
			_ = http.NewResponseController(rw).Flush()
			time.Sleep(20 * time.Millisecond) // so that the parts are two segments
		}
	case "/gzip":
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
	case "/basic":
		_, _ = io.WriteString(rw, base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(text, "Bearer "))))
	}
}

// singleListener is a listener for one connection.
type singleListener struct {
	c    net.Conn
	done chan struct{}
	used bool
}

func (o *singleListener) Accept() (net.Conn, error) {
	if !o.used {
		o.used = true
		return o.c, nil
	}
	<-o.done
	return nil, errDone
}

func (o *singleListener) Close() error   { return nil }
func (o *singleListener) Addr() net.Addr { return o.c.LocalAddr() }

// plain is as lenient as any real server: it accepts every line ending, every
// spelling and any number of Hosts, and believes either of the two headers for
// the length of a body: port 8081 Content-Length alone, port 8082
// Transfer-Encoding alone.
func (n *internet) plain(c net.Conn, base arrival) {
	r := bufio.NewReaderSize(c, 64<<10)
	ends := "" // a header
	if base.name == n.brief {
		ends = "Connection: close\r\n"
	}
	for {
		v, headers, err := readHead(r, base)
		if err != nil {
			return
		}
		if !n.unread {
			v.body = body(r, headers, base.to.Port())
		}
		n.record(v)
		target, _ := url.Parse(v.target)
		switch {
		case v.method == "PRI":
			return
		case target != nil && target.Path == "/ws" && headers["upgrade"] != nil:
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello from the other side\n")
			_, _ = io.Copy(io.Discard, r)
			return
		case target != nil && target.Path == "/redirect":
			fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: %s\r\nRefresh: 0; url=%s\r\nContent-Length: 0\r\n\r\n", target.Query().Get("to"), target.Query().Get("to"))
		default:
			text := "hello from " + base.name + "\n"
			if target != nil && target.Path == "/heard" { // what was sent to this host, on any port
				for _, request := range n.requests("/tell") {
					text += request.head
				}
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", ends, len(text), text)
		}
		if ends != "" || slices.Contains(headers["connection"], "close") {
			return
		}
	}
}

func readHead(r *bufio.Reader, base arrival) (arrival, map[string][]string, error) {
	v, headers := base, map[string][]string{}
	for first := true; len(v.head) < 1<<20; first = false {
		line, err := r.ReadString('\n')
		if err != nil {
			return v, nil, err
		}
		v.head += line
		line = strings.TrimRight(line, "\r\n")
		switch {
		case first && line == "":
			continue
		case first:
			f := strings.Fields(line + " - -")
			v.method, v.target = f[0], f[1]
			if u, err := url.Parse(v.target); err == nil && u.Host != "" {
				v.hosts, v.target = append(v.hosts, u.Host), u.RequestURI()
			}
		case line == "":
			return v, headers, nil
		default:
			name, value, _ := strings.Cut(line, ":")
			name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(value))
			headers[name] = append(headers[name], value)
			if name == "host" {
				v.hosts = append(v.hosts, value)
			}
		}
	}
	return v, nil, errDone
}

// body reads what one of the two headers announces and returns its first bytes.
func body(r *bufio.Reader, headers map[string][]string, port uint16) string {
	chunked := slices.ContainsFunc(headers["transfer-encoding"], func(v string) bool { return strings.Contains(v, "chunked") })
	length := 0
	for _, v := range headers["content-length"] {
		length, _ = strconv.Atoi(v)
	}
	var first bytes.Buffer
	take := func(n int64) {
		_, _ = io.CopyN(&first, r, min(n, 4096))
		_, _ = io.CopyN(io.Discard, r, max(n-4096, 0))
	}
	if port == 8081 || !chunked {
		if port != 8082 {
			take(int64(length))
		}
		return first.String()
	}
	for {
		line, err := r.ReadString('\n')
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		length, bad := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		if err != nil || bad != nil {
			return first.String()
		}
		take(int64(length))
		_, _ = r.ReadString('\n')
		if length == 0 {
			return first.String()
		}
	}
}
